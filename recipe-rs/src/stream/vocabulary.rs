//! The tokenizer as a stream needs it.

use std::borrow::Cow;
use std::collections::HashMap;

use super::detokenize::{TokenBytes, TokenForm};
use crate::tokenizer::Tokenizer;

/// A tokenizer with its added tokens by id.
#[derive(Debug)]
pub struct StreamVocabulary {
    tokenizer: Tokenizer,
    /// Spelling of each added token, and whether the vocabulary calls it special.
    added: HashMap<u32, (String, bool)>,
}

impl StreamVocabulary {
    /// Prepares a tokenizer; one vocabulary serves any number of streams.
    #[must_use]
    pub fn new(tokenizer: Tokenizer) -> Self {
        let added = tokenizer
            .added_tokens()
            .map(|token| (token.id, (token.content.clone(), token.special)))
            .collect();
        Self { tokenizer, added }
    }
}

impl TokenBytes for StreamVocabulary {
    fn token_form(&self, id: u32) -> TokenForm<'_> {
        if let Some((spelling, is_special)) = self.added.get(&id) {
            return TokenForm::Added {
                spelling: Cow::Borrowed(spelling),
                is_special: *is_special,
            };
        }
        match self.tokenizer.token_bytes(id) {
            Ok(data) => TokenForm::Plain(Cow::Owned(data)),
            Err(_) => TokenForm::Unknown,
        }
    }

    fn count_tokens(&self, text: &str) -> Option<u64> {
        self.tokenizer.encode(text).ok().map(|ids| ids.len() as u64)
    }

    fn strips_first_space(&self) -> bool {
        self.tokenizer.strips_first_space()
    }
}
