//! Starts of pre-tokens in 64 bytes of ASCII text at once.
//!
//! Each function takes the class masks of a block whose first byte starts a pre-token, and returns one bit a start.
//! The last start is only where to go on: what ends its pre-token may lie behind the block. Control characters and
//! other scripts end the part of the block that is looked at.

use super::classify::Masks;
use super::gpt2::Variant;

/// The part of the block before the first byte that is in no class.
fn known(masks: &Masks) -> u64 {
    let Masks {
        letter,
        digit,
        punct,
        space,
        blank,
        newline,
    } = *masks;
    let other = !(letter | digit | punct | space | blank | newline);
    if other == 0 {
        u64::MAX
    } else {
        (other & other.wrapping_neg()).wrapping_sub(1)
    }
}

/// Bits directly behind a bit of `mask`.
fn behind(mask: u64) -> u64 {
    mask << 1
}

/// First bit of each run of `mask`.
fn run_starts(mask: u64) -> u64 {
    mask & !behind(mask)
}

/// Whole runs of `mask` whose first bits are given.
fn runs_from(mask: u64, starts: u64) -> u64 {
    mask & !mask.wrapping_add(starts)
}

/// Every third bit of each run.
fn thirds(mask: u64) -> u64 {
    let mut next = run_starts(mask);
    let mut starts = 0;
    while next != 0 {
        starts |= next;
        next = (next << 3) & mask & (mask << 1) & (mask << 2);
    }
    starts
}

/// White space of pre-tokenizers that end a piece at the last newline of a run.
///
/// `taken` are newlines that belong to the punctuation before them; `joins` are the bits of what makes a run leave its
/// last character for the next piece.
fn white_starts(masks: &Masks, taken: u64, joins: u64, known: u64) -> u64 {
    let newline = masks.newline & known & !taken;
    let plain = (masks.space | masks.blank) & known;
    let white = plain | newline;
    let first = run_starts(white);
    let plain_first = run_starts(plain);
    let mut after_newline = plain_first & behind(newline);
    let mut before_newline = plain.wrapping_add(plain_first) & !plain & newline;
    while before_newline != 0 {
        // This stretch lies between two newlines: it belongs to the piece that ends at the second.
        let end = before_newline & before_newline.wrapping_neg();
        let start = (plain_first & (end - 1)).ilog2();
        after_newline &= !(1 << start);
        before_newline ^= end;
    }
    let last = plain & (joins >> 1);
    first | after_newline | last
}

/// Drops the starts inside a run of white space that reaches the end of the known part: what follows decides them.
fn without_open_white(starts: u64, white: u64, known: u64) -> u64 {
    let open_end = if known == u64::MAX {
        1 << 63
    } else {
        (known >> 1) + 1
    };
    if white & open_end & known == 0 {
        return starts & known;
    }
    let run_start = (run_starts(white) & known).ilog2();
    starts & known & (u64::MAX >> (63 - run_start))
}

/// Starts for the DeepSeek pre-tokenizer.
#[must_use]
pub(crate) fn deepseek(masks: &Masks) -> u64 {
    let known = known(masks);
    let letter = masks.letter & known;
    let digit = masks.digit & known;
    let punct = masks.punct & known;
    let space = masks.space & known;
    let newline = masks.newline & known;
    // Single punctuation directly before letters, where a piece starts with it.
    let joining = run_starts(punct) & !behind(space) & (letter >> 1);
    let taken = runs_from(newline, newline & behind(punct));
    let white = white_starts(masks, taken, letter | punct, known);
    let starts = 1
        | run_starts(letter) & !behind(space | masks.blank | joining)
        | thirds(digit)
        | run_starts(punct) & !behind(space)
        | white;
    without_open_white(starts, (space | masks.blank | newline) & !taken, known)
}

/// Starts for GPT-2's descendants; `block` holds the bytes of the masks.
#[must_use]
pub(crate) fn gpt2(variant: Variant, masks: &Masks, block: &[u8; 64]) -> u64 {
    let known = known(masks);
    let letter = masks.letter & known;
    let digit = masks.digit & known;
    let other = masks.punct & known;
    let space = masks.space & known;
    let newline = masks.newline & known;
    let white = space | masks.blank & known | newline;
    let other_starts = run_starts(other) & !behind(space);
    let joining = other_starts & (letter >> 1);
    let Contractions {
        inside,
        after,
        certain,
    } = contractions(variant, joining, block);
    let (starts, open_white) = match variant {
        Variant::Gpt2 | Variant::SmolLm => {
            let is_alone = variant == Variant::SmolLm;
            let joins = if is_alone {
                letter | other
            } else {
                letter | other | digit
            };
            let digits = if is_alone {
                digit
            } else {
                run_starts(digit) & !behind(space)
            };
            let letters = run_starts(letter) & !behind(space) & !inside;
            (
                letters | digits | run_starts(white) | white & (joins >> 1),
                white,
            )
        }
        Variant::Llama3 | Variant::Qwen2 => {
            let taken = runs_from(newline, newline & behind(other));
            let digits = if variant == Variant::Llama3 {
                thirds(digit)
            } else {
                digit
            };
            let letters = run_starts(letter) & !behind(space | masks.blank | joining);
            let white_starts = white_starts(masks, taken, letter | other | digit, known);
            (letters | digits | white_starts, white & !taken)
        }
    };
    without_open_white(
        1 | starts | other_starts | after & letter,
        open_white,
        known,
    ) & certain
}

/// Contractions of a block.
struct Contractions {
    /// The letter behind each apostrophe.
    inside: u64,
    /// The place behind each contraction.
    after: u64,
    /// All but what stands behind an apostrophe whose contraction may reach beyond the block.
    certain: u64,
}

fn contractions(variant: Variant, joining: u64, block: &[u8; 64]) -> Contractions {
    const LONGEST: usize = 3;
    let mut found = Contractions {
        inside: 0,
        after: 0,
        certain: u64::MAX,
    };
    let mut rest = joining;
    while rest != 0 {
        let at = rest.trailing_zeros() as usize;
        rest &= rest - 1;
        if block[at] != b'\'' {
            continue;
        }
        if at + LONGEST > 64 {
            found.certain = (2 << at) - 1;
            break;
        }
        if let Some(end) = super::gpt2::contraction_end(variant, block, at + 1) {
            found.inside |= 2 << at;
            found.after |= 1_u64.checked_shl(end as u32).unwrap_or(0);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::PreTokenizer;
    use super::super::classify::{Classify, Portable};
    use proptest::prelude::*;

    /// Checks the starts of the first block of `text` against the step-by-step scanner.
    fn check(pre_tokenizer: PreTokenizer, text: &[u8]) {
        let block: &[u8; 64] = text[..64].try_into().unwrap();
        let mut starts = pre_tokenizer.window_starts(&Portable.masks(block), block);
        let mut start = 0;
        while starts != 0 {
            assert_eq!(
                starts.trailing_zeros() as usize,
                start,
                "{pre_tokenizer:?} {:?}",
                text.escape_ascii().to_string()
            );
            starts &= starts - 1;
            start = pre_tokenizer.pre_token_end(text, start);
        }
    }

    #[test]
    fn contraction_at_the_end_of_the_block() {
        use super::super::gpt2::Variant;
        for shift in 0..6 {
            let mut text = vec![b'x'; 64 - shift];
            text.extend_from_slice(b"'ll re's'stop");
            text.resize(128, b'y');
            check(PreTokenizer::Gpt2(Variant::Llama3), &text);
            check(PreTokenizer::Gpt2(Variant::Gpt2), &text);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn starts_are_those_of_the_scanner(
            pool in proptest::sample::select(vec!["ab'", " a", "1 a", "\n a", "\t \n(", "('a ", "sStTmdrelLvE'", "a1.,(\n \t'\r\x0b\0\u{e9}"]),
            picks in proptest::collection::vec(any::<prop::sample::Index>(), 128),
        ) {
            let pool = pool.as_bytes();
            let pool: Vec<u8> = pool.iter().copied().filter(u8::is_ascii).collect();
            let text: Vec<u8> = picks.iter().map(|pick| *pick.get(&pool)).collect();
            for pre_tokenizer in PreTokenizer::ALL {
                check(pre_tokenizer, &text);
            }
        }
    }
}
