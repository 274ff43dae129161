//! Reading of image sources that need no connection, and checks of URLs.

use data_url::DataUrl;

use crate::error::{ImageErrorKind, Result};
use crate::image::format::{ACCEPTED, is_accepted_media_type};
use crate::image::quota::ImageLimits;
use crate::image::refusal;

/// The bytes that a `data:` URL carries, base64 or percent-encoded.
pub(super) fn read_data_url(url: &str) -> Result<Vec<u8>> {
    let invalid = |what: &str| {
        let message = format!("the data URL {what}; send data:image/png;base64,...");
        refusal(ImageErrorKind::InvalidDataUrl, message)
    };
    let parsed = DataUrl::process(url).map_err(|_| invalid("cannot be read"))?;
    let media_type = parsed.mime_type();
    if !is_accepted_media_type(&media_type.type_, &media_type.subtype) {
        let message = format!(
            "media type {}/{} of the data URL is not supported; {ACCEPTED}",
            media_type.type_, media_type.subtype
        );
        return Err(refusal(ImageErrorKind::UnsupportedMediaType, message));
    }
    let (data, _fragment) = parsed
        .decode_to_vec()
        .map_err(|_| invalid("holds broken base64"))?;
    Ok(data)
}

/// Checks the form of an external URL: http or https, with a host, of bounded length.
pub(super) fn check_url(url: &str, limits: &ImageLimits) -> Result<()> {
    if url.len() > limits.max_url_bytes {
        let message = format!(
            "the URL has {} bytes; at most {} are allowed",
            url.len(),
            limits.max_url_bytes
        );
        return Err(refusal(ImageErrorKind::UrlTooLong, message));
    }
    let host = url.split_once("://").and_then(|(scheme, rest)| {
        let known = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
        known.then(|| rest.split(['/', '?', '#']).next().unwrap_or(""))
    });
    if host.is_none_or(str::is_empty) {
        let message = "the image URL is not of the form https://host/path";
        return Err(refusal(ImageErrorKind::InvalidUrl, message));
    }
    Ok(())
}

/// Refuses a file that is larger than one image may be.
pub(super) fn check_file_size(data: &[u8], max_bytes: u64) -> Result<()> {
    if data.len() as u64 > max_bytes {
        return Err(too_large(max_bytes));
    }
    Ok(())
}

/// The error of a file of more than `max_bytes`.
pub(super) fn too_large(max_bytes: u64) -> crate::Error {
    refusal(
        ImageErrorKind::ImageTooLarge,
        format!("the image file has more than {max_bytes} bytes; send a smaller one"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_urls() {
        for (url, data) in [
            ("data:image/png;base64,QUI=", Some("AB")),
            ("DATA:IMAGE/JPG;BASE64,QUI", Some("AB")),
            ("data:image/png;charset=x;base64, QU\nI=#f", Some("AB")),
            ("data:image/gif,A%42", Some("AB")),
            ("data:image/png;base64,", Some("")),
            ("data:image/bmp;base64,QUI=", None),
            ("data:;base64,QUI=", None),
            ("data:image/png;base64,Q*", None),
            ("data:image/png;base64", None),
            ("image/png;base64,QUI=", None),
            ("", None),
        ] {
            let read = read_data_url(url).ok();
            assert_eq!(read.as_deref(), data.map(str::as_bytes), "{url}");
        }
    }

    #[test]
    fn urls() {
        let limits = ImageLimits::default();
        for url in ["http://a", "HTTPS://a.b:80/c?d", "http://[::1]/x"] {
            assert!(check_url(url, &limits).is_ok(), "{url}");
        }
        for url in [
            "",
            "x",
            "ftp://a/b",
            "http://",
            "http:///x",
            "file:///etc/passwd",
            "http:a",
        ] {
            assert!(check_url(url, &limits).is_err(), "{url}");
        }
        let exact = format!("http://a/{}", "x".repeat(8192 - 9));
        assert!(check_url(&exact, &limits).is_ok());
        assert!(check_url(&(exact + "x"), &limits).is_err());
    }
}
