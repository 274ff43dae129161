//! The seam between the tokenizer and the engines that turn plain text into ids.

use std::fmt::Debug;

use crate::Result;

/// Turns plain text, in which added tokens have no meaning, into token ids.
pub(crate) trait PlainEncoder: Debug + Send + Sync {
    /// Appends the ids of `text` to `out`.
    ///
    /// `at_start` says whether `text` opens the sequence, which matters to vocabularies that prefix it with a space.
    ///
    /// # Errors
    /// [`crate::Error::Tokenizer`] when a character has no token and the vocabulary has no unknown token.
    fn encode_into(&self, text: &str, at_start: bool, out: &mut Vec<u32>) -> Result<()>;

    /// The last position inside `text` where cutting it changes no token, if one is known; text behind it matters not.
    fn last_safe_cut(&self, text: &str) -> Option<usize>;

    /// A position in `from..until` where cutting `text` changes no token, if one is known.
    fn safe_cut(&self, text: &str, from: usize, until: usize) -> Option<usize>;
}
