//! Parts of messages: text and images.

use crate::conversation::{Content, ImageData, ImageDetail, ImageSource};
use crate::error::Result;
use crate::request::limits::MAX_URL_BYTES;
use crate::request::options::{ModelVersion, ServedModel};
use crate::request::reader::refusal;
use crate::wire_constants::WIRE;

/// Text between the parts of one message.
pub(super) const PART_SEPARATOR: &str = "\n\n";

/// Image types that the models read.
const IMAGE_TYPES: [&str; 5] = ["webp", "png", "jpeg", "jpg", "gif"];

/// One part of a message.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Part {
    Text(String),
    Image(ImageSource),
}

/// What becomes of images for one model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ImagePolicy {
    /// They are kept.
    Keep,
    /// A text stands in their place, and they are not looked at (V4).
    Placeholder,
    /// The request is refused.
    Refuse,
}

impl ImagePolicy {
    pub(super) fn of(model: ServedModel) -> Self {
        match (model.version, model.generic) {
            (ModelVersion::DeepseekV4Pro, _) => Self::Placeholder,
            (_, Some(generic)) if !generic.supports_images => Self::Refuse,
            _ => Self::Keep,
        }
    }

    /// What stands for an image that is not kept.
    ///
    /// # Errors
    /// A refusal for a model that reads no images.
    pub(super) fn substitute(self, place: Place<'_>) -> Result<Option<Part>> {
        match self {
            Self::Keep => Ok(None),
            Self::Placeholder => Ok(Some(Part::Text(WIRE.unsupported_image.clone()))),
            Self::Refuse => Err(place.refuse("this model reads no images; send text only")),
        }
    }
}

/// Where a part stands: once as the official codec names it, once in full.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    /// Path in the message of a refusal.
    pub(super) said: &'a str,
    /// Path in `param`.
    pub(super) param: &'a str,
}

impl Place<'_> {
    pub(super) fn refuse(&self, problem: impl std::fmt::Display) -> crate::error::Error {
        refusal(self.param, format!("{}: {problem}", self.said))
    }
}

/// An image from a URL, which may be a data URL.
///
/// # Errors
/// A refusal for other schemes, broken data URLs, other formats and URLs that are too long.
pub(super) fn image_from_url(
    url: &str,
    detail: ImageDetail,
    place: Place<'_>,
) -> Result<ImageSource> {
    let data = if has_scheme(url, "data:") {
        check_data_url(url, place)?;
        ImageData::DataUrl(url.to_owned())
    } else {
        check_external_url(url, place)?;
        ImageData::Url(url.to_owned())
    };
    Ok(ImageSource {
        data,
        detail,
        path: place.said.to_owned(),
    })
}

/// Refuses a URL that is too long or of another scheme than http and https.
pub(super) fn check_external_url(url: &str, place: Place<'_>) -> Result<()> {
    if !["http:", "https:"]
        .into_iter()
        .any(|scheme| has_scheme(url, scheme))
    {
        return Err(place.refuse("an image URL must start with http: or https:, or be a data URL where those are allowed"));
    }
    if url.len() > MAX_URL_BYTES {
        return Err(place.refuse(format_args!(
            "the URL has {} bytes, at most {MAX_URL_BYTES} are allowed; send the image as base64",
            url.len()
        )));
    }
    Ok(())
}

fn has_scheme(url: &str, scheme: &str) -> bool {
    url.get(..scheme.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(scheme))
}

/// Refuses text that is not base64 with the standard alphabet and padding.
pub(super) fn check_base64(text: &str, place: Place<'_>) -> Result<()> {
    use base64::Engine;

    let decoded = base64::engine::general_purpose::STANDARD.decode(text);
    decoded
        .map(|_| ())
        .map_err(|_| place.refuse("the data is not valid base64"))
}

/// Refuses a data URL that is not the base64 text of an image.
pub(super) fn check_data_url(url: &str, place: Place<'_>) -> Result<()> {
    let parsed =
        data_url::DataUrl::process(url).map_err(|_| place.refuse("the data URL has no comma"))?;
    let header = url.split_once(',').map_or("", |(header, _)| header);
    if !header.trim_end().to_ascii_lowercase().ends_with("base64") {
        return Err(place.refuse("a data URL of an image must be base64"));
    }
    let mime = parsed.mime_type();
    if mime.type_ != "image" || !IMAGE_TYPES.contains(&mime.subtype.as_str()) {
        return Err(place.refuse(format_args!(
            "{}/{} is not supported; send webp, png, jpeg or gif",
            mime.type_, mime.subtype
        )));
    }
    parsed
        .decode_to_vec()
        .map_err(|_| place.refuse("the data URL is not valid base64"))?;
    Ok(())
}

/// Joins the parts of one message.
pub(super) fn join(parts: Vec<Part>, image_token: &str) -> Content {
    let mut content = Content::default();
    for (index, part) in parts.into_iter().enumerate() {
        if index > 0 {
            content.push_text(PART_SEPARATOR);
        }
        match part {
            Part::Text(text) => content.push_text(&text),
            Part::Image(source) => content.push_image(source, image_token),
        }
    }
    content
}
