//! The words of one text on their way to ids: split, looked up in batches, merged where the tables do not know them.

use std::collections::HashMap;

use super::bridge::cjk_letter;
use super::byte_bpe::ByteBpe;
use super::merge::MergeScratch;
use super::seams;
use super::word_table::{
    MAX_KEYED_BYTES, MAX_PACKED, MAX_SHORT_BYTES, PackedIds, WordHash, WordTable, has_key,
    key_hash, word_key,
};

/// Words of a batch; their table lines are on the way from memory while the rest of the batch is split.
const BATCH: usize = 96;

/// A block of 64 bytes or a run of CJK characters may add this many words at most before the batch is looked up.
const MAX_ADDED: usize = 64;

/// Words that the vocabulary table lacks, with room to grow to this many short and long ones.
const MAX_CACHED: (usize, usize) = (1 << 16, 1 << 15);
const FIRST_CACHED: (usize, usize) = (1 << 10, 1 << 9);

/// Words of more than [`MAX_KEYED_BYTES`] bytes are remembered up to this length and number.
const MAX_LISTED_BYTES: usize = 128;
const MAX_LISTED: usize = 1 << 12;

/// State of one thread that encodes: what it has learnt, and its buffers.
#[derive(Debug)]
pub(crate) struct Worker {
    /// Words of several tokens that were merged before.
    cache: WordTable,
    listed: HashMap<Box<[u8]>, Box<[u32]>, WordHash>,
    scratch: MergeScratch,
    merged: Vec<u32>,
    batch: Batch,
    found: Box<[PackedIds; BATCH + MAX_ADDED]>,
}

#[derive(Debug)]
struct Batch {
    len: usize,
    words: Box<[Word; BATCH + MAX_ADDED]>,
}

/// A word of the batch.
#[derive(Debug, Clone, Copy, Default)]
struct Word {
    /// Set where `has_key`.
    key: u128,
    hash: u32,
    has_key: bool,
    length: u32,
}

impl Worker {
    /// A worker that has learnt nothing.
    #[must_use]
    pub(crate) fn new() -> Self {
        Self {
            cache: WordTable::with_capacity(FIRST_CACHED.0, FIRST_CACHED.1),
            listed: HashMap::default(),
            scratch: MergeScratch::default(),
            merged: Vec::new(),
            batch: Batch {
                len: 0,
                words: Box::new([Word::default(); BATCH + MAX_ADDED]),
            },
            found: Box::new([PackedIds::default(); BATCH + MAX_ADDED]),
        }
    }

    /// Appends the ids of `text` to `out`.
    pub(crate) fn encode_into(&mut self, bpe: &ByteBpe, text: &[u8], out: &mut Vec<u32>) {
        out.reserve(text.len() / 3);
        let mut at = 0;
        while at < text.len() {
            at = self.split_next(bpe, text, at);
            if self.batch.len >= BATCH {
                self.look_up(bpe, text, at, out);
            }
        }
        self.look_up(bpe, text, at, out);
    }

    /// Splits off at least one word at `at`, which starts one, and returns the end of what was split.
    #[inline]
    fn split_next(&mut self, bpe: &ByteBpe, text: &[u8], at: usize) -> usize {
        let lead = text[at];
        if lead < 0x80 {
            if let Some(block) = text[at..].first_chunk::<64>() {
                let masks = (bpe.classify)(block);
                let starts = bpe.pre_tokenizer().window_starts(&masks, block);
                let mut ends = starts & starts.wrapping_sub(1);
                if ends != 0 {
                    let mut start = at;
                    while ends != 0 {
                        let end = at + ends.trailing_zeros() as usize;
                        self.batch.push(bpe, text, start, end);
                        start = end;
                        ends &= ends - 1;
                    }
                    return start;
                }
            }
        } else if (0xE3..=0xE9).contains(&lead) && bpe.bridged.is_some() {
            let end = self.split_cjk(bpe, text, at);
            if end > at {
                return end;
            }
        }
        let end = bpe.pre_tokenizer().pre_token_end(text, at);
        self.batch.push(bpe, text, at, end);
        end
    }

    /// Splits a run of CJK characters where no token can stand across; returns `at` if there is no such run.
    #[inline]
    fn split_cjk(&mut self, bpe: &ByteBpe, text: &[u8], at: usize) -> usize {
        let Some(bridged) = &bpe.bridged else {
            return at;
        };
        let next = |at: usize| cjk_letter(*text.get(at..)?.first_chunk::<3>()?);
        let Some(mut before) = next(at) else {
            return at;
        };
        let (mut start, mut end) = (at, at + 3);
        loop {
            let after = next(end);
            let is_cut = after.is_none_or(|after| !bridged.contains(before, after));
            if is_cut {
                self.batch.push(bpe, text, start, end);
                start = end;
            }
            let Some(after) = after else { return end };
            if is_cut && self.batch.len >= BATCH {
                return end;
            }
            before = after;
            end += 3;
        }
    }

    /// Appends the ids of the batch to `out` and empties it; its words end at `text_end`.
    fn look_up(&mut self, bpe: &ByteBpe, text: &[u8], text_end: usize, out: &mut Vec<u32>) {
        let len = std::mem::take(&mut self.batch.len);
        let words = &self.batch.words[..len];
        for (word, found) in words.iter().zip(self.found.iter_mut()) {
            *found = PackedIds::default();
            if word.has_key {
                *found = bpe.words.get(word.key, word.hash, word.length as usize);
                if found.is_none() {
                    self.cache.prefetch(word.hash, word.length as usize);
                }
            }
        }
        let mut at = out.len();
        let mut start = text_end - words.iter().map(|word| word.length as usize).sum::<usize>();
        out.resize(at + (len + 1) * MAX_PACKED, 0);
        for index in 0..len {
            let Word {
                key,
                hash,
                has_key,
                length,
            } = self.batch.words[index];
            let length = length as usize;
            let end = start + length;
            let mut found = self.found[index];
            if found.is_none() && has_key {
                found = self.cache.get(key, hash, length);
            }
            if found.is_none() {
                self.merge(bpe, &text[start..end]);
                if has_key && let Some(ids) = PackedIds::new(&self.merged) {
                    self.remember(key, hash, length, ids);
                }
                out.truncate(at);
                out.extend_from_slice(&self.merged);
                at = out.len();
                out.resize(at + (len - index) * MAX_PACKED, 0);
            } else {
                out[at..at + MAX_PACKED].copy_from_slice(&found.ids());
                at += found.count();
            }
            start = end;
        }
        out.truncate(at);
    }

    /// Puts the ids of a word that no table knows into `merged`.
    #[cold]
    fn merge(&mut self, bpe: &ByteBpe, word: &[u8]) {
        self.merged.clear();
        if !has_key(word) {
            if let Some(ids) = bpe.long_words.get(word) {
                self.merged.push(*ids);
                return;
            }
            if let Some(ids) = self.listed.get(word) {
                self.merged.extend_from_slice(ids);
                return;
            }
        }
        seams::merge(bpe, word, &mut self.scratch, &mut self.merged);
        if (MAX_KEYED_BYTES + 1..=MAX_LISTED_BYTES).contains(&word.len()) {
            if self.listed.len() >= MAX_LISTED {
                self.listed.clear();
            }
            self.listed
                .insert(word.into(), self.merged.as_slice().into());
        }
    }

    /// Adds a word to the cache, which grows up to its limit and is emptied there.
    fn remember(&mut self, key: u128, hash: u32, length: usize, ids: PackedIds) {
        if !self.cache.insert(key, hash, length, ids) {
            let limit = if length <= MAX_SHORT_BYTES {
                MAX_CACHED.0
            } else {
                MAX_CACHED.1
            };
            self.cache.grow(length, limit);
            self.cache.insert(key, hash, length, ids);
        }
    }
}

impl Batch {
    #[inline]
    fn push(&mut self, bpe: &ByteBpe, text: &[u8], start: usize, end: usize) {
        let length = end - start;
        let mut word = Word {
            length: length as u32,
            ..Word::default()
        };
        if has_key(&text[start..end]) {
            word.key = word_key(text, start, length);
            word.hash = key_hash(word.key);
            word.has_key = true;
            bpe.words.prefetch(word.hash, length);
        }
        self.words[self.len] = word;
        self.len += 1;
    }
}
