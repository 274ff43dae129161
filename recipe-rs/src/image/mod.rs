//! Images of a conversation: reading, limits, resizing to the model's grid, token counts.
//!
//! ```
//! use recipe_rs::ImageSize;
//!
//! let size = ImageSize { width: 1920, height: 1080 }.fitted()?;
//! assert_eq!((size.width, size.height, size.num_tokens()), (1708, 966, 968));
//! # Ok::<(), recipe_rs::Error>(())
//! ```

mod destination;
#[cfg(feature = "fetch")]
mod fetch;
mod format;
mod info;
mod preprocess;
mod quota;
mod resample;
mod resize;
mod resolver;
mod shrink;
mod source;

pub use destination::is_public_address;
#[cfg(feature = "fetch")]
pub use fetch::{DestinationFilter, HttpImageFetcher};
pub use info::{ImageInfo, MultiModalData};
pub use preprocess::{ImagePreprocessor, PreprocessOptions};
pub use quota::{ImageLimits, ImageQuota};
pub use resize::ImageSize;
pub use resolver::{ImageFetcher, ImageResolver};

use crate::error::{Error, ImageErrorKind};

/// An image error that no retry mends.
fn refusal(kind: ImageErrorKind, message: impl Into<String>) -> Error {
    Error::Image {
        kind,
        message: message.into(),
        is_retryable: false,
    }
}
