//! Every tokenizer that is not ours, through the `tokenizers` crate.

use std::fmt;

use serde_json::{Value, json};
use tokenizers::pipeline::{EncodeOptions, PipelineToken, PipelineTokenizer};

use super::byte_level::byte_to_char;
use super::encoder::PlainEncoder;
use crate::{Error, Result};

/// A pipeline of the crate, without the added tokens: they are split off before.
pub(crate) struct CrateEncoder {
    pipeline: PipelineTokenizer,
    /// The same without the space that opens a sequence; set where the two differ.
    continuation: Option<PipelineTokenizer>,
    /// Ids from here on stand for bytes without a token, which are left out.
    first_filler_id: u32,
}

/// A pipeline of the crate with its added tokens, for what cannot be taken apart: matching that depends on
/// neighbours, and decoders that look at more than one token.
pub(crate) struct CratePipeline(PipelineTokenizer);

/// Parses `json` and brings it into the one form that the crate reads.
///
/// # Errors
/// [`Error::Tokenizer`] when the crate knows no such tokenizer.
pub(crate) fn canonical(json: &str) -> Result<Value> {
    let mut value: Value = serde_json::from_str(json).map_err(unreadable)?;
    if let Some(root) = value.as_object_mut() {
        // These decide about what stands around a text, which callers here do themselves.
        for key in ["post_processor", "truncation", "padding"] {
            root.insert(key.to_owned(), Value::Null);
        }
    }
    tokenizers::canonicalize_value(&mut value).map_err(unreadable)?;
    Ok(value)
}

fn unreadable(error: impl fmt::Display) -> Error {
    Error::Tokenizer {
        message: format!("the tokenizer file is not supported: {error}"),
        offset: None,
    }
}

fn build(value: &Value) -> Result<PipelineTokenizer> {
    tokenizers::from_json(&value.to_string()).map_err(unreadable)
}

/// Turns off the space in front of a sequence in a canonical normalizer; true if there was one to turn off.
fn drop_first_space(normalizer: &mut Value) -> bool {
    match normalizer {
        Value::Object(fields) => {
            let is_first = fields
                .get("prepend")
                .is_some_and(|scheme| scheme == "first");
            if is_first {
                fields.insert("prepend".to_owned(), json!("never"));
            }
            fields
                .get_mut("normalizers")
                .and_then(Value::as_array_mut)
                .is_some_and(|members| {
                    members
                        .iter_mut()
                        .fold(false, |any, member| drop_first_space(member) | any)
                })
                | is_first
        }
        _ => false,
    }
}

/// Gives every byte a token, as the crate wants of byte-level vocabularies, and returns the first id given out.
fn add_missing_bytes(model: &mut Value) -> u32 {
    let is_byte_level = model["byte_level"] == json!(true);
    let Some(vocab) = model
        .get_mut("vocab")
        .and_then(Value::as_object_mut)
        .filter(|_| is_byte_level)
    else {
        return u32::MAX;
    };
    let largest = vocab.values().filter_map(Value::as_u64).max().unwrap_or(0);
    let first_filler_id = largest as u32 + 1;
    let mut next_id = first_filler_id;
    for byte in 0..=255 {
        let spelling = byte_to_char(byte).to_string();
        vocab.entry(spelling).or_insert_with(|| {
            next_id += 1;
            json!(next_id - 1)
        });
    }
    first_filler_id
}

impl CrateEncoder {
    /// Builds the encoder from a [`canonical`] value.
    ///
    /// # Errors
    /// [`Error::Tokenizer`] when the crate refuses it.
    pub(crate) fn new(canonical: &Value) -> Result<Self> {
        let mut plain = canonical.clone();
        plain["added_tokens"] = json!([]);
        let first_filler_id = add_missing_bytes(&mut plain["model"]);
        let pipeline = build(&plain)?;
        let continuation = if drop_first_space(&mut plain["normalizer"]) {
            Some(build(&plain)?)
        } else {
            None
        };
        Ok(Self {
            pipeline,
            continuation,
            first_filler_id,
        })
    }
}

impl PlainEncoder for CrateEncoder {
    fn encode_into(&self, text: &str, at_start: bool, out: &mut Vec<u32>) -> Result<()> {
        let pipeline = match &self.continuation {
            Some(continuation) if !at_start => continuation,
            _ => &self.pipeline,
        };
        let start = out.len();
        encode_with(pipeline, text, out)?;
        if out[start..].iter().any(|&id| id >= self.first_filler_id) {
            let kept: Vec<u32> = out
                .drain(start..)
                .filter(|&id| id < self.first_filler_id)
                .collect();
            out.extend(kept);
        }
        Ok(())
    }

    fn last_safe_cut(&self, _text: &str) -> Option<usize> {
        None
    }

    fn safe_cut(&self, _text: &str, _from: usize, _until: usize) -> Option<usize> {
        None
    }
}

fn encode_with(pipeline: &PipelineTokenizer, text: &str, out: &mut Vec<u32>) -> Result<()> {
    let mut tokens = Vec::with_capacity(text.len() / 4);
    pipeline
        .encode_into(text, &EncodeOptions::no_specials(), &mut tokens)
        .map_err(|error| Error::Tokenizer {
            message: format!("the text cannot be encoded: {error}"),
            offset: None,
        })?;
    out.extend_from_slice(PipelineToken::cast_slice(&tokens));
    Ok(())
}

impl CratePipeline {
    /// Builds the pipeline from a [`canonical`] value.
    ///
    /// # Errors
    /// [`Error::Tokenizer`] when the crate refuses it.
    pub(crate) fn new(canonical: &Value) -> Result<Self> {
        build(canonical).map(Self)
    }

    /// Appends the ids of `text`, added tokens included.
    ///
    /// # Errors
    /// [`Error::Tokenizer`] when a character has no token and there is no unknown token.
    pub(crate) fn encode_into(&self, text: &str, out: &mut Vec<u32>) -> Result<()> {
        encode_with(&self.0, text, out)
    }

    /// Text of `ids`.
    ///
    /// # Errors
    /// [`Error::Tokenizer`] when the decoder fails.
    pub(crate) fn decode(&self, ids: &[u32], skip_special_tokens: bool) -> Result<String> {
        self.0
            .decode(ids, skip_special_tokens)
            .map_err(|error| Error::Tokenizer {
                message: format!("the ids cannot be decoded: {error}"),
                offset: None,
            })
    }
}

impl fmt::Debug for CrateEncoder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("CrateEncoder")
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for CratePipeline {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("CratePipeline")
            .finish_non_exhaustive()
    }
}
