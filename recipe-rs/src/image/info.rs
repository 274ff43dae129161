//! Images as the inference backend takes them.

use crate::error::Result;
use crate::image::resize::ImageSize;

/// A preprocessed image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageInfo {
    /// The encoded file, lossless WEBP.
    pub data: Vec<u8>,
    /// Width and height in pixels after preprocessing.
    pub size: ImageSize,
}

/// Images in the order of their placeholders in a prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MultiModalData {
    /// The images.
    pub images: Vec<ImageInfo>,
}

impl MultiModalData {
    /// Positions that the images take at inference beyond the one of each placeholder.
    ///
    /// # Errors
    /// [`crate::Error::ImageSize`] when the size of an image does not settle.
    pub fn image_token_adjustment(&self) -> Result<u64> {
        self.images
            .iter()
            .map(|image| Ok(image.size.fitted()?.num_tokens() - 1))
            .sum()
    }
}
