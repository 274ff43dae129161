//! The `tokenizer.json` format, as far as the encoder and the decoder need it.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use crate::{Error, Result};

/// A parsed `tokenizer.json`; strings borrow from its text where they need no unescaping.
#[derive(Debug, Deserialize)]
pub(crate) struct TokenizerFile<'a> {
    #[serde(borrow, default)]
    pub(crate) added_tokens: Vec<AddedTokenEntry<'a>>,
    #[serde(default)]
    pub(crate) normalizer: Value,
    #[serde(default)]
    pub(crate) pre_tokenizer: Value,
    #[serde(default)]
    pub(crate) decoder: Value,
    #[serde(borrow)]
    pub(crate) model: ModelEntry<'a>,
}

/// One entry of `added_tokens`.
#[derive(Debug, Clone, Deserialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "the file format has five flags"
)]
pub(crate) struct AddedTokenEntry<'a> {
    pub(crate) id: u32,
    #[serde(borrow)]
    pub(crate) content: Cow<'a, str>,
    #[serde(default)]
    pub(crate) single_word: bool,
    #[serde(default)]
    pub(crate) lstrip: bool,
    #[serde(default)]
    pub(crate) rstrip: bool,
    #[serde(default)]
    pub(crate) normalized: bool,
    #[serde(default)]
    pub(crate) special: bool,
}

/// The `model` object; which fields are set depends on its kind.
#[derive(Debug, Deserialize)]
pub(crate) struct ModelEntry<'a> {
    #[serde(borrow, rename = "type", default)]
    pub(crate) kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(crate) vocab: VocabEntries<'a>,
    #[serde(borrow, default)]
    pub(crate) merges: Vec<MergeEntry<'a>>,
    #[serde(default)]
    pub(crate) unk_token: Value,
    #[serde(default)]
    pub(crate) dropout: Value,
    #[serde(default)]
    pub(crate) continuing_subword_prefix: Option<String>,
    #[serde(default)]
    pub(crate) end_of_word_suffix: Option<String>,
    #[serde(default)]
    pub(crate) byte_fallback: bool,
    #[serde(default)]
    pub(crate) ignore_merges: bool,
}

/// Vocabulary of the model: (spelling, id) pairs in file order.
#[derive(Debug)]
pub(crate) struct VocabEntries<'a>(pub(crate) Vec<(Cow<'a, str>, u32)>);

/// One merge rule: the spellings of its left and right part.
#[derive(Debug)]
pub(crate) struct MergeEntry<'a>(pub(crate) Cow<'a, str>, pub(crate) Cow<'a, str>);

/// A string that borrows from the JSON text where it holds no escape.
#[derive(Deserialize)]
struct JsonString<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'a> TokenizerFile<'a> {
    /// Parses the text of a `tokenizer.json`.
    ///
    /// # Errors
    /// [`Error::Tokenizer`] when it is no JSON or lacks a vocabulary.
    pub(crate) fn parse(json: &'a str) -> Result<Self> {
        serde_json::from_str(json).map_err(|error| Error::Tokenizer {
            message: format!("the tokenizer file cannot be read as a tokenizer.json: {error}"),
            offset: byte_offset(json, error.line(), error.column()),
        })
    }
}

/// Byte offset of a position that `serde_json` gives as one-based line and column.
fn byte_offset(text: &str, line: usize, column: usize) -> Option<usize> {
    let line_start: usize = text
        .split_inclusive('\n')
        .take(line.checked_sub(1)?)
        .map(str::len)
        .sum();
    Some((line_start + column.saturating_sub(1)).min(text.len()))
}

impl<'de: 'a, 'a> Deserialize<'de> for VocabEntries<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct EntriesVisitor;
        impl<'de> Visitor<'de> for EntriesVisitor {
            type Value = VocabEntries<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object of token ids or a list of [piece, score] pairs")
            }

            fn visit_map<A: MapAccess<'de>>(
                self,
                mut map: A,
            ) -> std::result::Result<Self::Value, A::Error> {
                let mut entries = Vec::with_capacity(map.size_hint().unwrap_or(1 << 17));
                while let Some((token, id)) = map.next_entry::<JsonString<'de>, u32>()? {
                    entries.push((token.0, id));
                }
                Ok(VocabEntries(entries))
            }

            fn visit_seq<A: SeqAccess<'de>>(
                self,
                mut sequence: A,
            ) -> std::result::Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some((token, _score)) =
                    sequence.next_element::<(JsonString<'de>, f64)>()?
                {
                    let id = entries.len() as u32;
                    entries.push((token.0, id));
                }
                Ok(VocabEntries(entries))
            }
        }
        deserializer.deserialize_any(EntriesVisitor)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for MergeEntry<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct MergeVisitor;
        impl<'de> Visitor<'de> for MergeVisitor {
            type Value = MergeEntry<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a merge: \"left right\" or [\"left\", \"right\"]")
            }

            fn visit_borrowed_str<E: serde::de::Error>(
                self,
                text: &'de str,
            ) -> std::result::Result<Self::Value, E> {
                let (left, right) = text
                    .split_once(' ')
                    .ok_or_else(|| E::custom(format!("merge {text:?} has no space")))?;
                Ok(MergeEntry(Cow::Borrowed(left), Cow::Borrowed(right)))
            }

            fn visit_str<E: serde::de::Error>(
                self,
                text: &str,
            ) -> std::result::Result<Self::Value, E> {
                let (left, right) = text
                    .split_once(' ')
                    .ok_or_else(|| E::custom(format!("merge {text:?} has no space")))?;
                Ok(MergeEntry(
                    Cow::Owned(left.to_owned()),
                    Cow::Owned(right.to_owned()),
                ))
            }

            fn visit_seq<A: SeqAccess<'de>>(
                self,
                mut sequence: A,
            ) -> std::result::Result<Self::Value, A::Error> {
                let mut part = |index| {
                    sequence
                        .next_element::<JsonString<'de>>()?
                        .map(|text| text.0)
                        .ok_or_else(|| serde::de::Error::invalid_length(index, &self))
                };
                let merge = MergeEntry(part(0)?, part(1)?);
                if sequence.next_element::<serde::de::IgnoredAny>()?.is_some() {
                    return Err(serde::de::Error::invalid_length(3, &"two parts"));
                }
                Ok(merge)
            }
        }
        deserializer.deserialize_any(MergeVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_both_spellings_of_merges_and_vocabularies() {
        let json = r#"{"model": {"type": "BPE", "vocab": {"a": 0, "\u0062": 1, "ab": 2}, "merges": ["a b", ["a", "b"], "a \u0062"]}}"#;
        let file = TokenizerFile::parse(json).unwrap();
        assert_eq!(file.model.vocab.0.len(), 3);
        for merge in &file.model.merges {
            assert_eq!((merge.0.as_ref(), merge.1.as_ref()), ("a", "b"));
        }
        let json = r#"{"model": {"type": "Unigram", "vocab": [["x", -1.5], ["y", 0]]}}"#;
        let file = TokenizerFile::parse(json).unwrap();
        assert_eq!(file.model.vocab.0[1], (Cow::Borrowed("y"), 1));
    }

    #[test]
    fn errors_carry_an_offset() {
        for json in [
            "",
            "{",
            "[]",
            "{\"model\": {}}",
            "{\"model\":\n {\"vocab\": {\"a\": -1}}}",
        ] {
            let error = TokenizerFile::parse(json).unwrap_err();
            let Error::Tokenizer {
                offset: Some(offset),
                ..
            } = error
            else {
                panic!("{error:?}")
            };
            assert!(offset <= json.len());
        }
    }
}
