//! Pre-tokenizers: where a text is split before the merges run.

pub(crate) mod classify;
pub(crate) mod deepseek;
pub(crate) mod gpt2;
pub(crate) mod simd;
mod window;

use serde_json::{Value, json};

/// A pre-tokenizer that the encoder knows by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PreTokenizer {
    /// DeepSeek V3 and V4.
    DeepSeek,
    /// GPT-2 and its descendants.
    Gpt2(gpt2::Variant),
}

impl PreTokenizer {
    /// Every pre-tokenizer of ours.
    #[cfg(test)]
    pub(crate) const ALL: [Self; 5] = [
        PreTokenizer::DeepSeek,
        PreTokenizer::Gpt2(gpt2::Variant::Gpt2),
        PreTokenizer::Gpt2(gpt2::Variant::SmolLm),
        PreTokenizer::Gpt2(gpt2::Variant::Llama3),
        PreTokenizer::Gpt2(gpt2::Variant::Qwen2),
    ];

    /// The pre-tokenizer that the `pre_tokenizer` value of a `tokenizer.json` describes, if it is one of ours.
    #[must_use]
    pub(crate) fn from_json(value: &Value) -> Option<Self> {
        let steps = Step::list(value)?;
        if steps == DEEPSEEK_SPLITS.map(Step::Split) {
            return Some(PreTokenizer::DeepSeek);
        }
        let variant = match steps.as_slice() {
            [Step::Split(GPT2_SPLIT)] => gpt2::Variant::Gpt2,
            [Step::Digits, Step::Split(GPT2_SPLIT)] => gpt2::Variant::SmolLm,
            [Step::Split(LLAMA3_SPLIT)] => gpt2::Variant::Llama3,
            [Step::Split(QWEN2_SPLIT)] => gpt2::Variant::Qwen2,
            _ => return None,
        };
        Some(PreTokenizer::Gpt2(variant))
    }

    /// End of the pre-token that starts at `start`, which is less than `text.len()`.
    #[must_use]
    #[inline]
    pub(crate) fn pre_token_end(self, text: &[u8], start: usize) -> usize {
        match self {
            PreTokenizer::DeepSeek => deepseek::pre_token_end(text, start),
            PreTokenizer::Gpt2(variant) => gpt2::pre_token_end(variant, text, start),
        }
    }

    /// Starts of pre-tokens in `block`, whose first byte starts one: the bits of the result.
    ///
    /// What ends the last of them may lie behind the block.
    #[must_use]
    #[inline]
    pub(crate) fn window_starts(self, masks: &classify::Masks, block: &[u8; 64]) -> u64 {
        match self {
            PreTokenizer::DeepSeek => window::deepseek(masks),
            PreTokenizer::Gpt2(variant) => window::gpt2(variant, masks, block),
        }
    }

    /// Whether a text may be cut at `at` without changing any token, whatever stands on both sides.
    ///
    /// `at` is a character boundary with `0 < at < text.len()`.
    #[must_use]
    pub(crate) fn is_safe_cut(self, text: &[u8], at: usize) -> bool {
        match self {
            PreTokenizer::DeepSeek => super::cuts::deepseek_is_safe(text, at),
            PreTokenizer::Gpt2(_) => super::cuts::gpt2_is_safe(text, at),
        }
    }
}

/// The regular expressions of the DeepSeek file, in the order in which they are applied.
pub(crate) const DEEPSEEK_SPLITS: [&str; 3] = [
    r"\p{N}{1,3}",
    "[\u{4e00}-\u{9fa5}\u{3040}-\u{309f}\u{30a0}-\u{30ff}]+",
    concat!(
        r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^"##,
        "\r\n",
        r"\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[",
        "\r\n",
        r"]*|\s*[",
        "\r\n",
        r"]+|\s+(?!\S)|\s+",
    ),
];

/// The regular expression of GPT-2.
pub(crate) const GPT2_SPLIT: &str =
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

/// The regular expression of Llama 3.
pub(crate) const LLAMA3_SPLIT: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// The regular expression of Qwen 2 and later.
pub(crate) const QWEN2_SPLIT: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// One step of a pre-tokenizer sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step<'a> {
    /// Every match of the expression is a piece.
    Split(&'a str),
    /// Every digit is a piece.
    Digits,
}

impl<'a> Step<'a> {
    /// The steps of a sequence that ends in a byte-level step, or of that step alone; `None` if a step is none of ours.
    fn list(value: &'a Value) -> Option<Vec<Self>> {
        let single = std::slice::from_ref(value);
        let members = if value["type"] == "Sequence" {
            value["pretokenizers"].as_array()?.as_slice()
        } else {
            single
        };
        let (last, first) = members.split_last()?;
        if last["type"] != "ByteLevel" || last["add_prefix_space"] != json!(false) {
            return None;
        }
        let mut steps = first.iter().map(Self::new).collect::<Option<Vec<_>>>()?;
        if last["use_regex"] != json!(false) {
            steps.push(Step::Split(GPT2_SPLIT));
        }
        Some(steps)
    }

    fn new(value: &'a Value) -> Option<Self> {
        match value["type"].as_str()? {
            "Split" if value["behavior"] == "Isolated" && value["invert"] != json!(true) => {
                value["pattern"]["Regex"].as_str().map(Step::Split)
            }
            "Digits" if value["individual_digits"] == json!(true) => Some(Step::Digits),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use unicode_normalization::UnicodeNormalization;

    #[test]
    fn pieces_are_those_of_the_reference() {
        let vectors: Value =
            serde_json::from_str(include_str!("../../../tests/data/tokenizer_vectors.json"))
                .unwrap();
        let texts = vectors["texts"].as_array().unwrap();
        let kinds = vectors["pre_tokenizers"].as_object().unwrap();
        assert_eq!(kinds.len(), 5);
        for (name, kind) in kinds {
            let pre_tokenizer = PreTokenizer::from_json(&kind[1]).unwrap();
            for (text, expected) in texts
                .iter()
                .zip(vectors["piece_lengths"][name].as_array().unwrap())
            {
                let mut text = text.as_str().unwrap().to_owned();
                if kind[0]["type"] == "NFC" {
                    text = text.nfc().collect();
                }
                let (mut start, mut lengths) = (0, Vec::new());
                while start < text.len() {
                    let end = pre_tokenizer.pre_token_end(text.as_bytes(), start);
                    lengths.push(end - start);
                    start = end;
                }
                assert_eq!(json!(lengths), *expected, "{name} {text:?}");
            }
        }
    }
}
