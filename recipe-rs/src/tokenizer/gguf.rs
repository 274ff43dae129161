//! Vocabularies as GGUF files carry them, turned into the `tokenizer.json` that they were made from.

use std::cmp::Reverse;
use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::scan::{DEEPSEEK_SPLITS, GPT2_SPLIT, LLAMA3_SPLIT, QWEN2_SPLIT};
use crate::{Error, Result};

/// Vocabulary of a GGUF file: the `tokenizer.ggml.*` keys.
#[derive(Debug, Clone, Copy)]
pub struct GgufVocabulary<'a> {
    /// `model`: "gpt2" for byte-level BPE, "llama" for `SentencePiece` BPE.
    pub model: &'a str,
    /// `pre`: the name of the pre-tokenizer; without meaning for "llama".
    pub pre: &'a str,
    /// `tokens`: the spelling of each id.
    pub tokens: &'a [String],
    /// `merges`: "left right", for "gpt2".
    pub merges: &'a [String],
    /// `scores`: one for each token, for "llama".
    pub scores: Option<&'a [f32]>,
    /// `token_type`: one for each token; 2 unknown, 3 control, 4 user defined, 6 byte.
    pub token_types: &'a [i32],
    /// `add_space_prefix`, for "llama".
    pub add_space_prefix: bool,
}

const UNKNOWN: i32 = 2;
const CONTROL: i32 = 3;
const USER_DEFINED: i32 = 4;

/// The space of `SentencePiece` vocabularies.
const META_SPACE: &str = "\u{2581}";

const TEKKEN_SPLIT: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";

const SUPPORTED_PRE: &str = "gpt-2, smollm, llama-bpe, qwen2, tekken, deepseek-v3";

impl GgufVocabulary<'_> {
    /// The `tokenizer.json` of the same tokenizer.
    ///
    /// # Errors
    /// [`Error::Tokenizer`] when the kind is not supported or the lists do not fit together.
    pub(crate) fn to_tokenizer_json(self) -> Result<String> {
        for (name, length) in [
            ("token_types", Some(self.token_types.len())),
            ("scores", self.scores.map(<[f32]>::len)),
        ] {
            if length.is_some_and(|length| length != self.tokens.len()) {
                return Err(invalid(format!(
                    "the GGUF vocabulary has {} tokens but {} {name}; the file is damaged",
                    self.tokens.len(),
                    length.unwrap_or_default()
                )));
            }
        }
        let mut root = match self.model {
            "gpt2" => self.byte_level()?,
            "llama" => self.sentence_piece()?,
            other => {
                return Err(invalid(format!(
                    "GGUF tokenizer model {other:?} is not supported; supported are gpt2 and llama"
                )));
            }
        };
        root["version"] = json!("1.0");
        root["added_tokens"] = self.added_tokens();
        Ok(root.to_string())
    }

    fn vocab(&self) -> Value {
        self.tokens
            .iter()
            .zip(0_u32..)
            .map(|(token, id)| (token.clone(), json!(id)))
            .collect::<Map<_, _>>()
            .into()
    }

    fn added_tokens(&self) -> Value {
        self.tokens
            .iter()
            .zip(self.token_types)
            .zip(0_u32..)
            .filter(|((_, kind), _)| [CONTROL, USER_DEFINED].contains(kind))
            .map(|((content, kind), id)| {
                json!({
                    "id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
                    "normalized": false, "special": *kind == CONTROL,
                })
            })
            .collect()
    }

    fn byte_level(&self) -> Result<Value> {
        let isolate = |pattern: &str| json!({"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": false});
        let digits = || json!({"type": "Digits", "individual_digits": true});
        let splits = match self.pre {
            "gpt-2" => vec![isolate(GPT2_SPLIT)],
            "smollm" => vec![digits(), isolate(GPT2_SPLIT)],
            "llama-bpe" => vec![isolate(LLAMA3_SPLIT)],
            "qwen2" => vec![isolate(QWEN2_SPLIT)],
            "tekken" => vec![isolate(TEKKEN_SPLIT)],
            "deepseek-v3" => DEEPSEEK_SPLITS
                .iter()
                .map(|&pattern| isolate(pattern))
                .collect(),
            other => {
                return Err(invalid(format!(
                    "GGUF pre-tokenizer {other:?} is not supported; supported are {SUPPORTED_PRE}"
                )));
            }
        };
        let byte_level = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false});
        let steps: Vec<Value> = splits.into_iter().chain([byte_level.clone()]).collect();
        let merges = self
            .merges
            .iter()
            .map(|merge| match merge.split_once(' ') {
                Some((left, right)) => Ok(json!([left, right])),
                None => Err(invalid(format!(
                    "GGUF merge {merge:?} has no space between its two parts"
                ))),
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(json!({
            "normalizer": if self.pre == "qwen2" { json!({"type": "NFC"}) } else { Value::Null },
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": steps},
            "decoder": byte_level,
            "model": {
                "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
                "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false,
                "ignore_merges": matches!(self.pre, "llama-bpe" | "tekken"),
                "vocab": self.vocab(), "merges": merges,
            },
        }))
    }

    fn sentence_piece(&self) -> Result<Value> {
        let scores = self
            .scores
            .ok_or_else(|| invalid("a GGUF vocabulary of model llama needs scores".to_owned()))?;
        let unknown = self.token_types.iter().position(|&kind| kind == UNKNOWN);
        let mut normalizers =
            vec![json!({"type": "Replace", "pattern": {"String": " "}, "content": META_SPACE})];
        let mut decoders = vec![
            json!({"type": "Replace", "pattern": {"String": META_SPACE}, "content": " "}),
            json!({"type": "ByteFallback"}),
            json!({"type": "Fuse"}),
        ];
        if self.add_space_prefix {
            normalizers.insert(0, json!({"type": "Prepend", "prepend": META_SPACE}));
            decoders.push(json!({"type": "Strip", "content": " ", "start": 1, "stop": 0}));
        }
        Ok(json!({
            "normalizer": {"type": "Sequence", "normalizers": normalizers},
            "pre_tokenizer": null,
            "decoder": {"type": "Sequence", "decoders": decoders},
            "model": {
                "type": "BPE", "dropout": null, "unk_token": unknown.map(|id| &self.tokens[id]),
                "continuing_subword_prefix": null, "end_of_word_suffix": null, "fuse_unk": true,
                "byte_fallback": true, "ignore_merges": false,
                "vocab": self.vocab(), "merges": merges_by_score(self.tokens, scores),
            },
        }))
    }
}

/// Merges of a `SentencePiece` vocabulary: every way to split a piece into two pieces, best score of the whole first.
fn merges_by_score(tokens: &[String], scores: &[f32]) -> Vec<[String; 2]> {
    let ids: HashMap<&str, usize> = tokens
        .iter()
        .enumerate()
        .map(|(id, token)| (token.as_str(), id))
        .collect();
    let mut merges: Vec<(f32, usize, usize)> = Vec::new();
    for (token, &score) in tokens.iter().zip(scores) {
        let mut splits: Vec<(usize, usize)> = token
            .char_indices()
            .skip(1)
            .filter_map(|(at, _)| Some((*ids.get(&token[..at])?, *ids.get(&token[at..])?)))
            .collect();
        splits.sort_unstable();
        merges.extend(splits.into_iter().map(|(left, right)| (score, left, right)));
    }
    let characters = |id: usize| tokens[id].chars().count();
    merges.sort_by(|a, b| {
        b.0.total_cmp(&a.0).then_with(|| {
            Reverse((characters(a.1), characters(a.2)))
                .cmp(&Reverse((characters(b.1), characters(b.2))))
        })
    });
    merges
        .into_iter()
        .map(|(_, left, right)| [tokens[left].clone(), tokens[right].clone()])
        .collect()
}

fn invalid(message: String) -> Error {
    Error::Tokenizer {
        message,
        offset: None,
    }
}
