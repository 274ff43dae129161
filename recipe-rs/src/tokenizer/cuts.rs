//! Where a plain text may be cut so that the tokens of the parts are the tokens of the whole.

use super::scan::{deepseek, gpt2};

/// One bit a class of the character after the cut, for each class of the character before it.
///
/// A set bit means: no match of the pre-tokenizer spans the two characters, the left part's last match does not
/// change when the text ends there, and the right part's first match starts there. Found by enumerating all class
/// strings; the tests repeat that enumeration.
const DEEPSEEK_SAFE: [u16; deepseek::NUM_CLASSES] = [
    // A L M N p P s t n O C D E of the next character, from bit 0 up
    bits("...YYYYYYYYYY"), // A
    bits("...YYYYYYYYYY"), // L
    bits("...YYYYYYYYYY"), // M
    bits("YYY.YYYYYYYYY"), // N
    bits(".YYY..YY.YYYY"), // AsciiPunct
    bits("YYYY..YY.YYYY"), // Punct
    bits("...Y......YYY"), // Space
    bits("...Y......YYY"), // Blank
    bits("YYYYYY...YYYY"), // Newline
    bits("...YYYYYY.YYY"), // Other
    bits("YYYYYYYYYY.YY"), // CjkLetter
    bits("YYYYYYYYYYY.Y"), // CjkPunct
    bits("YYYYYYYYYY.Y."), // CjkOther
];

const fn bits(row: &str) -> u16 {
    let row = row.as_bytes();
    let (mut mask, mut index) = (0, 0);
    while index < row.len() {
        if row[index] == b'Y' {
            mask |= 1 << index;
        }
        index += 1;
    }
    mask
}

/// The same for GPT-2's descendants, safe for each of them; classes of `gpt2::Class`.
const GPT2_SAFE: [u16; gpt2::NUM_CLASSES] = [
    // L N ' X s t n of the next character, from bit 0 up
    bits(".YYYYYY"), // Letter
    bits("Y.YYYYY"), // Number
    bits(".Y..YY."), // Apostrophe
    bits(".Y..YY."), // Other
    bits("......."), // Space
    bits("......."), // Blank
    bits("......."), // Newline
];

/// Whether cutting `text` at `at` is safe for the DeepSeek pre-tokenizer; `at` is an inner character boundary.
#[must_use]
pub(crate) fn deepseek_is_safe(text: &[u8], at: usize) -> bool {
    let before = deepseek::class_at(text, char_start_before(text, at)).0;
    let after = deepseek::class_at(text, at).0;
    DEEPSEEK_SAFE[before as usize] >> (after as u8) & 1 == 1
}

/// Whether cutting `text` at `at` is safe for GPT-2's descendants; `at` is an inner character boundary.
#[must_use]
pub(crate) fn gpt2_is_safe(text: &[u8], at: usize) -> bool {
    let before = gpt2::class_at(text, char_start_before(text, at)).0;
    let after = gpt2::class_at(text, at).0;
    GPT2_SAFE[before as usize] >> (after as u8) & 1 == 1
}

/// Start of the character that ends at `at`, which is not 0.
fn char_start_before(text: &[u8], at: usize) -> usize {
    let mut start = at - 1;
    while text[start] & 0xC0 == 0x80 {
        start -= 1;
    }
    start
}

#[cfg(test)]
mod tests {
    use super::super::scan::PreTokenizer;
    use super::*;

    /// One character of each class of the DeepSeek table.
    const DEEPSEEK_SAMPLES: [&str; deepseek::NUM_CLASSES] = [
        "a", "\u{e9}", "\u{301}", "1", "(", "\u{2026}", " ", "\t", "\n", "\0", "\u{4e00}",
        "\u{30fb}", "\u{3040}",
    ];

    /// Characters of each class of the other table, with its number; letters in and out of contractions.
    const GPT2_SAMPLES: [(&str, usize); 10] = [
        ("a", 0),
        ("s", 0),
        ("l", 0),
        ("\u{e9}", 0),
        ("1", 1),
        ("'", 2),
        ("(", 3),
        (" ", 4),
        ("\t", 5),
        ("\n", 6),
    ];

    fn pieces(pre_tokenizer: PreTokenizer, text: &str) -> Vec<&str> {
        let (mut start, mut pieces) = (0, Vec::new());
        while start < text.len() {
            let end = pre_tokenizer.pre_token_end(text.as_bytes(), start);
            pieces.push(&text[start..end]);
            start = end;
        }
        pieces
    }

    /// The pairs of samples at which every string of up to `max_length` samples may be cut, one bit a right sample.
    fn safe_pairs(pre_tokenizer: PreTokenizer, samples: &[&str], max_length: u32) -> Vec<u16> {
        let mut safe = vec![(1 << samples.len()) - 1; samples.len()];
        for length in 2..=max_length {
            for mut number in 0..samples.len().pow(length) {
                let chosen: Vec<usize> = (0..length)
                    .map(|_| {
                        let sample = number % samples.len();
                        number /= samples.len();
                        sample
                    })
                    .collect();
                let text: String = chosen.iter().map(|&sample| samples[sample]).collect();
                let whole = pieces(pre_tokenizer, &text);
                let mut at = 0;
                for pair in chosen.windows(2) {
                    at += samples[pair[0]].len();
                    let mut parts = pieces(pre_tokenizer, &text[..at]);
                    parts.extend(pieces(pre_tokenizer, &text[at..]));
                    if parts != whole {
                        safe[pair[0]] &= !(1 << pair[1]);
                    }
                }
            }
        }
        safe
    }

    #[test]
    fn samples_have_their_class() {
        for (class, sample) in DEEPSEEK_SAMPLES.iter().enumerate() {
            assert_eq!(deepseek::class_at(sample.as_bytes(), 0).0 as usize, class);
        }
        for (sample, class) in GPT2_SAMPLES {
            assert_eq!(gpt2::class_at(sample.as_bytes(), 0).0 as usize, class);
        }
    }

    #[test]
    fn deepseek_table_is_what_enumeration_finds() {
        let found = safe_pairs(PreTokenizer::DeepSeek, &DEEPSEEK_SAMPLES, 4);
        for (class, (found, table)) in found.iter().zip(DEEPSEEK_SAFE).enumerate() {
            assert_eq!(
                format!("{found:013b}"),
                format!("{table:013b}"),
                "class {class}"
            );
        }
    }

    #[test]
    fn gpt2_table_is_safe_for_every_variant() {
        use gpt2::Variant::{Gpt2, Llama3, Qwen2, SmolLm};
        let samples = GPT2_SAMPLES.map(|(sample, _)| sample);
        for variant in [Gpt2, SmolLm, Llama3, Qwen2] {
            let found = safe_pairs(PreTokenizer::Gpt2(variant), &samples, 4);
            for (left, row) in GPT2_SAMPLES.iter().zip(found) {
                for (bit, right) in GPT2_SAMPLES.iter().enumerate() {
                    let claimed = GPT2_SAFE[left.1] >> right.1 & 1 == 1;
                    let is_safe = row >> bit & 1 == 1;
                    assert!(!claimed || is_safe, "{variant:?} {left:?} {right:?}");
                }
            }
        }
    }
}
