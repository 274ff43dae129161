//! Our own encoder of byte-level BPE vocabularies.

use std::collections::HashMap;

use serde_json::Value;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

use super::byte_level::{ByteAlphabet, byte_to_char};
use super::encoder::PlainEncoder;
use super::file::TokenizerFile;
use super::merge::{MergeScratch, MergeTable};
use super::scan::PreTokenizer;
use crate::{Error, Result};

/// Stands for bytes that have no token; they are left out of the text.
const NO_ID: u32 = u32::MAX;

/// Byte-level BPE over a pre-tokenizer of our own.
#[derive(Debug)]
pub(crate) struct ByteBpe {
    kind: Kind,
    byte_ids: [u32; 256],
    merges: MergeTable,
    /// Pre-tokens that are tokens.
    words: HashMap<Box<[u8]>, u32>,
}

/// What happens to a text before the merges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Kind {
    pre_tokenizer: PreTokenizer,
    /// Whether the text is brought into Unicode's composed form (NFC).
    composes: bool,
    /// Whether a pre-token that is in the vocabulary is that token, whatever the merges make of it.
    prefers_whole_words: bool,
}

impl ByteBpe {
    /// The encoder of `file`, or `None` when it needs something that this encoder does not do.
    ///
    /// # Errors
    /// [`Error::Tokenizer`] when the vocabulary contradicts itself.
    pub(crate) fn from_file(file: &TokenizerFile<'_>) -> Result<Option<Self>> {
        let Some(kind) = Kind::of(file) else {
            return Ok(None);
        };
        let ids: HashMap<&str, u32> = file
            .model
            .vocab
            .0
            .iter()
            .map(|(token, id)| (token.as_ref(), *id))
            .collect();
        let mut byte_ids = [NO_ID; 256];
        for byte in 0..=255_u8 {
            if let Some(&id) = ids.get(&*byte_to_char(byte).encode_utf8(&mut [0; 4])) {
                byte_ids[usize::from(byte)] = id;
            }
        }
        let id_of = |token: &str| {
            ids.get(token).copied().ok_or_else(|| Error::Tokenizer {
                message: format!("the vocabulary lacks {token:?}, which a merge needs"),
                offset: None,
            })
        };
        let mut merges = Vec::with_capacity(file.model.merges.len());
        let mut product = String::new();
        for merge in &file.model.merges {
            product.clear();
            product.push_str(&merge.0);
            product.push_str(&merge.1);
            merges.push((id_of(&merge.0)?, id_of(&merge.1)?, id_of(&product)?));
        }
        let merges = MergeTable::new(&merges);
        let words = whole_words(file, kind, &byte_ids, &merges);
        Ok(Some(Self {
            kind,
            byte_ids,
            merges,
            words,
        }))
    }
}

impl Kind {
    /// What `file` asks for, if all of it is covered.
    fn of(file: &TokenizerFile<'_>) -> Option<Self> {
        let model = &file.model;
        let composes = match file.normalizer["type"].as_str() {
            None => false,
            Some("NFC") => true,
            Some("Sequence") if file.normalizer["normalizers"] == Value::Array(Vec::new()) => false,
            Some(_) => return None,
        };
        let is_empty = |text: &Option<String>| text.as_deref().unwrap_or_default().is_empty();
        let is_plain_bpe = model.kind.as_deref().is_none_or(|kind| kind == "BPE")
            && !model.merges.is_empty()
            && model.dropout.is_null()
            && model.unk_token.is_null()
            && !model.byte_fallback
            && is_empty(&model.continuing_subword_prefix)
            && is_empty(&model.end_of_word_suffix)
            && file.decoder["type"] == "ByteLevel";
        let pre_tokenizer = PreTokenizer::from_json(&file.pre_tokenizer)?;
        is_plain_bpe.then_some(Self {
            pre_tokenizer,
            composes,
            prefers_whole_words: model.ignore_merges,
        })
    }
}

/// The vocabulary entries that the merges build from their own bytes: for those a lookup replaces the merges.
fn whole_words(
    file: &TokenizerFile<'_>,
    kind: Kind,
    byte_ids: &[u32; 256],
    merges: &MergeTable,
) -> HashMap<Box<[u8]>, u32> {
    let vocab = &file.model.vocab.0;
    let alphabet = ByteAlphabet::new();
    let mut scratch = MergeScratch::default();
    let (mut bytes, mut merged) = (Vec::new(), Vec::new());
    let mut words = HashMap::with_capacity(vocab.len());
    for (token, id) in vocab {
        bytes.clear();
        merged.clear();
        if !alphabet.decode_into(token, &mut bytes) {
            continue;
        }
        if !kind.prefers_whole_words {
            merges.merge(symbols(byte_ids, &bytes), &mut scratch, &mut merged);
        }
        if kind.prefers_whole_words || merged == [*id] {
            words.insert(Box::from(bytes.as_slice()), *id);
        }
    }
    words
}

/// The tokens of single bytes that a word starts out as.
fn symbols(byte_ids: &[u32; 256], word: &[u8]) -> impl Iterator<Item = u32> {
    word.iter()
        .map(|&byte| byte_ids[usize::from(byte)])
        .filter(|&id| id != NO_ID)
}

impl PlainEncoder for ByteBpe {
    fn encode_into(&self, text: &str, _at_start: bool, out: &mut Vec<u32>) -> Result<()> {
        let composed: String;
        let text = if self.kind.composes && is_nfc_quick(text.chars()) != IsNormalized::Yes {
            composed = text.nfc().collect();
            composed.as_bytes()
        } else {
            text.as_bytes()
        };
        let mut scratch = MergeScratch::default();
        let mut start = 0;
        while start < text.len() {
            let end = self.kind.pre_tokenizer.pre_token_end(text, start);
            let word = &text[start..end];
            match self.words.get(word) {
                Some(&id) => out.push(id),
                None => self
                    .merges
                    .merge(symbols(&self.byte_ids, word), &mut scratch, out),
            }
            start = end;
        }
        Ok(())
    }

    fn safe_cut(&self, text: &str, from: usize, until: usize) -> Option<usize> {
        let bytes = text.as_bytes();
        let is_safe = |at: usize| {
            // No character composes with an ASCII character behind it, so composing the parts composes the whole.
            let keeps_form =
                !self.kind.composes || bytes[at].is_ascii() && bytes[at - 1].is_ascii();
            keeps_form && self.kind.pre_tokenizer.is_safe_cut(bytes, at)
        };
        (from.max(1)..until.min(text.len())).find(|&at| text.is_char_boundary(at) && is_safe(at))
    }
}
