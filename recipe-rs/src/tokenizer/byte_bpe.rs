//! Our own encoder of byte-level BPE vocabularies.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

use super::byte_level::byte_to_char;
use super::cjk::{self, CjkTable};
use super::encoder::PlainEncoder;
use super::file::TokenizerFile;
use super::merge::{MergeScratch, MergeTable, NO_ID};
use super::scan::{PreTokenizer, simd};
use super::vocabulary::Vocabulary;
use super::word::{ID_LIMIT, MAX_KEYED_BYTES, MAX_SHORT_BYTES, PackedIds, WordHash, has_key};
use super::word_table::{Inserted, WordTable};
use super::worker::Worker;
use crate::{Error, Result};

/// Workers that are kept for later texts.
const MAX_IDLE_WORKERS: usize = 16;

/// How many merges before their turn the memory is asked for the ids of their parts, step by step.
const LOOK_AHEAD: [usize; 3] = [24, 16, 8];

/// Byte-level BPE over a pre-tokenizer of our own.
#[derive(Debug)]
pub(crate) struct ByteBpe {
    kind: Kind,
    pub(super) merges: MergeTable,
    pub(super) vocabulary: Arc<Vocabulary>,
    /// Words that are one token, and those that were merged before.
    words: Mutex<Arc<WordTable>>,
    /// Words that are one token and not in the table.
    pub(super) other_words: HashMap<Box<[u8]>, u32, WordHash>,
    /// Set for pre-tokenizers that keep CJK characters apart from others.
    pub(super) cjk: Option<CjkTable>,
    /// Workers that wait for the next text.
    idle: Mutex<Vec<Worker>>,
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
    pub(crate) fn from_file(
        file: &TokenizerFile<'_>,
        vocabulary: &Arc<Vocabulary>,
    ) -> Result<Option<Self>> {
        let Some(kind) = Kind::of(file) else {
            return Ok(None);
        };
        if vocabulary.len() > ID_LIMIT as usize {
            return Ok(None);
        }
        let mut byte_ids = [NO_ID; 256];
        for byte in 0..=255_u8 {
            if let Some(id) = vocabulary.id(byte_to_char(byte).encode_utf8(&mut [0; 4])) {
                byte_ids[usize::from(byte)] = id;
            }
        }
        let merges = merge_ids(file, vocabulary)?;
        let Some(merges) = MergeTable::new(&byte_ids, &merges) else {
            return Ok(None);
        };
        let keeps_cjk_apart =
            kind.pre_tokenizer == PreTokenizer::DeepSeek && !kind.prefers_whole_words;
        let cjk = if keeps_cjk_apart {
            CjkTable::new(vocabulary, &merges)
        } else {
            None
        };
        let mut bpe = Self {
            kind,
            merges,
            vocabulary: Arc::clone(vocabulary),
            words: Mutex::new(Arc::new(WordTable::with_capacity(0, 0))),
            other_words: HashMap::default(),
            cjk,
            idle: Mutex::default(),
        };
        bpe.learn_vocabulary(file);
        Ok(Some(bpe))
    }

    /// Puts the tokens that the merges build from their own bytes into the word tables: there a lookup replaces them.
    fn learn_vocabulary(&mut self, file: &TokenizerFile<'_>) {
        let vocabulary = Arc::clone(&self.vocabulary);
        let mut scratch = MergeScratch::default();
        let is_covered = |word: &[u8]| self.cjk.is_some() && cjk::covers(word);
        let ids = || file.model.vocab.0.iter().map(|entry| entry.1);
        let (mut num_short, mut num_long) = (0, 0);
        for id in ids() {
            let word = vocabulary.bytes(id);
            if !is_covered(word) {
                num_short += usize::from(word.len() <= MAX_SHORT_BYTES);
                num_long +=
                    usize::from((MAX_SHORT_BYTES + 1..=MAX_KEYED_BYTES).contains(&word.len()));
            }
        }
        let words = WordTable::with_capacity(num_short, num_long);
        let entries = &file.model.vocab.0;
        for (index, &(_, id)) in entries.iter().enumerate() {
            if let Some(entry) = entries.get(index + LOOK_AHEAD[0]) {
                words.prefetch(vocabulary.bytes(entry.1));
            }
            let word = vocabulary.bytes(id);
            let mut is_result = || self.merges.is_own_result(id, word, &mut scratch);
            if is_covered(word) || !self.kind.prefers_whole_words && !is_result() {
                continue;
            }
            let is_kept = has_key(word)
                && PackedIds::new(&[id])
                    .is_some_and(|ids| words.insert(word, ids) == Inserted::Yes);
            if !is_kept {
                self.other_words.insert(word.into(), id);
            }
        }
        self.words = Mutex::new(Arc::new(words));
    }

    /// The table of words.
    pub(super) fn words(&self) -> Arc<WordTable> {
        Arc::clone(&self.words.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The table to use instead of `full`, in which there is no room for more words.
    pub(super) fn renewed_words(&self, full: &Arc<WordTable>) -> Arc<WordTable> {
        let mut words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        if Arc::ptr_eq(&words, full) {
            *words = Arc::new(full.without_learnt());
        }
        Arc::clone(&words)
    }

    pub(super) fn prefers_whole_words(&self) -> bool {
        self.kind.prefers_whole_words
    }

    /// Whether cutting `text` at the inner position `at` changes no token.
    fn is_safe_cut(&self, text: &str, at: usize) -> bool {
        let bytes = text.as_bytes();
        // No character composes with an ASCII character behind it, so composing the parts composes the whole.
        let keeps_form = !self.kind.composes || bytes[at].is_ascii() && bytes[at - 1].is_ascii();
        text.is_char_boundary(at) && keeps_form && self.kind.pre_tokenizer.is_safe_cut(bytes, at)
    }

    #[inline]
    pub(super) fn pre_tokenizer(&self) -> PreTokenizer {
        self.kind.pre_tokenizer
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

/// The merges of `file` as ids: left part, right part, product.
fn merge_ids(file: &TokenizerFile<'_>, vocabulary: &Vocabulary) -> Result<Vec<(u32, u32, u32)>> {
    let id_of = |token: &str| {
        vocabulary.id(token).ok_or_else(|| Error::Tokenizer {
            message: format!("the vocabulary lacks {token:?}, which a merge needs"),
            offset: None,
        })
    };
    let mut merges = Vec::with_capacity(file.model.merges.len());
    let mut product = String::new();
    let mut last_id = 0;
    let rules = &file.model.merges;
    for (index, merge) in rules.iter().enumerate() {
        for (step, ahead) in LOOK_AHEAD.into_iter().enumerate() {
            if let Some(merge) = rules.get(index + ahead) {
                vocabulary.prefetch(&merge.0, step);
                vocabulary.prefetch(&merge.1, step);
            }
        }
        product.clear();
        product.push_str(&merge.0);
        product.push_str(&merge.1);
        // Most vocabularies list the products in the order of the merges.
        last_id = match vocabulary.spelling(last_id + 1) {
            Some(spelling) if spelling == product => last_id + 1,
            _ => id_of(&product)?,
        };
        merges.push((id_of(&merge.0)?, id_of(&merge.1)?, last_id));
    }
    Ok(merges)
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
        let idle = self.idle.lock().map_or(None, |mut idle| idle.pop());
        let mut worker = idle.unwrap_or_else(|| Worker::new(self.words()));
        simd::encode(&mut worker, self, text, out);
        if let Ok(mut idle) = self.idle.lock()
            && idle.len() < MAX_IDLE_WORKERS
        {
            idle.push(worker);
        }
        Ok(())
    }

    fn last_safe_cut(&self, text: &str) -> Option<usize> {
        (1..text.len()).rev().find(|&at| self.is_safe_cut(text, at))
    }

    fn safe_cut(&self, text: &str, from: usize, until: usize) -> Option<usize> {
        (from.max(1)..until.min(text.len())).find(|&at| self.is_safe_cut(text, at))
    }
}
