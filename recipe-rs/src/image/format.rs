//! The image formats that are accepted.

use ::image::ImageFormat;

/// Media types that a data URL may declare; the bytes decide which of them it is.
const MEDIA_TYPES: [&str; 5] = ["jpeg", "jpg", "png", "gif", "webp"];

/// How a message names what is accepted.
pub(super) const ACCEPTED: &str = "send webp, png, jpeg or gif";

/// Whether images of the media type `kind/subtype` are accepted; both in lower case.
pub(super) fn is_accepted_media_type(kind: &str, subtype: &str) -> bool {
    kind == "image" && MEDIA_TYPES.contains(&subtype)
}

/// The format that the first bytes of a file show.
pub(super) fn format_of(data: &[u8]) -> Option<ImageFormat> {
    match data {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some(ImageFormat::Png),
        [0xff, 0xd8, 0xff, ..] => Some(ImageFormat::Jpeg),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(ImageFormat::Gif),
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'E',
            b'B',
            b'P',
            ..,
        ] => Some(ImageFormat::WebP),
        _ => None,
    }
}
