//! Ids of runs of CJK characters, built from whole characters instead of bytes.
//!
//! Between two characters that no token bridges no merge can cross, so a run falls into short segments. Inside one,
//! the bytes of each character join before anything crosses its borders, unless some token holds only a part of a
//! character beside a neighbour; where such a token could arise, the segment is merged from its bytes.

use super::merge::{MergeTable, NO_ID, NO_RANK, SHORT};
use super::scan::deepseek::{Class, class_at};
use super::vocabulary::Vocabulary;

/// Characters that one call looks at.
pub(crate) const MAX_CHARACTERS: usize = 48;

const FIRST: u32 = 0x3000;
const NUM_CODE_POINTS: usize = 0x7000;

/// Entry of a code point that is no letter or mark of the CJK ranges.
const NOT_CJK: u32 = u32::MAX - 1;

const INDEX_BITS: u32 = 16;
const TAG_BITS: u32 = 14;
const VALUE_BITS: u32 = 17;
const TAG_MASK: u32 = (1 << TAG_BITS) - 1;
const KEY_MASK: u32 = (1 << (INDEX_BITS + TAG_BITS)) - 1;
const SECOND: u32 = 1 << (TAG_BITS + VALUE_BITS);

/// Value of a pair that no token bridges.
const APART: u32 = (1 << VALUE_BITS) - 1;
/// Value of a pair in which some token may join a part of a character with its neighbour.
const BY_BYTES: u32 = APART - 1;
/// Value of a pair that tokens bridge, but no merge joins by itself. Smaller values are ranks.
const BRIDGED: u32 = APART - 2;

/// Odd multipliers: on keys of 30 bits each makes a permutation, so an index and a tag stand for one key.
const MULTIPLIERS: [u32; 2] = [0x2545_F491, 0x1B87_3593];

/// Tries to place a pair before giving up.
const MAX_MOVES: usize = 2000;

/// What a vocabulary makes of single CJK characters and of pairs of them.
#[derive(Debug, Clone)]
pub(crate) struct CjkTable {
    /// By code point from [`FIRST`] on: the id of the character, [`NO_ID`] if its bytes give several, or [`NOT_CJK`].
    /// A character without an id is taken for bridged with whatever stands beside it.
    characters: Box<[u32]>,
    /// Each pair is in one of two slots: which of the two it is, a tag, and the value.
    pairs: Box<[u32]>,
}

/// A part of a run: characters between two cuts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Segment {
    /// `length` bytes, whose ids are `count` of those in [`Run::ids`] from `first` on.
    Ids {
        first: usize,
        count: usize,
        length: usize,
    },
    /// So many bytes that have to be merged as a word.
    Bytes(usize),
}

/// Buffers for one run.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    pub(crate) ids: [u32; MAX_CHARACTERS],
    ranks: [u32; MAX_CHARACTERS],
    codes: [u32; MAX_CHARACTERS],
}

impl Default for Run {
    fn default() -> Self {
        Self {
            ids: [0; MAX_CHARACTERS],
            ranks: [0; MAX_CHARACTERS],
            codes: [0; MAX_CHARACTERS],
        }
    }
}

impl CjkTable {
    /// Collects the characters and pairs of a vocabulary; `None` when they do not fit or the merges are of a kind for
    /// which whole characters are no right start.
    #[must_use]
    pub(crate) fn new(vocabulary: &Vocabulary, merges: &MergeTable) -> Option<Self> {
        if !merges.is_ordered() {
            return None;
        }
        let mut characters = vec![NOT_CJK; NUM_CODE_POINTS];
        let mut scratch = super::merge::MergeScratch::default();
        let mut ids = Vec::new();
        for bytes in ('\u{3040}'..='\u{9FFF}').filter_map(letter_bytes) {
            ids.clear();
            merges.merge(&bytes, &mut scratch, &mut ids);
            characters[index(bytes)] = if let [id] = ids[..] { id } else { NO_ID };
        }
        let mut table = Self {
            characters: characters.into(),
            pairs: vec![APART; 1 << INDEX_BITS].into(),
        };
        let bridges = bridges(vocabulary, merges);
        // Characters that may lose their head or tail to a neighbour before they are whole.
        let mut broken = vec![[false; 2]; NUM_CODE_POINTS];
        for bridge in &bridges {
            broken[index(bridge.left)][1] |=
                !bridge.holds_left && table.is_late(merges, bridge.left, bridge.id);
            broken[index(bridge.right)][0] |=
                !bridge.holds_right && table.is_late(merges, bridge.right, bridge.id);
        }
        for bridge in &bridges {
            table.add_bridge(merges, bridge, &broken)?;
        }
        Some(table)
    }

    /// Whether a character is not whole yet when the token `id` arises.
    fn is_late(&self, merges: &MergeTable, character: [u8; 3], id: u32) -> bool {
        let character = self.characters[index(character)];
        character == NO_ID || merges.rank_of_product(character) > merges.rank_of_product(id)
    }

    /// Takes note of one token that stands across a pair.
    fn add_bridge(
        &mut self,
        merges: &MergeTable,
        bridge: &Bridge,
        broken: &[[bool; 2]],
    ) -> Option<()> {
        let Bridge {
            id,
            left,
            right,
            holds_left,
            holds_right,
        } = *bridge;
        // A character that is whole before this token can arise lends no part to it.
        let lends_tail = self.is_late(merges, left, id) || broken[index(left)][0];
        let lends_head = self.is_late(merges, right, id) || broken[index(right)][1];
        if !(holds_left || lends_tail) || !(holds_right || lends_head) {
            return Some(());
        }
        let [left_id, right_id] = [left, right].map(|bytes| self.characters[index(bytes)]);
        if left_id == NO_ID || right_id == NO_ID {
            return Some(());
        }
        let value = if holds_left && holds_right {
            match merges.rank(left_id, right_id) {
                NO_RANK => BRIDGED,
                rank if rank < BRIDGED => rank,
                _ => return None,
            }
        } else {
            BY_BYTES
        };
        self.insert(key(code_point(left), code_point(right)), value)
    }

    fn insert(&mut self, key: u32, value: u32) -> Option<()> {
        for second in [0, SECOND] {
            let (slot, tag) = place(key, second);
            let found = self.pairs[slot];
            if found & APART != APART && found & !APART == tag {
                if value == BY_BYTES {
                    self.pairs[slot] = tag | value;
                }
                return Some(());
            }
        }
        // Whoever finds its slot taken drives the pair there to that one's other slot.
        let (mut slot, mut tag) = place(key, 0);
        let mut value = value;
        for _ in 0..MAX_MOVES {
            let found = std::mem::replace(&mut self.pairs[slot], tag | value);
            value = found & APART;
            if value == APART {
                return Some(());
            }
            let moved = key_at(slot, found & !APART);
            (slot, tag) = place(moved, (found & SECOND) ^ SECOND);
        }
        None
    }

    /// What tokens make of two neighbours, given by their code points.
    #[inline(always)]
    fn pair(&self, left: u32, right: u32) -> u32 {
        let key = key(left, right);
        let value = |second| {
            let (slot, tag) = place(key, second);
            let found = self.pairs[slot & ((1 << INDEX_BITS) - 1)];
            (found & APART) | if found & !APART == tag { 0 } else { APART }
        };
        value(0) & value(SECOND)
    }

    /// Hands the segments of the characters at the start of `text` to `take`: none if `text` starts with other ones, one
    /// or more else, not always all.
    #[inline(always)]
    pub(crate) fn segments(
        &self,
        text: &[u8],
        merges: &MergeTable,
        run: &mut Run,
        mut take: impl FnMut(&Run, Segment),
    ) {
        let mut count = 0;
        let (mut bridged, mut by_bytes, mut no_id) = (0_u64, 0_u64, 0_u64);
        for bytes in text.as_chunks::<3>().0.iter().take(MAX_CHARACTERS) {
            if bytes[0] & 0xF0 != 0xE0 {
                break;
            }
            let code = code_point(*bytes);
            let id = match self.characters.get(code.wrapping_sub(FIRST) as usize) {
                None | Some(&NOT_CJK) => break,
                Some(id) => *id,
            };
            run.codes[count] = code;
            run.ids[count] = id;
            no_id |= u64::from(id == NO_ID) << count;
            count += 1;
        }
        if count == 0 {
            return;
        }
        for at in 1..count {
            let value = self.pair(run.codes[at - 1], run.codes[at]);
            run.ranks[at - 1] = if value < BRIDGED { value } else { NO_RANK };
            bridged |= u64::from(value != APART) << (at - 1);
            by_bytes |= u64::from(value == BY_BYTES) << (at - 1);
        }
        bridged |= (no_id | no_id >> 1) & ((1_u64 << (count - 1)) - 1);
        by_bytes |= no_id;
        let mut end = count;
        if count == MAX_CHARACTERS {
            // The run may go on: its last segment is whole only up to a cut.
            let cuts = !bridged & (u64::MAX >> (64 - MAX_CHARACTERS + 1));
            if cuts == 0 {
                return take(run, Segment::Bytes(3 * self.segment_length(text)));
            }
            end = 64 - cuts.leading_zeros() as usize;
        }
        let mut first = 0;
        while first < end {
            let length = (!(bridged >> first)).trailing_zeros() as usize + 1;
            let last = first + length - 1;
            let segment = if by_bytes >> first & (u64::MAX >> (64 - length)) != 0 {
                Segment::Bytes(3 * length)
            } else {
                let count = if length == 1 {
                    1
                } else if length == 2 {
                    let rank = run.ranks[first];
                    let joins = rank != NO_RANK;
                    if joins {
                        run.ids[first] = merges.product(rank);
                    }
                    2 - usize::from(joins)
                } else if length <= SHORT {
                    merges.merge_few(&mut run.ids[first..=last], &run.ranks[first..last])
                } else {
                    run.ranks[last] = NO_RANK;
                    merges.merge_by_scan(&mut run.ids[first..=last], &mut run.ranks[first..=last])
                };
                Segment::Ids {
                    first,
                    count,
                    length: 3 * length,
                }
            };
            take(run, segment);
            first += length;
        }
    }

    /// Number of characters of the segment at the start of `text`.
    #[cold]
    fn segment_length(&self, text: &[u8]) -> usize {
        let has_id = |bytes| self.characters[index(bytes)] != NO_ID;
        let characters = text.as_chunks::<3>().0;
        let goes_on = |pair: &[[u8; 3]]| {
            let (left, right) = (pair[0], pair[1]);
            cjk_letter(right).is_some()
                && (!has_id(left)
                    || !has_id(right)
                    || self.pair(code_point(left), code_point(right)) != APART)
        };
        1 + characters
            .windows(2)
            .take_while(|pair| goes_on(pair))
            .count()
    }
}

#[inline(always)]
fn key(left: u32, right: u32) -> u32 {
    (left.wrapping_sub(FIRST) << 15 | right.wrapping_sub(FIRST)) & KEY_MASK
}

/// Slot of a key and the tag that it has there, in place.
#[inline(always)]
fn place(key: u32, second: u32) -> (usize, u32) {
    let multiplier = MULTIPLIERS[usize::from(second != 0)];
    let hash = (key ^ key >> 15).wrapping_mul(multiplier) & KEY_MASK;
    let tag = (hash & TAG_MASK) << VALUE_BITS;
    ((hash >> TAG_BITS) as usize, tag | second)
}

/// The key that has this tag in this slot.
fn key_at(slot: usize, tag: u32) -> u32 {
    let multiplier = MULTIPLIERS[usize::from(tag & SECOND != 0)];
    // Newton's iteration for the inverse of an odd number modulo 2^32.
    let mut inverse = multiplier;
    for _ in 0..4 {
        inverse = inverse.wrapping_mul(2_u32.wrapping_sub(multiplier.wrapping_mul(inverse)));
    }
    let hash = (slot as u32) << TAG_BITS | tag >> VALUE_BITS & TAG_MASK;
    let mixed = hash.wrapping_mul(inverse) & KEY_MASK;
    mixed ^ mixed >> 15
}

/// A token that holds at least a part of each of two neighbouring characters.
#[derive(Debug, Clone, Copy)]
struct Bridge {
    id: u32,
    left: [u8; 3],
    right: [u8; 3],
    holds_left: bool,
    holds_right: bool,
}

/// All tokens that merges make across two CJK characters, with every pair that each may stand in.
fn bridges(vocabulary: &Vocabulary, merges: &MergeTable) -> Vec<Bridge> {
    let mut bridges = Vec::new();
    for id in 0..vocabulary.len() as u32 {
        let token = vocabulary.bytes(id);
        if merges.rank_of_product(id) == NO_RANK {
            continue;
        }
        for at in 1..token.len() {
            let Some((left_part, right_part)) = parts_around(token, at) else {
                continue;
            };
            for left in ending_in(left_part) {
                bridges.extend(starting_with(right_part).map(|right| Bridge {
                    id,
                    left,
                    right,
                    holds_left: left_part.len() == 3,
                    holds_right: right_part.len() == 3,
                }));
            }
        }
    }
    bridges
}

/// What a token holds of the characters on both sides of `at`, if they may be CJK characters.
fn parts_around(token: &[u8], at: usize) -> Option<(&[u8], &[u8])> {
    if !(0xE3..=0xE9).contains(&token[at]) || token[at - 1] & 0xC0 != 0x80 {
        return None;
    }
    let left = &token[at.saturating_sub(3)..at];
    let right = &token[at..token.len().min(at + 3)];
    let is_tail = left.iter().all(|&byte| byte & 0xC0 == 0x80);
    (is_tail || left.len() == 3 && (0xE3..=0xE9).contains(&left[0])).then_some((left, right))
}

#[inline(always)]
fn code_point(bytes: [u8; 3]) -> u32 {
    let [first, second, third] = bytes.map(u32::from);
    (first & 0x0F) << 12 | (second & 0x3F) << 6 | third & 0x3F
}

/// Index of a character in the table of characters.
fn index(bytes: [u8; 3]) -> usize {
    (code_point(bytes) - FIRST) as usize
}

/// Code point of a letter or mark of the CJK ranges, given the three bytes that it would take.
fn cjk_letter(bytes: [u8; 3]) -> Option<u32> {
    let code_point = code_point(bytes);
    if bytes[0] & 0xF0 != 0xE0 {
        return None;
    }
    match code_point {
        0x4E00..=0x9FA5 => Some(code_point),
        0x3040..=0x30FF => (class_at(&bytes, 0).0 == Class::CjkLetter).then_some(code_point),
        _ => None,
    }
}

/// Whether all of `word` are letters and marks of the CJK ranges, for which a table needs no other.
#[must_use]
pub(crate) fn covers(word: &[u8]) -> bool {
    let (characters, rest) = word.as_chunks::<3>();
    rest.is_empty() && characters.iter().all(|bytes| cjk_letter(*bytes).is_some())
}

/// The bytes of a character that is a letter or mark of the CJK ranges.
fn letter_bytes(character: char) -> Option<[u8; 3]> {
    let mut bytes = [0; 3];
    character.encode_utf8(&mut bytes);
    cjk_letter(bytes).map(|_| bytes)
}

/// The letters and marks that end in a part of a token.
fn ending_in(part: &[u8]) -> impl Iterator<Item = [u8; 3]> {
    let end = FIRST + NUM_CODE_POINTS as u32;
    let (first, step) = if let Ok(whole) = <[u8; 3]>::try_from(part) {
        (code_point(whole), NUM_CODE_POINTS)
    } else {
        let low = part
            .iter()
            .fold(0, |low, byte| low << 6 | u32::from(byte & 0x3F));
        (FIRST + low, 1 << (6 * part.len()))
    };
    (first..end)
        .step_by(step)
        .filter_map(|code| letter_bytes(char::from_u32(code)?))
}

/// The letters and marks that start with a part of a token.
fn starting_with(part: &[u8]) -> impl Iterator<Item = [u8; 3]> {
    let bits = 6 * 3_usize.saturating_sub(part.len());
    let high = part[1..]
        .iter()
        .fold(u32::from(part[0] & 0x0F), |high, byte| {
            high << 6 | u32::from(byte & 0x3F)
        });
    let first = high << bits;
    (first..first + (1 << bits)).filter_map(|code| letter_bytes(char::from_u32(code)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_those_of_the_class() {
        for character in ('\u{800}'..='\u{FFFF}').filter(|character| character.len_utf8() == 3) {
            let mut bytes = [0; 3];
            character.encode_utf8(&mut bytes);
            let expected = (class_at(&bytes, 0).0 == Class::CjkLetter).then_some(character as u32);
            assert_eq!(cjk_letter(bytes), expected, "{character:?}");
        }
    }

    #[test]
    fn parts_fit_the_letters_that_have_them() {
        let letters: Vec<[u8; 3]> = ('\u{3040}'..='\u{9FFF}').filter_map(letter_bytes).collect();
        for letter in letters.iter().step_by(97) {
            for length in 1..=3 {
                let (head, tail) = (&letter[..length], &letter[3 - length..]);
                let expected = letters
                    .iter()
                    .copied()
                    .filter(|other| other.starts_with(head));
                assert!(starting_with(head).eq(expected));
                let expected = letters
                    .iter()
                    .copied()
                    .filter(|other| other.ends_with(tail));
                assert!(ending_in(tail).eq(expected));
            }
        }
    }

    #[test]
    fn a_slot_and_a_tag_stand_for_one_key() {
        for number in 0..200_000_u32 {
            let key = number.wrapping_mul(0x9E37_79B9) & KEY_MASK;
            for second in [0, SECOND] {
                let (slot, tag) = place(key, second);
                assert_eq!(tag & SECOND, second);
                assert_eq!(key_at(slot, tag), key);
            }
        }
    }
}
