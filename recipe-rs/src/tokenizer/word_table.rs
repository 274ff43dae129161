//! The table from short words to their ids, which all threads read and add to: one cache line a probe.
//!
//! A slot is written once: first the value, then the key. So whoever finds a key finds its value, without a lock.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::large_slice::LargeSlice;
use super::word::{MAX_KEYED_BYTES, MAX_SHORT_BYTES, PackedIds, has_key, long_key, short_key};

/// How many lines a key may stand away from its place. Words that find none free are not kept, so that nobody can make
/// the search long by the choice of words.
const MAX_SHORT_LINES: usize = 4;
const MAX_LONG_LINES: usize = 8;

/// Words learnt at least before the table is full, on top of those that it starts with.
const MIN_LEARNT: usize = 1 << 14;

/// What became of a word that was to be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Inserted {
    /// The table has it.
    Yes,
    /// There is no room where it belongs.
    Crowded,
    /// The table is full.
    Full,
}

#[derive(Debug, Default)]
#[repr(align(64))]
struct ShortLine {
    keys: [AtomicU64; 4],
    values: [AtomicU64; 4],
}

#[derive(Debug, Default)]
#[repr(align(64))]
struct LongLine {
    /// First and second half; the second is never zero in a slot that is taken, and is written last.
    keys: [[AtomicU64; 2]; 2],
    values: [AtomicU64; 2],
}

/// Words of at most 16 bytes, each with a [key](has_key), and their ids.
#[derive(Debug)]
pub(crate) struct WordTable {
    short: LargeSlice<ShortLine>,
    long: LargeSlice<LongLine>,
    /// Slots that may still be filled, short and long. Held while writing.
    room: Mutex<[usize; 2]>,
}

impl WordTable {
    /// A table for the given numbers of words up to [`MAX_SHORT_BYTES`] bytes and longer ones, with room to learn more.
    #[must_use]
    pub(crate) fn with_capacity(num_short: usize, num_long: usize) -> Self {
        let num_lines = |num_words: usize, slots: usize| {
            let (wanted, least) = (num_words * 5 / 2, num_words + 2 * MIN_LEARNT);
            (wanted.max(least) / slots).next_power_of_two()
        };
        let (num_short_lines, num_long_lines) = (num_lines(num_short, 4), num_lines(num_long, 2));
        Self {
            short: LargeSlice::new(num_short_lines, ShortLine::default),
            long: LargeSlice::new(num_long_lines, LongLine::default),
            room: Mutex::new([num_short_lines * 4 * 3 / 4, num_long_lines * 2 * 3 / 4]),
        }
    }

    /// The words of at most [`MAX_SHORT_BYTES`] bytes.
    #[inline(always)]
    pub(crate) fn short(&self) -> ShortWords<'_> {
        ShortWords { lines: &self.short }
    }

    /// The longer words.
    #[inline(always)]
    pub(crate) fn long(&self) -> LongWords<'_> {
        LongWords { lines: &self.long }
    }

    /// Ids of any word, none if the table lacks it.
    #[must_use]
    pub(crate) fn get(&self, word: &[u8]) -> PackedIds {
        match word.len() {
            _ if !has_key(word) => PackedIds::default(),
            ..=MAX_SHORT_BYTES => self.short().get(short_key(word, 0, word.len())),
            _ => self.long().get(long_key(word, 0, word.len())),
        }
    }

    /// Brings the line of a word into the processor's cache.
    pub(crate) fn prefetch(&self, word: &[u8]) {
        match word.len() {
            1..=MAX_SHORT_BYTES => self.short().prefetch(short_key(word, 0, word.len())),
            9..=MAX_KEYED_BYTES => self.long().prefetch(long_key(word, 0, word.len())),
            _ => {}
        }
    }

    /// Adds a word that [has a key](has_key), if the table lacks it.
    pub(crate) fn insert(&self, word: &[u8], value: PackedIds) -> Inserted {
        debug_assert!(has_key(word));
        if word.len() <= MAX_SHORT_BYTES {
            self.insert_short(short_key(word, 0, word.len()), value)
        } else {
            self.insert_long(long_key(word, 0, word.len()), value)
        }
    }

    fn insert_short(&self, key: u64, value: PackedIds) -> Inserted {
        // A writer that panicked has left a slot without a key, which is a free one.
        let mut room = self
            .room
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let first = self.short().line(key);
        for at in first..first + MAX_SHORT_LINES {
            let line = &self.short[at & (self.short.len() - 1)];
            for (slot, ids) in line.keys.iter().zip(&line.values) {
                let found = slot.load(Ordering::Relaxed);
                if found == key {
                    return Inserted::Yes;
                }
                if found == 0 {
                    if room[0] == 0 {
                        return Inserted::Full;
                    }
                    ids.store(value.0, Ordering::Relaxed);
                    slot.store(key, Ordering::Release);
                    room[0] -= 1;
                    return Inserted::Yes;
                }
            }
        }
        Inserted::Crowded
    }

    fn insert_long(&self, key: [u64; 2], value: PackedIds) -> Inserted {
        let mut room = self
            .room
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let first = self.long().line(key);
        for at in first..first + MAX_LONG_LINES {
            let line = &self.long[at & (self.long.len() - 1)];
            for (slot, ids) in line.keys.iter().zip(&line.values) {
                let found = [0, 1].map(|half: usize| slot[half].load(Ordering::Relaxed));
                if found == key {
                    return Inserted::Yes;
                }
                if found[1] == 0 {
                    if room[1] == 0 {
                        return Inserted::Full;
                    }
                    ids.store(value.0, Ordering::Relaxed);
                    slot[0].store(key[0], Ordering::Relaxed);
                    slot[1].store(key[1], Ordering::Release);
                    room[1] -= 1;
                    return Inserted::Yes;
                }
            }
        }
        Inserted::Crowded
    }

    /// A table with the words that this one started with; what was learnt is forgotten.
    ///
    /// Those words have one id and stand where they stood, before any learnt word of their line.
    #[must_use]
    pub(crate) fn without_learnt(&self) -> Self {
        let mut room = [self.short.len() * 3, self.long.len() * 3 / 2];
        let copied = |ids: &AtomicU64, room: &mut usize| {
            let value = ids.load(Ordering::Relaxed);
            let is_first = PackedIds(value).count() == 1;
            *room -= usize::from(is_first);
            is_first.then_some(value)
        };
        let mut table = Self {
            short: LargeSlice::new(self.short.len(), ShortLine::default),
            long: LargeSlice::new(self.long.len(), LongLine::default),
            room: Mutex::default(),
        };
        for (old, new) in self.short.iter().zip(table.short.iter_mut()) {
            for slot in 0..old.keys.len() {
                let key = old.keys[slot].load(Ordering::Acquire);
                if key != 0
                    && let Some(value) = copied(&old.values[slot], &mut room[0])
                {
                    new.keys[slot] = AtomicU64::new(key);
                    new.values[slot] = AtomicU64::new(value);
                }
            }
        }
        for (old, new) in self.long.iter().zip(table.long.iter_mut()) {
            for slot in 0..old.keys.len() {
                let second = old.keys[slot][1].load(Ordering::Acquire);
                if second != 0
                    && let Some(value) = copied(&old.values[slot], &mut room[1])
                {
                    let first = old.keys[slot][0].load(Ordering::Relaxed);
                    new.keys[slot] = [first, second].map(AtomicU64::new);
                    new.values[slot] = AtomicU64::new(value);
                }
            }
        }
        table.room = Mutex::new(room);
        table
    }
}

/// The short words of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ShortWords<'a> {
    lines: &'a [ShortLine],
}

impl ShortWords<'_> {
    #[inline(always)]
    fn line(self, key: u64) -> usize {
        folded_product(key) & (self.lines.len() - 1)
    }

    /// Brings the line of a word into the processor's cache.
    #[inline(always)]
    pub(crate) fn prefetch(self, key: u64) {
        if let Some(line) = self.lines.get(self.line(key)) {
            super::scan::simd::prefetch(line);
        }
    }

    /// Ids of a word by its [`short_key`], none if the table lacks it.
    #[must_use]
    #[inline(always)]
    pub(crate) fn get(self, key: u64) -> PackedIds {
        let first = self.line(key);
        for at in first..first + MAX_SHORT_LINES {
            let Some(line) = self.lines.get(at & (self.lines.len() - 1)) else {
                break;
            };
            // Without branches: which slot it is cannot be predicted.
            let (mut found, mut last) = (0, 0);
            for (slot, value) in line.keys.iter().zip(&line.values) {
                last = slot.load(Ordering::Acquire);
                let ids = value.load(Ordering::Relaxed);
                found = if last == key { ids } else { found };
            }
            if found != 0 || last == 0 {
                return PackedIds(found);
            }
        }
        PackedIds::default()
    }
}

/// The longer words of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LongWords<'a> {
    lines: &'a [LongLine],
}

impl LongWords<'_> {
    #[inline(always)]
    fn line(self, key: [u64; 2]) -> usize {
        folded_product(key[0] ^ key[1].wrapping_mul(0xD6E8_FEB8_6659_FD93).rotate_left(29))
            & (self.lines.len() - 1)
    }

    /// Brings the line of a word into the processor's cache.
    #[inline(always)]
    pub(crate) fn prefetch(self, key: [u64; 2]) {
        if let Some(line) = self.lines.get(self.line(key)) {
            super::scan::simd::prefetch(line);
        }
    }

    /// Ids of a word by its [`long_key`], none if the table lacks it.
    #[must_use]
    #[inline(always)]
    pub(crate) fn get(self, key: [u64; 2]) -> PackedIds {
        let first = self.line(key);
        for at in first..first + MAX_LONG_LINES {
            let Some(line) = self.lines.get(at & (self.lines.len() - 1)) else {
                break;
            };
            let (mut found, mut last) = (0, 0);
            for (slot, value) in line.keys.iter().zip(&line.values) {
                last = slot[1].load(Ordering::Acquire);
                let is_it = (last ^ key[1]) | (slot[0].load(Ordering::Relaxed) ^ key[0]) == 0;
                let ids = value.load(Ordering::Relaxed);
                found = if is_it { ids } else { found };
            }
            if found != 0 || last == 0 {
                return PackedIds(found);
            }
        }
        PackedIds::default()
    }
}

/// A hash each of whose bits depends on all bits of the key.
#[inline(always)]
fn folded_product(key: u64) -> usize {
    let product = u128::from(key) * 0x9E37_79B9_7F4A_7C15;
    ((product ^ product >> 64) >> 32) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(number: usize, length: usize) -> Vec<u8> {
        format!("{number:0length$}").into_bytes()
    }

    #[test]
    fn words_are_found_until_the_table_is_full_and_learnt_ones_are_forgotten() {
        let table = WordTable::with_capacity(20, 10);
        let first = PackedIds::new(&[7]).unwrap();
        for (number, length) in [(0, 1), (1, 8), (2, 9), (3, 16)] {
            assert_eq!(table.insert(&word(number, length), first), Inserted::Yes);
        }
        for length in [7, 12] {
            let value = |number: usize| PackedIds::new(&[number as u32, 5]).unwrap();
            let mut number = 0;
            let mut crowded = Vec::new();
            loop {
                match table.insert(&word(number, length), value(number)) {
                    Inserted::Yes => {}
                    Inserted::Crowded => crowded.push(number),
                    Inserted::Full => break,
                }
                number += 1;
            }
            assert!(
                number > MIN_LEARNT && crowded.len() < number / 50,
                "{number} {}",
                crowded.len()
            );
            assert!(table.get(&word(number, length)).is_none());
            for number in 0..number {
                let expected = if crowded.contains(&number) {
                    PackedIds::default()
                } else {
                    value(number)
                };
                assert_eq!(table.get(&word(number, length)), expected);
            }
        }
        let table = table.without_learnt();
        for (number, length) in [(0, 1), (1, 8), (2, 9), (3, 16)] {
            assert_eq!(table.get(&word(number, length)), first);
        }
        for length in [7, 12] {
            assert!(table.get(&word(5, length)).is_none());
            assert_eq!(table.insert(&word(5, length), first), Inserted::Yes);
        }
    }

    #[test]
    fn chosen_words_cannot_make_the_search_long() {
        let table = WordTable::with_capacity(20, 10);
        let value = PackedIds::new(&[1, 2]).unwrap();
        let same_line: Vec<Vec<u8>> = (0..)
            .map(|number| word(number, 7))
            .filter(|word| table.short().line(short_key(word, 0, 7)) == 3)
            .take(30)
            .collect();
        let inserted = same_line.iter().map(|word| table.insert(word, value));
        let num_kept = inserted.filter(|&result| result == Inserted::Yes).count();
        assert_eq!(num_kept, MAX_SHORT_LINES * 4);
    }

    #[test]
    fn readers_never_see_a_key_without_its_ids() {
        let table = WordTable::with_capacity(1, 1);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for round in 0..40 {
                        for number in 0..2000 {
                            for length in [6, 14] {
                                let word = word(number, length);
                                let value = PackedIds::new(&[number as u32, 9]).unwrap();
                                let found = table.get(&word);
                                assert!(found == value || found.is_none());
                                if number % 40 == round {
                                    table.insert(&word, value);
                                }
                            }
                        }
                    }
                });
            }
        });
    }
}
