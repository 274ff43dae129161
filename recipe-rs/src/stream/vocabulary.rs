//! The tokenizer as a stream needs it.

use std::borrow::Cow;

use super::detokenize::{TokenBytes, TokenForm};
use crate::tokenizer::Tokenizer;

/// What a stream asks a tokenizer for.
#[derive(Debug)]
pub struct StreamVocabulary {
    tokenizer: Tokenizer,
}

impl StreamVocabulary {
    /// Takes a tokenizer, of which nothing is copied.
    #[must_use]
    pub fn new(tokenizer: Tokenizer) -> Self {
        Self { tokenizer }
    }
}

impl TokenBytes for StreamVocabulary {
    fn token_form(&self, id: u32) -> TokenForm<'_> {
        if let Some(token) = self.tokenizer.added_token(id) {
            return TokenForm::Added {
                spelling: Cow::Borrowed(&token.content),
                is_special: token.special,
            };
        }
        match self.tokenizer.borrowed_token_bytes(id) {
            Some(data) => TokenForm::Plain(data),
            None => TokenForm::Unknown,
        }
    }

    fn count_tokens(&self, text: &str) -> Option<u64> {
        self.tokenizer.encode(text).ok().map(|ids| ids.len() as u64)
    }

    fn strips_first_space(&self) -> bool {
        self.tokenizer.strips_first_space()
    }
}
