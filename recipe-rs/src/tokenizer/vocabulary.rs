//! Spellings and bytes of all token ids, the added ones included.

use std::hash::Hasher;

use super::byte_level::ByteAlphabet;
use super::file::TokenizerFile;
use super::scan::simd::prefetch;
use super::word::WordHasher;
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
    /// Open-addressed index of the spellings: a part of the hash and the id, `FREE` where a slot is free.
    index: Vec<u64>,
}

const MISSING: (u32, u32) = (u32::MAX, u32::MAX);
const FREE: u64 = u64::MAX;

/// Spellings whose places in memory are asked for before the first of them is looked at.
const AHEAD: usize = 16;

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
        for entry in &entries {
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
        }
        vocabulary.fill_index(&entries);
        Ok(vocabulary)
    }

    fn fill_index(&mut self, entries: &[Option<(&str, bool)>]) {
        let hashes: Vec<u64> = entries
            .iter()
            .map(|entry| entry.map_or(0, |(spelling, _)| hash(spelling)))
            .collect();
        for (id, entry) in entries.iter().enumerate() {
            if let Some(&ahead) = hashes.get(id + AHEAD) {
                prefetch(&self.index[self.home(ahead)]);
            }
            if let Some((spelling, _)) = entry {
                let slot = self.slot(spelling, hashes[id]);
                self.index[slot] = tag(hashes[id]) | id as u64;
            }
        }
    }

    /// Where the search for a hash begins.
    fn home(&self, hash: u64) -> usize {
        hash as usize & (self.index.len() - 1)
    }

    /// Slot of a spelling in the index, or the free slot where it would go.
    fn slot(&self, spelling: &str, hash: u64) -> usize {
        let mut slot = self.home(hash);
        loop {
            let found = self.index[slot];
            let is_it = found >> 32 == hash >> 32 && self.spelling(found as u32) == Some(spelling);
            if found == FREE || is_it {
                return slot;
            }
            slot = (slot + 1) & (self.index.len() - 1);
        }
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
        let found = self.index[self.slot(spelling, hash(spelling))];
        (found != FREE).then_some(found as u32)
    }

    /// Asks for what [`Self::id`] of a spelling will read, as far as the memory has brought it so far: called three
    /// times with other work between, it leaves nothing to wait for.
    pub(crate) fn prefetch(&self, spelling: &str, step: usize) {
        let found = &self.index[self.home(hash(spelling))];
        if step == 0 {
            return prefetch(found);
        }
        let id = *found as u32 as usize;
        if let Some(range) = self.spelling_ranges.get(id) {
            if step == 1 {
                prefetch(range);
            } else if let Some(first) = self.spellings.as_bytes().get(range.0 as usize) {
                prefetch(first);
            }
        }
    }
}

fn hash(spelling: &str) -> u64 {
    let mut hasher = WordHasher::default();
    hasher.write(spelling.as_bytes());
    hasher.finish()
}

/// The upper half of a hash, which no free slot has.
fn tag(hash: u64) -> u64 {
    hash & !u64::from(u32::MAX)
}
