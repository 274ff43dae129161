//! Spellings and bytes of all token ids, the added ones included.

use std::collections::HashMap;

use super::byte_level::ByteAlphabet;
use super::file::TokenizerFile;
use crate::{Error, Result};

/// The largest id that a vocabulary may use; the encoder's tables pack ids into 22 bits.
pub(crate) const MAX_TOKEN_ID: u32 = (1 << 22) - 1;

/// Spelling, bytes and id of every token.
#[derive(Debug, Clone)]
pub(crate) struct Vocabulary {
    /// Bytes that each id stands for, one after another; `offsets[id]..offsets[id + 1]`.
    data: Vec<u8>,
    offsets: Vec<u32>,
    /// Spelling as the file writes it, for the ids that exist.
    spellings: HashMap<Box<str>, u32>,
    spelling_of: Vec<Option<Box<str>>>,
}

impl Vocabulary {
    /// Collects the model's vocabulary and the added tokens of `file`.
    ///
    /// With `byte_level` the spellings are stand-ins for bytes; a spelling that is none (as some added tokens are)
    /// stands for itself. Otherwise every spelling stands for itself.
    ///
    /// # Errors
    /// [`Error::Tokenizer`] when an id is too large.
    pub(crate) fn from_file(file: &TokenizerFile<'_>, byte_level: bool) -> Result<Self> {
        let model = file
            .model
            .vocab
            .0
            .iter()
            .map(|(token, id)| (token, *id, byte_level));
        let added = file
            .added_tokens
            .iter()
            .map(|token| (&token.content, token.id, false));
        let mut entries: Vec<Option<(&str, bool)>> = Vec::with_capacity(file.model.vocab.0.len());
        let mut spellings = HashMap::with_capacity(file.model.vocab.0.len());
        for (spelling, id, by_alphabet) in model.chain(added) {
            if id > MAX_TOKEN_ID {
                return Err(Error::Tokenizer {
                    message: format!(
                        "token {spelling:?} has id {id}, the largest supported is {MAX_TOKEN_ID}"
                    ),
                    offset: None,
                });
            }
            let slot = id as usize;
            if slot >= entries.len() {
                entries.resize(slot + 1, None);
            }
            entries[slot] = Some((spelling, by_alphabet));
            spellings.insert(Box::from(spelling.as_ref()), id);
        }
        let alphabet = ByteAlphabet::new();
        let mut data = Vec::with_capacity(entries.len() * 8);
        let mut offsets = Vec::with_capacity(entries.len() + 1);
        offsets.push(0);
        for entry in &entries {
            if let Some((spelling, by_alphabet)) = entry
                && !(*by_alphabet && alphabet.decode_into(spelling, &mut data))
            {
                data.extend_from_slice(spelling.as_bytes());
            }
            offsets.push(data.len() as u32);
        }
        let spelling_of = entries
            .iter()
            .map(|entry| entry.map(|(text, _)| Box::from(text)))
            .collect();
        Ok(Self {
            data,
            offsets,
            spellings,
            spelling_of,
        })
    }

    /// Number of ids, holes included: one more than the largest id.
    #[must_use]
    pub(crate) fn len(&self) -> usize {
        self.spelling_of.len()
    }

    /// Bytes of `id`; empty for an id that the vocabulary lacks.
    #[must_use]
    #[inline]
    pub(crate) fn bytes(&self, id: u32) -> &[u8] {
        let slot = id as usize;
        if slot + 1 >= self.offsets.len() {
            return &[];
        }
        &self.data[self.offsets[slot] as usize..self.offsets[slot + 1] as usize]
    }

    /// Spelling of `id` in the file.
    #[must_use]
    pub(crate) fn spelling(&self, id: u32) -> Option<&str> {
        self.spelling_of.get(id as usize)?.as_deref()
    }

    /// Id of a spelling in the file.
    #[must_use]
    pub(crate) fn id(&self, spelling: &str) -> Option<u32> {
        self.spellings.get(spelling).copied()
    }
}
