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
}

/// Result of the codec.
pub type Result<T> = std::result::Result<T, Error>;
