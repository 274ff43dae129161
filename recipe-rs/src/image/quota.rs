//! What the images of one request may take.

use crate::error::{ImageErrorKind, Result};
use crate::image::refusal;

const MEGABYTE: u64 = 1 << 20;

/// Limits on the images of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageLimits {
    /// Characters of a URL, in bytes.
    pub max_url_bytes: usize,
    /// Images of a request.
    pub max_images: u64,
    /// Bytes of one encoded image.
    pub max_image_bytes: u64,
    /// Bytes of all encoded images of a request.
    pub max_total_bytes: u64,
    /// Longest side of an image file, in pixels.
    pub max_dimension_px: u32,
    /// Longest side that is kept with low detail, in pixels.
    pub low_detail_max_dimension_px: u32,
}

impl Default for ImageLimits {
    fn default() -> Self {
        Self {
            max_url_bytes: 8192,
            max_images: 600,
            max_image_bytes: 32 * MEGABYTE,
            max_total_bytes: 64 * MEGABYTE,
            max_dimension_px: 8192,
            low_detail_max_dimension_px: 512,
        }
    }
}

/// What the images of one request have taken so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ImageQuota {
    image_count: u64,
    byte_size: u64,
}

impl ImageQuota {
    /// Images taken so far.
    #[must_use]
    pub fn image_count(self) -> u64 {
        self.image_count
    }

    /// Bytes of the encoded images taken so far.
    #[must_use]
    pub fn byte_size(self) -> u64 {
        self.byte_size
    }

    /// The quota after `image_count` more images of `byte_size` bytes together.
    ///
    /// # Errors
    /// [`crate::Error::Image`] when that exceeds `limits`.
    pub fn with(self, image_count: u64, byte_size: u64, limits: &ImageLimits) -> Result<Self> {
        let sum = Self {
            image_count: self.image_count.saturating_add(image_count),
            byte_size: self.byte_size.saturating_add(byte_size),
        };
        if sum.image_count > limits.max_images {
            let message = format!(
                "the request has {} images; at most {} are allowed",
                sum.image_count, limits.max_images
            );
            return Err(refusal(ImageErrorKind::TooManyImages, message));
        }
        if sum.byte_size > limits.max_total_bytes {
            let message = format!(
                "the images of the request have {} bytes together; at most {} are allowed",
                sum.byte_size, limits.max_total_bytes
            );
            return Err(refusal(ImageErrorKind::TotalSizeTooLarge, message));
        }
        Ok(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_inclusive() {
        let limits = ImageLimits::default();
        let full = ImageQuota::default()
            .with(600, 64 * MEGABYTE, &limits)
            .unwrap();
        assert!(full.with(0, 0, &limits).is_ok());
        assert!(full.with(1, 0, &limits).is_err());
        assert!(full.with(0, 1, &limits).is_err());
    }
}
