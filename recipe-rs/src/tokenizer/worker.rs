//! The words of one text on their way to ids: split, looked up in batches, merged where the table does not know them.

use std::collections::HashMap;
use std::sync::Arc;

use super::byte_bpe::ByteBpe;
use super::cjk::{self, Segment};
use super::merge::MergeScratch;
use super::scan::classify::Classify;
use super::seams;
use super::word::{
    MAX_KEYED_BYTES, MAX_PACKED, MAX_SHORT_BYTES, PackedIds, WordHash, has_key, key_in_block,
    long_key, short_key,
};
use super::word_table::{Inserted, WordTable};

/// Words of a batch; their table lines are on the way from memory while the rest of the batch is split.
const BATCH: usize = 256;

/// A block of 64 bytes or a run of CJK characters may add this many words at most before the batch is looked up.
const MAX_ADDED: usize = 64;

const CAPACITY: usize = BATCH + MAX_ADDED;

/// Longer words are not part of a batch.
const MAX_BATCHED_BYTES: usize = 3 * cjk::MAX_CHARACTERS;

/// Words that the table does not hold are remembered up to this number.
const MAX_LISTED: usize = 1 << 12;

/// State of one thread that encodes: its buffers, and words of many tokens that it has seen.
#[derive(Debug)]
pub(crate) struct Worker {
    batch: Box<Batch>,
    resolver: Resolver,
    run: Box<cjk::Run>,
    ids: Vec<u32>,
}

/// Words in the order of the text.
#[derive(Debug)]
struct Batch {
    /// Where the text of the batch starts.
    start: usize,
    len: usize,
    words: [Span; CAPACITY],
    /// Key of each short word; 0 for the longer ones, and where the ids are known already.
    keys: [u64; CAPACITY],
    values: [PackedIds; CAPACITY],
    /// Which words are longer ones.
    long: [u16; CAPACITY],
    long_len: usize,
    /// Which words the table lacks.
    missing: [u16; CAPACITY],
    /// Ids on their way out.
    ids: [u32; (CAPACITY + 1) * MAX_PACKED],
}

/// A word: where it starts behind the start of the batch, and how many bytes it has.
#[derive(Debug, Clone, Copy, Default)]
struct Span {
    start: u32,
    length: u32,
}

/// Finds the ids of words that are in no table, or in none but its own.
#[derive(Debug)]
struct Resolver {
    words: Arc<WordTable>,
    /// Words that do not fit into the table: too long, or of too many ids.
    listed: HashMap<Box<[u8]>, Box<[u32]>, WordHash>,
    scratch: MergeScratch,
    /// Ids that do not fit into a packed value, for the batch.
    list: Vec<u32>,
}

impl Worker {
    /// A worker that uses a table.
    #[must_use]
    pub(crate) fn new(words: Arc<WordTable>) -> Self {
        Self {
            batch: Box::new(Batch {
                start: 0,
                len: 0,
                words: [Span::default(); CAPACITY],
                keys: [0; CAPACITY],
                values: [PackedIds::default(); CAPACITY],
                long: [0; CAPACITY],
                long_len: 0,
                missing: [0; CAPACITY],
                ids: [0; (CAPACITY + 1) * MAX_PACKED],
            }),
            resolver: Resolver {
                words,
                listed: HashMap::default(),
                scratch: MergeScratch::default(),
                list: Vec::new(),
            },
            run: Box::default(),
            ids: Vec::new(),
        }
    }

    /// Appends the ids of `text` to `out`. Compiled once for each set of instructions, hence inlined.
    #[inline(always)]
    pub(crate) fn encode_with(
        &mut self,
        bpe: &ByteBpe,
        classify: &impl Classify,
        text: &[u8],
        out: &mut Vec<u32>,
    ) {
        self.resolver.words = bpe.words();
        let mut at = 0;
        while at < text.len() {
            let table = Arc::clone(&self.resolver.words);
            self.batch.start = at;
            let mut alone = 0;
            while self.batch.len < BATCH && at < text.len() && alone == 0 {
                at = self.split_next(bpe, &table, classify, text, at, &mut alone);
            }
            self.resolve(bpe, &table, text);
            self.emit(out);
            if alone != 0 {
                self.resolver.merge_alone(bpe, &text[at..at + alone], out);
                at += alone;
            }
        }
    }

    /// Splits off words at `at`, which starts one, and returns the end of what was split; the length of a word that
    /// does not go into the batch is put into `alone` instead.
    #[inline(always)]
    fn split_next(
        &mut self,
        bpe: &ByteBpe,
        table: &WordTable,
        classify: &impl Classify,
        text: &[u8],
        at: usize,
        alone: &mut usize,
    ) -> usize {
        let lead = text[at];
        if lead < 0x80 {
            let rest = &text[at..];
            let padded;
            let window = if let Some(window) = rest.first_chunk::<72>() {
                window
            } else {
                padded = zero_padded(rest);
                &padded
            };
            if let Some(block) = window.first_chunk::<64>() {
                let masks = classify.masks(block);
                let starts = bpe.pre_tokenizer().window_starts(&masks, block);
                // The end of the last word is not known from the block.
                let end = self.batch.push_block(table, at, window, starts);
                if end > at {
                    return end;
                }
            }
        } else if (0xE3..=0xE9).contains(&lead)
            && let Some(cjk) = &bpe.cjk
        {
            let length = self.split_cjk(bpe, table, cjk, text, at, alone);
            if length > 0 || *alone > 0 {
                return at + length;
            }
        }
        let end = bpe.pre_tokenizer().pre_token_end(text, at);
        if end - at > MAX_BATCHED_BYTES || text[end - 1] == 0 {
            *alone = end - at;
            return at;
        }
        self.batch.push(table, text, at, end - at);
        end
    }

    /// Puts the ids of CJK characters at `at` into the batch and returns their length in bytes; the length of a segment
    /// that does not go into the batch is put into `alone` instead.
    #[inline(always)]
    fn split_cjk(
        &mut self,
        bpe: &ByteBpe,
        table: &WordTable,
        cjk: &cjk::CjkTable,
        text: &[u8],
        at: usize,
        alone: &mut usize,
    ) -> usize {
        let Self {
            batch, run, ids, ..
        } = self;
        ids.clear();
        let mut end = at;
        cjk.segments(
            &text[at..],
            &bpe.merges,
            run,
            |run, segment| match segment {
                Segment::Ids {
                    first,
                    count,
                    length,
                } => {
                    ids.push(run.ids[first]);
                    if count > 1 {
                        ids.extend_from_slice(&run.ids[first + 1..first + count]);
                    }
                    end += length;
                }
                Segment::Bytes(length) if length > MAX_BATCHED_BYTES => *alone = length,
                Segment::Bytes(length) => {
                    batch.push_ids(ids);
                    ids.clear();
                    batch.push(table, text, end, length);
                    end += length;
                }
            },
        );
        batch.push_ids(ids);
        end - at
    }

    /// Fills in the values of the batch.
    #[inline(always)]
    fn resolve(&mut self, bpe: &ByteBpe, table: &WordTable, text: &[u8]) {
        let Self {
            batch, resolver, ..
        } = self;
        let (short_words, long_words) = (table.short(), table.long());
        let Batch {
            start,
            len,
            words,
            keys,
            values,
            long,
            long_len,
            missing,
            ..
        } = batch.as_mut();
        let long = &long[..*long_len];
        let keyed = |index: u16| {
            let word = words[usize::from(index)];
            let length = word.length as usize;
            (length <= MAX_KEYED_BYTES)
                .then(|| long_key(text, *start + word.start as usize, length))
        };
        for key in long.iter().filter_map(|&index| keyed(index)) {
            long_words.prefetch(key);
        }
        let mut missing_len = 0;
        for (index, (&key, value)) in keys[..*len].iter().zip(values.iter_mut()).enumerate() {
            let found = short_words.get(key);
            *value = if key == 0 { *value } else { found };
            missing[missing_len] = index as u16;
            missing_len += usize::from(found.is_none() && key != 0);
        }
        for &index in long {
            let found = keyed(index).map_or(PackedIds::default(), |key| long_words.get(key));
            values[usize::from(index)] = found;
            missing[missing_len] = index;
            missing_len += usize::from(found.is_none());
        }
        resolver.list.clear();
        for &index in &missing[..missing_len] {
            let word = words[usize::from(index)];
            let first = *start + word.start as usize;
            let word = &text[first..first + word.length as usize];
            values[usize::from(index)] = resolver.find(bpe, word);
        }
        *long_len = 0;
    }

    /// Appends the ids of the batch to `out` and empties it.
    #[inline(always)]
    fn emit(&mut self, out: &mut Vec<u32>) {
        let Batch {
            ids, values, len, ..
        } = self.batch.as_mut();
        let mut at = 0;
        for value in &values[..*len] {
            let count = value.count();
            if count == 0 {
                out.extend_from_slice(&ids[..at]);
                at = 0;
                out.extend_from_slice(&self.resolver.list[value.range()]);
            }
            if let Some(place) = ids.get_mut(at..).and_then(<[u32]>::first_chunk_mut) {
                *place = value.ids();
            }
            at += count;
        }
        out.extend_from_slice(&ids[..at]);
        *len = 0;
    }
}

/// `rest`, which is shorter, followed by zeros; those are control characters to a pre-tokenizer.
#[inline(always)]
fn zero_padded(rest: &[u8]) -> [u8; 72] {
    let mut block = [0; 72];
    block[..rest.len()].copy_from_slice(rest);
    block
}

impl Batch {
    /// Adds the words between the bits of `starts`, of which the first is that of `at`, where `window` is; returns where
    /// the last starts.
    #[inline(always)]
    fn push_block(
        &mut self,
        table: &WordTable,
        at: usize,
        window: &[u8; 72],
        starts: u64,
    ) -> usize {
        let short_words = table.short();
        let mut ends = starts & starts.wrapping_sub(1);
        let count = ends.count_ones() as usize;
        let base = (at - self.start) as u32;
        let mut start = 0;
        let range = self.len..self.len + count;
        let places = self.words[range.clone()]
            .iter_mut()
            .zip(&mut self.keys[range.clone()]);
        for (index, (word, key)) in range.zip(places) {
            let end = ends.trailing_zeros();
            let length = end - start;
            *word = Span {
                start: base + start,
                length,
            };
            *key = key_in_block(window, start as usize, length as usize);
            short_words.prefetch(*key);
            self.long[self.long_len] = index as u16;
            self.long_len += usize::from(length as usize > MAX_SHORT_BYTES);
            start = end;
            ends &= ends.wrapping_sub(1);
        }
        self.len += count;
        at + start as usize
    }

    #[inline(always)]
    fn push(&mut self, table: &WordTable, text: &[u8], at: usize, length: usize) {
        self.words[self.len] = Span {
            start: (at - self.start) as u32,
            length: length as u32,
        };
        let mut key = 0;
        if length <= MAX_SHORT_BYTES {
            key = short_key(text, at, length);
            table.short().prefetch(key);
        } else {
            self.long[self.long_len] = self.len as u16;
            self.long_len += 1;
        }
        self.keys[self.len] = key;
        self.len += 1;
    }

    /// Adds ids that are known.
    #[inline(always)]
    fn push_ids(&mut self, ids: &[u32]) {
        for ids in ids.chunks(MAX_PACKED) {
            self.keys[self.len] = 0;
            self.values[self.len] = PackedIds::new(ids).unwrap_or_default();
            self.len += 1;
        }
    }
}

impl Resolver {
    /// Ids of a word that the table lacked when the batch was looked up; it has it afterwards.
    #[inline(always)]
    fn find(&mut self, bpe: &ByteBpe, word: &[u8]) -> PackedIds {
        let found = self.words.get(word);
        if !found.is_none() {
            return found;
        }
        if word.len() <= MAX_KEYED_BYTES
            && !bpe.prefers_whole_words()
            && let Some((ids, count)) = bpe.merges.merge_short(word)
            && let Some(packed) = PackedIds::new(&ids[..count])
        {
            self.learn(bpe, word, packed);
            return packed;
        }
        self.find_rare(bpe, word)
    }

    /// The same for words that are long, have many ids, or may have one that the merges do not give.
    #[inline(never)]
    fn find_rare(&mut self, bpe: &ByteBpe, word: &[u8]) -> PackedIds {
        if (word.len() > MAX_KEYED_BYTES || bpe.prefers_whole_words())
            && let Some(id) = bpe.other_words.get(word)
        {
            return PackedIds::new(&[*id]).unwrap_or_default();
        }
        let first = self.list.len();
        if let Some(ids) = self.listed.get(word) {
            self.list.extend_from_slice(ids);
            return PackedIds::listed(first, self.list.len());
        }
        seams::merge(bpe, word, &mut self.scratch, &mut self.list);
        let ids = &self.list[first..];
        if has_key(word)
            && let Some(packed) = PackedIds::new(ids)
        {
            self.list.truncate(first);
            self.learn(bpe, word, packed);
            return packed;
        }
        if self.listed.len() >= MAX_LISTED {
            self.listed.clear();
        }
        self.listed.insert(word.into(), ids.into());
        PackedIds::listed(first, self.list.len())
    }

    fn learn(&mut self, bpe: &ByteBpe, word: &[u8], ids: PackedIds) {
        if self.words.insert(word, ids) == Inserted::Full {
            self.words = bpe.renewed_words(&self.words);
            self.words.insert(word, ids);
        }
    }

    /// Appends the ids of a word that is remembered nowhere.
    #[cold]
    fn merge_alone(&mut self, bpe: &ByteBpe, word: &[u8], out: &mut Vec<u32>) {
        match bpe.other_words.get(word) {
            Some(id) => out.push(*id),
            None => seams::merge(bpe, word, &mut self.scratch, out),
        }
    }
}
