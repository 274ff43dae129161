//! Spellings and bytes of all token ids, the added ones included.

use std::hash::Hasher;

use super::byte_level::ByteAlphabet;
use super::file::TokenizerFile;
use super::word_table::WordHasher;
use crate::{Error, Result};

/// The largest id that a vocabulary may use; the encoder's tables pack ids into 22 bits.
pub(crate) const MAX_TOKEN_ID: u32 = (1 << 22) - 1;

/// Spelling, bytes and id of every token.
#[derive(Debug, Clone)]
pub(crate) struct Vocabulary {
    /// Bytes that each id stands for, one after another; `offsets[id]..offsets[id + 1]`.
    data: Vec<u8>,
    offsets: Vec<u32>,
    /// Spellings in the file, one after another, and where each id's starts and ends; `MISSING` for holes.
    spellings: String,
    spelling_ranges: Vec<(u32, u32)>,
    /// Open-addressed index of the spellings: ids, `FREE` where a slot is free.
    index: Vec<u32>,
}

const MISSING: (u32, u32) = (u32::MAX, u32::MAX);
const FREE: u32 = u32::MAX;

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
        }
        let alphabet = ByteAlphabet::new();
        let mut vocabulary = Self {
            data: Vec::with_capacity(entries.len() * 8),
            offsets: Vec::with_capacity(entries.len() + 1),
            spellings: String::with_capacity(entries.len() * 10),
            spelling_ranges: Vec::with_capacity(entries.len()),
            index: vec![FREE; (entries.len() * 2 + 1).next_power_of_two()],
        };
        vocabulary.offsets.push(0);
        for (entry, id) in entries.iter().zip(0..) {
            let mut range = MISSING;
            if let Some((spelling, by_alphabet)) = entry {
                if !(*by_alphabet && alphabet.decode_into(spelling, &mut vocabulary.data)) {
                    vocabulary.data.extend_from_slice(spelling.as_bytes());
                }
                range.0 = vocabulary.spellings.len() as u32;
                vocabulary.spellings.push_str(spelling);
                range.1 = vocabulary.spellings.len() as u32;
            }
            vocabulary.spelling_ranges.push(range);
            vocabulary.offsets.push(vocabulary.data.len() as u32);
            if let Some((spelling, _)) = entry {
                let slot = vocabulary.slot(spelling);
                vocabulary.index[slot] = id;
            }
        }
        Ok(vocabulary)
    }

    /// Slot of a spelling in the index, or the free slot where it would go.
    fn slot(&self, spelling: &str) -> usize {
        let mut hasher = WordHasher::default();
        hasher.write(spelling.as_bytes());
        let mask = self.index.len() - 1;
        let mut slot = hasher.finish() as usize & mask;
        while self.index[slot] != FREE && self.spelling(self.index[slot]) != Some(spelling) {
            slot = (slot + 1) & mask;
        }
        slot
    }

    /// Number of ids, holes included: one more than the largest id.
    #[must_use]
    pub(crate) fn len(&self) -> usize {
        self.spelling_ranges.len()
    }

    /// Bytes of `id`; empty for an id that the vocabulary lacks.
    #[must_use]
    #[inline]
    pub(crate) fn bytes(&self, id: u32) -> &[u8] {
        match self.offsets.get(id as usize..) {
            Some([start, end, ..]) => &self.data[*start as usize..*end as usize],
            _ => &[],
        }
    }

    /// Spelling of `id` in the file.
    #[must_use]
    pub(crate) fn spelling(&self, id: u32) -> Option<&str> {
        let &(start, end) = self.spelling_ranges.get(id as usize)?;
        self.spellings.get(start as usize..end as usize)
    }

    /// Id of a spelling in the file.
    #[must_use]
    pub(crate) fn id(&self, spelling: &str) -> Option<u32> {
        let id = self.index[self.slot(spelling)];
        (id != FREE).then_some(id)
    }
}
