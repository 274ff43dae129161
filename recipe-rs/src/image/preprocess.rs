//! From the bytes of an image file to the image that the model gets.

use std::io::Cursor;

use ::image::codecs::webp::WebPEncoder;
use ::image::{
    DynamicImage, ExtendedColorType, ImageDecoder, ImageError as CodecError, ImageReader, Limits,
    RgbImage,
};

use crate::conversation::ImageDetail;
use crate::error::{ImageErrorKind, Result};
use crate::image::format::{ACCEPTED, format_of};
use crate::image::info::ImageInfo;
use crate::image::refusal;
use crate::image::resample::scale_onto_canvas;
use crate::image::resize::ImageSize;
use crate::image::shrink::shrink;

/// Most bytes that a decoder may hold: an image of 8,192 x 8,192 pixels in 16-bit RGBA, and some.
const MAX_DECODER_BYTES: u64 = 640 << 20;

/// How one image is preprocessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PreprocessOptions {
    /// How large the image may be kept.
    pub detail: ImageDetail,
    /// Longest side in pixels that an image file may have.
    pub max_dimension_px: u32,
    /// Longest side in pixels that is kept with [`ImageDetail::Low`].
    pub low_detail_max_dimension_px: u32,
}

impl Default for PreprocessOptions {
    fn default() -> Self {
        Self {
            detail: ImageDetail::High,
            max_dimension_px: 8192,
            low_detail_max_dimension_px: 512,
        }
    }
}

/// Decodes images, resizes them to the model's grid and stores them as lossless WEBP.
///
/// Transparent parts lie on white, 16-bit samples become 8-bit ones, of an animation the first
/// picture counts, and an orientation that the file states is ignored, as the official codec does.
#[derive(Debug, Clone, Copy, Default)]
pub struct ImagePreprocessor;

impl ImagePreprocessor {
    /// Preprocesses the bytes of one image file.
    ///
    /// # Errors
    /// [`crate::Error::Image`] when the bytes are empty, of another format, damaged, or when a side is
    /// longer than the options allow; nothing is decoded in the last case.
    pub fn preprocess(self, data: &[u8], options: &PreprocessOptions) -> Result<ImageInfo> {
        let mut image = decode(data, options.max_dimension_px)?;
        let mut size = ImageSize {
            width: image.width(),
            height: image.height(),
        };
        if options.detail == ImageDetail::Low {
            size = size.limited_to(options.low_detail_max_dimension_px);
            image = shrink(&image, size);
        }
        let size = size.fitted_for_file()?;
        let image = scale_onto_canvas(&image, size).map_err(|error| {
            refusal(
                ImageErrorKind::Encode,
                format!("the image cannot be resized: {error}"),
            )
        })?;
        let mut data = Vec::new();
        WebPEncoder::new_lossless(&mut data)
            .encode(&image, size.width, size.height, ExtendedColorType::Rgb8)
            .map_err(|error| {
                refusal(
                    ImageErrorKind::Encode,
                    format!("the resized image cannot be stored as webp: {error}"),
                )
            })?;
        Ok(ImageInfo { data, size })
    }
}

fn decode(data: &[u8], max_side: u32) -> Result<RgbImage> {
    if data.is_empty() {
        let message = format!("the image is empty; {ACCEPTED}");
        return Err(refusal(ImageErrorKind::EmptyImage, message));
    }
    let format = format_of(data).ok_or_else(|| {
        let message = format!("the file is none of the supported image formats; {ACCEPTED}");
        refusal(ImageErrorKind::UnsupportedMediaType, message)
    })?;
    let damaged = |error: CodecError| {
        let name = format.extensions_str().first().unwrap_or(&"image");
        match error {
            CodecError::Limits(_) => refusal(
                ImageErrorKind::ImageDimensionsTooLarge,
                format!("decoding the {name} image takes too much memory; send a smaller one"),
            ),
            error => refusal(
                ImageErrorKind::Decode,
                format!("the {name} image is damaged: {error}"),
            ),
        }
    };
    let mut limits = Limits::no_limits();
    limits.max_alloc = Some(MAX_DECODER_BYTES);
    let mut reader = ImageReader::with_format(Cursor::new(data), format);
    reader.limits(limits);
    let decoder = reader.into_decoder().map_err(damaged)?;
    let (width, height) = decoder.dimensions();
    if width.max(height) > max_side {
        let message = format!(
            "the image has {width} x {height} pixels; at most {max_side} are allowed on a side"
        );
        return Err(refusal(ImageErrorKind::ImageDimensionsTooLarge, message));
    }
    if width.min(height) == 0 {
        let message = format!("the image has {width} x {height} pixels; {ACCEPTED}");
        return Err(refusal(ImageErrorKind::EmptyImage, message));
    }
    let image = DynamicImage::from_decoder(decoder).map_err(damaged)?;
    Ok(on_white(image))
}

/// Eight-bit colours; transparent parts are mixed with white.
fn on_white(image: DynamicImage) -> RgbImage {
    if !image.color().has_alpha() {
        return image.into_rgb8();
    }
    let image = image.into_rgba8();
    RgbImage::from_fn(image.width(), image.height(), |x, y| {
        let [red, green, blue, alpha] = image.get_pixel(x, y).0.map(u32::from);
        let mix = |colour: u32| ((colour * alpha + 255 * (255 - alpha) + 127) / 255) as u8;
        ::image::Rgb([mix(red), mix(green), mix(blue)])
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;
    use ::image::ImageFormat;

    fn file(image: &DynamicImage, format: ImageFormat) -> Vec<u8> {
        let mut data = Cursor::new(Vec::new());
        image.write_to(&mut data, format).unwrap();
        data.into_inner()
    }

    fn kind(data: &[u8], options: &PreprocessOptions) -> ImageErrorKind {
        match ImagePreprocessor.preprocess(data, options) {
            Err(Error::Image { kind, .. }) => kind,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_format_becomes_webp() {
        let image = DynamicImage::ImageRgb8(RgbImage::from_pixel(60, 40, ::image::Rgb([9, 80, 7])));
        for format in [
            ImageFormat::Png,
            ImageFormat::Jpeg,
            ImageFormat::Gif,
            ImageFormat::WebP,
        ] {
            let info = ImagePreprocessor
                .preprocess(&file(&image, format), &PreprocessOptions::default())
                .unwrap();
            assert_eq!(format_of(&info.data), Some(ImageFormat::WebP));
            let result = ::image::load_from_memory(&info.data).unwrap().into_rgb8();
            assert_eq!((info.size.width, info.size.height), result.dimensions());
            let middle = result.get_pixel(info.size.width / 2, info.size.height / 2);
            for (got, given) in middle.0.into_iter().zip([9, 80, 7]) {
                assert!(u8::abs_diff(got, given) <= 3, "{format:?}: {middle:?}");
            }
        }
    }

    #[test]
    fn refusals_name_their_kind() {
        let default = PreprocessOptions::default();
        assert_eq!(kind(b"", &default), ImageErrorKind::EmptyImage);
        assert_eq!(
            kind(b"BM12345", &default),
            ImageErrorKind::UnsupportedMediaType
        );
        let image = DynamicImage::ImageRgb8(RgbImage::new(60, 40));
        let png = file(&image, ImageFormat::Png);
        assert_eq!(kind(&png[..50], &default), ImageErrorKind::Decode);
        let strict = PreprocessOptions {
            max_dimension_px: 59,
            ..default
        };
        assert_eq!(kind(&png, &strict), ImageErrorKind::ImageDimensionsTooLarge);
    }

    #[test]
    fn a_huge_claim_is_refused_before_decoding() {
        // A png header that claims 2^31 - 1 pixels on a side, without data.
        let mut png =
            b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\x7f\xff\xff\xff\x7f\xff\xff\xff\x08\x06\0\0\0".to_vec();
        png.extend([0x0a, 0x16, 0x0f, 0x1d]);
        let kind = kind(&png, &PreprocessOptions::default());
        assert!(
            matches!(
                kind,
                ImageErrorKind::ImageDimensionsTooLarge | ImageErrorKind::Decode
            ),
            "{kind:?}"
        );
    }
}
