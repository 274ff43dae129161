//! Cuts inside runs of CJK characters: between two characters that no token bridges, no merge can cross.

use super::scan::deepseek::{Class, class_at};
use super::vocabulary::Vocabulary;

const BITS: u32 = 20;

/// Beyond this many pairs the filter would let nearly everything through.
const MAX_PAIRS: usize = 1 << 17;

/// The pairs of neighbouring CJK characters that some token contains a part of on both sides of the boundary.
///
/// A filter: it may take a pair for bridged that is not, never the other way round.
#[derive(Debug, Clone)]
pub(crate) struct BridgedPairs {
    filter: Box<[u64]>,
}

impl BridgedPairs {
    /// Collects the pairs of a vocabulary; `None` when there are too many to be of use.
    #[must_use]
    pub(crate) fn new(vocabulary: &Vocabulary) -> Option<Self> {
        let mut pairs = Self {
            filter: vec![0; 1 << (BITS - 6)].into(),
        };
        let mut num_pairs = 0;
        let characters: Vec<[u8; 3]> = ('\u{3040}'..='\u{9FFF}').filter_map(cjk_bytes).collect();
        for id in 0..vocabulary.len() as u32 {
            let token = vocabulary.bytes(id);
            for at in 1..token.len() {
                if !(0xE3..=0xE9).contains(&token[at]) || token[at - 1] & 0xC0 != 0x80 {
                    continue;
                }
                let left = &token[at.saturating_sub(3)..at];
                let right = &token[at..token.len().min(at + 3)];
                let is_tail = left.iter().all(|&byte| byte & 0xC0 == 0x80);
                if !is_tail && (left.len() < 3 || !(0xE3..=0xE9).contains(&left[0])) {
                    continue;
                }
                // A token that starts or ends inside a character bridges every pair that it can stand in.
                let lefts = matching(&characters, left, <[u8]>::ends_with);
                let rights = matching(&characters, right, <[u8]>::starts_with);
                num_pairs += lefts.len() * rights.len();
                if num_pairs > MAX_PAIRS {
                    return None;
                }
                for left in lefts.iter().copied().filter_map(cjk_letter) {
                    for right in rights.iter().copied().filter_map(cjk_letter) {
                        let hash = Self::hash(left, right);
                        pairs.filter[hash >> 6] |= 1 << (hash & 63);
                    }
                }
            }
        }
        Some(pairs)
    }

    /// Whether a token may stand across the boundary between two CJK characters, each given by its code point.
    #[must_use]
    #[inline]
    pub(crate) fn contains(&self, left: u32, right: u32) -> bool {
        let hash = Self::hash(left, right);
        self.filter[hash >> 6] >> (hash & 63) & 1 == 1
    }

    #[inline]
    fn hash(left: u32, right: u32) -> usize {
        let pair = u64::from(left) << 16 | u64::from(right);
        (pair.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - BITS)) as usize
    }
}

/// Code point of a letter or mark of the CJK ranges, given the three bytes that it would take.
#[must_use]
#[inline]
pub(crate) fn cjk_letter(bytes: [u8; 3]) -> Option<u32> {
    let [first, second, third] = bytes.map(u32::from);
    let code_point = (first & 0x0F) << 12 | (second & 0x3F) << 6 | third & 0x3F;
    if first & 0xF0 != 0xE0 {
        return None;
    }
    match code_point {
        0x4E00..=0x9FA5 => Some(code_point),
        0x3040..=0x30FF => (class_at(&bytes, 0).0 == Class::CjkLetter).then_some(code_point),
        _ => None,
    }
}

/// The bytes of a character that is a letter or mark of the CJK ranges.
fn cjk_bytes(character: char) -> Option<[u8; 3]> {
    let mut bytes = [0; 3];
    character.encode_utf8(&mut bytes);
    cjk_letter(bytes).map(|_| bytes)
}

/// The characters that a part of a token fits.
fn matching(
    characters: &[[u8; 3]],
    part: &[u8],
    fits: impl Fn(&[u8], &[u8]) -> bool,
) -> Vec<[u8; 3]> {
    match <[u8; 3]>::try_from(part) {
        Ok(whole) => characters
            .binary_search(&whole)
            .map(|_| whole)
            .into_iter()
            .collect(),
        Err(_) => characters
            .iter()
            .copied()
            .filter(|character| fits(character, part))
            .collect(),
    }
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
}
