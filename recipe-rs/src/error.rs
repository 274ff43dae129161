//! The one error type of the crate.

/// Everything that can go wrong in the codec.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A tokenizer file or an encode call is at fault.
    #[error("{message}")]
    Tokenizer {
        /// What is wrong, in one sentence without a final period.
        message: String,
        /// Byte offset in the input where it was noticed, if known.
        offset: Option<usize>,
    },
    /// A conversation cannot be rendered.
    #[error("{message}")]
    Render {
        /// What is wrong.
        message: String,
        /// Index of the message at fault, if one is.
        message_index: Option<usize>,
    },
    /// A request body is invalid or asks for something unsupported.
    #[error("{message}")]
    Conversion {
        /// What is wrong and what to do.
        message: String,
        /// Path of the offending field, like `messages[2].content[0]`.
        param: Option<String>,
        /// HTTP status to answer with.
        status_code: u16,
    },
    /// The output stream was used after its end, or its input is inconsistent.
    #[error("{message}")]
    Stream {
        /// What is wrong.
        message: String,
        /// Name of the parser state.
        state: &'static str,
    },
    /// An image cannot be fetched, decoded or accepted.
    #[error("{message}")]
    Image {
        /// What the image is refused for.
        kind: ImageErrorKind,
        /// What is wrong and what to do, with the place of the image where it is known.
        message: String,
        /// Whether the same request may succeed later.
        is_retryable: bool,
    },
    /// Fitting the size of an image does not settle.
    #[error(
        "the size of an image of {width} x {height} pixels cannot be fitted; send another size"
    )]
    ImageSize {
        /// Width in pixels.
        width: u32,
        /// Height in pixels.
        height: u32,
    },
}

/// What an image is refused for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ImageErrorKind {
    /// There are no bytes or no pixels.
    EmptyImage,
    /// The format or the declared media type is not supported.
    UnsupportedMediaType,
    /// The file is damaged.
    Decode,
    /// The resized image cannot be stored.
    Encode,
    /// A side is too long, or decoding would take too much memory.
    ImageDimensionsTooLarge,
    /// A data URL cannot be read.
    InvalidDataUrl,
    /// A URL is not http or https with a host.
    InvalidUrl,
    /// A URL is too long.
    UrlTooLong,
    /// The request has too many images.
    TooManyImages,
    /// A file is too large.
    ImageTooLarge,
    /// The files of a request are too large together.
    TotalSizeTooLarge,
    /// The destination filter allows no address of the host.
    DestinationRejected,
    /// The connection or the transfer failed.
    Fetch,
    /// The server answered with a status other than success.
    FetchStatus,
}

/// Result of the codec.
pub type Result<T> = std::result::Result<T, Error>;
