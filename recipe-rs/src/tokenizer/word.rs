//! Short words as keys, their ids as values, and a hash for the longer ones.

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

/// Key of a word of at most [`MAX_SHORT_BYTES`] bytes: they, padded with zeros.
///
/// Two words share a key only if they differ in zero bytes at their ends, see [`has_key`].
#[must_use]
#[inline(always)]
pub(crate) fn short_key(text: &[u8], start: usize, length: usize) -> u64 {
    let word = match text.get(start..).and_then(<[u8]>::first_chunk::<8>) {
        Some(bytes) => u64::from_le_bytes(*bytes),
        None => padded(&text[start..start + length]),
    };
    word & u64::MAX >> (((MAX_SHORT_BYTES - length) * 8) & 63)
}

/// Key of the word of `length` bytes at `start` of a block of which the last eight bytes start no word; 0 if it is no
/// short word.
#[must_use]
#[inline(always)]
pub(crate) fn key_in_block(block: &[u8; 72], start: usize, length: usize) -> u64 {
    /// Bits of a key that belong to a word of each length.
    static KEEP: [u64; 64] = {
        let mut keep = [0; 64];
        let mut length = 1;
        while length <= MAX_SHORT_BYTES {
            keep[length] = u64::MAX >> ((MAX_SHORT_BYTES - length) * 8);
            length += 1;
        }
        keep
    };
    let word = match block[start & 63..].first_chunk::<8>() {
        Some(bytes) => u64::from_le_bytes(*bytes),
        None => 0,
    };
    word & KEEP[length & 63]
}

/// Key of a word of 9 to 16 bytes: they, padded with zeros, in two halves.
#[must_use]
#[inline(always)]
pub(crate) fn long_key(text: &[u8], start: usize, length: usize) -> [u64; 2] {
    let end = start + length;
    let (low, high) = match text.get(start..end).and_then(<[u8]>::first_chunk::<8>) {
        // The last eight bytes of the word hold the second half behind bytes of the first.
        Some(first) => (u64::from_le_bytes(*first), last_eight(text, end)),
        None => (0, 0),
    };
    [low, high >> (((MAX_KEYED_BYTES - length) * 8) & 63)]
}

/// The eight bytes of `text` that end at `end`; zero when there are fewer.
#[inline(always)]
fn last_eight(text: &[u8], end: usize) -> u64 {
    match text.get(..end).and_then(<[u8]>::last_chunk::<8>) {
        Some(bytes) => u64::from_le_bytes(*bytes),
        None => 0,
    }
}

fn padded(word: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    bytes[..word.len()].copy_from_slice(word);
    u64::from_le_bytes(bytes)
}

/// Whether a word has a key: it is short, and does not end in a zero byte, which a key is padded with.
#[must_use]
pub(crate) fn has_key(word: &[u8]) -> bool {
    word.len() <= MAX_KEYED_BYTES && word.last().is_some_and(|&byte| byte != 0)
}

/// Ids that fit into [`PackedIds`].
pub(crate) const MAX_PACKED: usize = 3;

const ID_BITS: u32 = 20;
const ID_MASK: u64 = (1 << ID_BITS) - 1;
const COUNT_SHIFT: u32 = 62;
const LENGTH_SHIFT: u32 = 32;

/// Ids below this fit.
pub(crate) const ID_LIMIT: u32 = 1 << ID_BITS;

/// One to three ids in a word, or where a list holds more of them; 0 stands for nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct PackedIds(pub(super) u64);

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

    /// Stands for `list[start..end]`; the range is not empty and begins below 2^32.
    #[must_use]
    pub(crate) fn listed(start: usize, end: usize) -> Self {
        Self(start as u64 | ((end - start) as u64) << LENGTH_SHIFT)
    }

    /// Whether there are no ids.
    #[must_use]
    #[inline]
    pub(crate) fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Number of ids packed in here; 0 if they are in a list.
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

    /// The range of the list that holds the ids.
    #[must_use]
    pub(crate) fn range(self) -> std::ops::Range<usize> {
        let start = (self.0 & u64::from(u32::MAX)) as usize;
        start..start + (self.0 >> LENGTH_SHIFT) as usize
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
        for (start, end) in [(0, 1), (7, 140), (1 << 31, (1 << 31) + 9)] {
            let listed = PackedIds::listed(start, end);
            assert_eq!((listed.count(), listed.range()), (0, start..end));
            assert!(!listed.is_none());
        }
    }

    #[test]
    fn keys_in_a_block_are_those_of_short_words() {
        let block: [u8; 72] = std::array::from_fn(|at| at as u8 + 1);
        for start in 0..64 {
            for length in 1..64 - start {
                let expected = if length <= MAX_SHORT_BYTES {
                    short_key(&block, start, length)
                } else {
                    0
                };
                assert_eq!(key_in_block(&block, start, length), expected);
            }
        }
    }

    #[test]
    fn keys_stop_at_the_end_of_the_word_and_of_the_text() {
        let text = b"abcdefghijklmnopqrstuvwxyz";
        for start in 0..text.len() {
            for length in 1..=MAX_KEYED_BYTES.min(text.len() - start) {
                let key = if length <= MAX_SHORT_BYTES {
                    [short_key(text, start, length), 0]
                } else {
                    long_key(text, start, length)
                };
                let key = key.map(u64::to_le_bytes).concat();
                assert_eq!(key[..length], text[start..start + length]);
                assert!(key[length..].iter().all(|&byte| byte == 0));
            }
        }
    }
}
