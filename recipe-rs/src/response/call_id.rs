//! Ids of tool calls.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

/// Makes call ids: `call_`, the two-digit index, `_`, 20 letters or digits, 4 digits.
///
/// ```
/// use recipe_rs::CallIds;
///
/// let mut ids = CallIds::seeded(7);
/// let id = ids.next_id();
/// assert_eq!(id.len(), 32);
/// assert!(id.starts_with("call_00_"));
/// assert_eq!(CallIds::seeded(7).next_id(), id);
/// ```
#[derive(Debug, Clone)]
pub struct CallIds {
    state: u64,
    index: u64,
    marks_empty_thinking: bool,
}

impl Default for CallIds {
    /// Ids that differ in each process and stream.
    fn default() -> Self {
        Self::seeded(RandomState::new().build_hasher().finish())
    }
}

impl CallIds {
    /// Ids that depend on the seed only.
    #[must_use]
    pub const fn seeded(seed: u64) -> Self {
        Self {
            state: seed,
            index: 0,
            marks_empty_thinking: false,
        }
    }

    /// Sets whether ids say, by `ET_`, that a thinking model called without having thought.
    pub(super) fn set_empty_thinking(&mut self, is_empty: bool) {
        self.marks_empty_thinking = is_empty;
    }

    /// The id of the next call.
    pub fn next_id(&mut self) -> String {
        const LETTERS: &[u8; 62] =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
        let mut id = format!("call_{:02}_", self.index);
        self.index += 1;
        if self.marks_empty_thinking {
            id.push_str("ET_");
        }
        for _ in 0..20 {
            let letter = self.random() % LETTERS.len() as u64;
            id.push(char::from(LETTERS[letter as usize]));
        }
        for _ in 0..4 {
            let digit = self.random() % 10;
            id.push(char::from(b'0' + digit as u8));
        }
        id
    }

    /// `SplitMix64` (Steele, Lea and Flood 2014), its upper half.
    fn random(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) >> 32
    }
}
