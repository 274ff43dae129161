//! Tables from short words to their ids: one cache line a probe.

use std::hash::{BuildHasherDefault, Hasher};

/// Hash of the standard map for words without a key.
pub(crate) type WordHash = BuildHasherDefault<WordHasher>;

/// A fast hash of byte strings. Who picks the words can make them collide, so the maps that use it stay small.
#[derive(Debug, Default)]
pub(crate) struct WordHasher(u64);

impl Hasher for WordHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (chunks, rest) = bytes.as_chunks::<8>();
        let mut tail = [0; 8];
        tail[..rest.len()].copy_from_slice(rest);
        for chunk in chunks.iter().chain([&tail]) {
            self.write_u64(u64::from_le_bytes(*chunk));
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(23) ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}

/// Words of up to this many bytes have a key.
pub(crate) const MAX_KEYED_BYTES: usize = 16;

/// Words of up to this many bytes have a key of half the size.
pub(crate) const MAX_SHORT_BYTES: usize = 8;

/// Ids that fit into [`PackedIds`].
pub(crate) const MAX_PACKED: usize = 3;

const ID_BITS: u32 = 20;
const ID_MASK: u64 = (1 << ID_BITS) - 1;
const COUNT_SHIFT: u32 = 62;

/// Ids below this fit.
pub(crate) const ID_LIMIT: u32 = 1 << ID_BITS;

/// One to three ids in a word; 0 stands for nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct PackedIds(u64);

impl PackedIds {
    /// Packs ids, if there are one to three, all below [`ID_LIMIT`].
    #[must_use]
    pub(crate) fn new(ids: &[u32]) -> Option<Self> {
        if ids.is_empty() || ids.len() > MAX_PACKED || ids.iter().any(|&id| id >= ID_LIMIT) {
            return None;
        }
        let packed = ids
            .iter()
            .rev()
            .fold(0, |packed, &id| packed << ID_BITS | u64::from(id));
        Some(Self(packed | (ids.len() as u64) << COUNT_SHIFT))
    }

    /// Whether there are no ids.
    #[must_use]
    #[inline]
    pub(crate) fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Number of ids.
    #[must_use]
    #[inline]
    pub(crate) fn count(self) -> usize {
        (self.0 >> COUNT_SHIFT) as usize
    }

    /// The ids, of which the first [`Self::count`] count.
    #[must_use]
    #[inline]
    pub(crate) fn ids(self) -> [u32; MAX_PACKED] {
        let id = |index: u32| (self.0 >> (index * ID_BITS) & ID_MASK) as u32;
        [id(0), id(1), id(2)]
    }
}

/// Whether a word has a key: it is short, and does not end in a zero byte, which a key is padded with.
#[must_use]
#[inline]
pub(crate) fn has_key(word: &[u8]) -> bool {
    word.len() <= MAX_KEYED_BYTES && word.last().is_some_and(|&byte| byte != 0)
}

/// Key of a word that [has one](has_key): its bytes, padded with zeros.
#[must_use]
#[inline]
pub(crate) fn word_key(text: &[u8], start: usize, length: usize) -> u128 {
    const KEEP: [u128; MAX_KEYED_BYTES + 1] = {
        let mut keep = [u128::MAX; MAX_KEYED_BYTES + 1];
        let mut length = 0;
        while length < MAX_KEYED_BYTES {
            keep[length] = (1 << (8 * length)) - 1;
            length += 1;
        }
        keep
    };
    if let Some(bytes) = text
        .get(start..)
        .and_then(<[u8]>::first_chunk::<MAX_KEYED_BYTES>)
    {
        return u128::from_le_bytes(*bytes) & KEEP[length];
    }
    let mut bytes = [0; MAX_KEYED_BYTES];
    bytes[..length].copy_from_slice(&text[start..start + length]);
    u128::from_le_bytes(bytes)
}

/// Hash of a key.
#[must_use]
#[inline]
pub(crate) fn key_hash(key: u128) -> u32 {
    let (low, high) = (key as u64, (key >> 64) as u64);
    let mixed =
        (low ^ high.wrapping_mul(0x9E37_79B9_7F4A_7C15)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    (mixed ^ mixed >> 29) as u32 ^ (mixed >> 40) as u32
}

/// One cache line of a table.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Line<K, const N: usize> {
    keys: [K; N],
    values: [PackedIds; N],
}

/// An open-addressed table whose slots are lines of `N` keys.
#[derive(Debug, Clone)]
struct Lines<K, const N: usize> {
    lines: Box<[Line<K, N>]>,
    len: usize,
}

impl<K: Copy + Default + PartialEq, const N: usize> Lines<K, N> {
    /// A table for `capacity` keys at about half load.
    fn with_capacity(capacity: usize) -> Self {
        let num_lines = (2 * capacity).div_ceil(N).next_power_of_two();
        let empty = Line {
            keys: [K::default(); N],
            values: [PackedIds::default(); N],
        };
        Self {
            lines: vec![empty; num_lines].into(),
            len: 0,
        }
    }

    fn capacity(&self) -> usize {
        self.lines.len() * N / 2
    }

    #[inline]
    fn line(&self, hash: u32) -> usize {
        hash as usize & (self.lines.len() - 1)
    }

    #[inline]
    fn get(&self, key: K, hash: u32) -> PackedIds {
        let mut at = self.line(hash);
        loop {
            let line = &self.lines[at];
            // Without branches: which slot it is cannot be predicted.
            let mut found = 0;
            for slot in 0..N {
                found |=
                    line.values[slot].0 & 0_u64.wrapping_sub(u64::from(line.keys[slot] == key));
            }
            let found = PackedIds(found);
            if !found.is_none() || line.values[N - 1].is_none() {
                return found;
            }
            at = (at + 1) & (self.lines.len() - 1);
        }
    }

    /// A table of twice the size with the same keys.
    fn doubled(&self, hash: impl Fn(K) -> u32) -> Self {
        let mut table = Self::with_capacity(2 * self.capacity());
        for line in &self.lines {
            for (&key, &value) in line.keys.iter().zip(&line.values) {
                if !value.is_none() {
                    table.insert(key, hash(key), value);
                }
            }
        }
        table
    }

    /// Adds a key that is not in the table; the caller keeps it below its capacity.
    fn insert(&mut self, key: K, hash: u32, value: PackedIds) {
        let mut at = self.line(hash);
        loop {
            let line = &mut self.lines[at];
            if let Some(slot) = line.values.iter().position(|value| value.is_none()) {
                line.keys[slot] = key;
                line.values[slot] = value;
                self.len += 1;
                return;
            }
            at = (at + 1) & (self.lines.len() - 1);
        }
    }
}

/// Words of at most [`MAX_KEYED_BYTES`] bytes with up to three ids each.
#[derive(Debug, Clone)]
pub(crate) struct WordTable {
    short: Lines<u64, 4>,
    long: Lines<u128, 2>,
}

impl WordTable {
    /// A table with room for the given numbers of words of up to [`MAX_SHORT_BYTES`] bytes and of longer ones.
    #[must_use]
    pub(crate) fn with_capacity(num_short: usize, num_long: usize) -> Self {
        Self {
            short: Lines::with_capacity(num_short),
            long: Lines::with_capacity(num_long),
        }
    }

    /// Ids of a word, none if the table lacks it.
    #[must_use]
    #[inline]
    pub(crate) fn get(&self, key: u128, hash: u32, length: usize) -> PackedIds {
        if length <= MAX_SHORT_BYTES {
            self.short.get(key as u64, hash)
        } else {
            self.long.get(key, hash)
        }
    }

    /// Makes room for twice as many words of the size class of `length`, up to `limit` of them; at the limit the class
    /// is emptied.
    pub(crate) fn grow(&mut self, length: usize, limit: usize) {
        if length <= MAX_SHORT_BYTES {
            self.short = if 2 * self.short.capacity() > limit {
                Lines::with_capacity(limit)
            } else {
                self.short.doubled(|key| key_hash(u128::from(key)))
            };
        } else {
            self.long = if 2 * self.long.capacity() > limit {
                Lines::with_capacity(limit)
            } else {
                self.long.doubled(key_hash)
            };
        }
    }

    /// Adds a word that the table lacks; false (and nothing added) when there is no room.
    pub(crate) fn insert(&mut self, key: u128, hash: u32, length: usize, value: PackedIds) -> bool {
        if length <= MAX_SHORT_BYTES {
            let has_room = self.short.len < self.short.capacity();
            if has_room {
                self.short.insert(key as u64, hash, value);
            }
            has_room
        } else {
            let has_room = self.long.len < self.long.capacity();
            if has_room {
                self.long.insert(key, hash, value);
            }
            has_room
        }
    }

    /// Brings the line of a word into the processor's cache.
    #[inline]
    pub(crate) fn prefetch(&self, hash: u32, length: usize) {
        if length <= MAX_SHORT_BYTES {
            super::scan::simd::prefetch(&self.short.lines[self.short.line(hash)]);
        } else {
            super::scan::simd::prefetch(&self.long.lines[self.long.line(hash)]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_round_trips() {
        for ids in [vec![0], vec![7, 0], vec![ID_LIMIT - 1, 1, 2]] {
            let packed = PackedIds::new(&ids).unwrap();
            assert_eq!(packed.ids()[..packed.count()], ids);
            assert!(!packed.is_none());
        }
        for ids in [vec![], vec![ID_LIMIT], vec![1, 2, 3, 4]] {
            assert_eq!(PackedIds::new(&ids), None);
        }
    }

    #[test]
    fn keys_stop_at_the_end_of_the_text() {
        let text = b"abcdefghijklmnopqrstuvwxyz";
        for start in 0..text.len() {
            for length in 1..=MAX_KEYED_BYTES.min(text.len() - start) {
                let key = word_key(text, start, length).to_le_bytes();
                assert_eq!(key[..length], text[start..start + length]);
                assert!(key[length..].iter().all(|&byte| byte == 0));
            }
        }
    }

    #[test]
    fn a_full_table_finds_everything_and_refuses_more() {
        let mut table = WordTable::with_capacity(20, 10);
        let (num_short, num_long) = (table.short.capacity(), table.long.capacity());
        let word = |number: usize, length: usize| format!("{number:0length$}").into_bytes();
        for (length, count) in [(8, num_short), (12, num_long)] {
            for number in 0..count {
                let key = word_key(&word(number, length), 0, length);
                let value = PackedIds::new(&[number as u32]).unwrap();
                assert!(table.insert(key, key_hash(key), length, value));
            }
            let key = word_key(&word(count, length), 0, length);
            assert!(!table.insert(key, key_hash(key), length, PackedIds::new(&[1]).unwrap()));
            assert!(table.get(key, key_hash(key), length).is_none());
            for number in 0..count {
                let key = word_key(&word(number, length), 0, length);
                assert_eq!(
                    table.get(key, key_hash(key), length).ids()[0],
                    number as u32
                );
            }
        }
    }
}
