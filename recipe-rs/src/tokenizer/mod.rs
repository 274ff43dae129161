//! Text to token ids and back.
//!
//! ```
//! # fn main() -> recipe_rs::Result<()> {
//! let json = r#"{"model": {"type": "WordLevel", "vocab": {"hello": 0, "[UNK]": 1}, "unk_token": "[UNK]"},
//!               "pre_tokenizer": {"type": "WhitespaceSplit"}, "added_tokens": []}"#;
//! let tokenizer = recipe_rs::Tokenizer::from_json(json)?;
//! assert_eq!(tokenizer.encode("hello you")?, [0, 1]);
//! # Ok(()) }
//! ```

#![allow(
    clippy::inline_always,
    reason = "the encoder is compiled once for each set of instructions; what is not inlined does not use them"
)]

mod added_tokens;
mod byte_bpe;
mod byte_level;
mod cjk;
mod cuts;
mod decode;
mod encoder;
mod fallback;
mod file;
mod gguf;
mod growing;
mod large_slice;
mod merge;
mod parallel;
mod scan;
mod seams;
mod unicode;
mod vocabulary;
mod word;
mod word_table;
mod worker;

use std::borrow::Cow;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, OnceLock};

pub use added_tokens::AddedToken;
use added_tokens::AddedTokens;
use byte_bpe::ByteBpe;
pub(crate) use decode::TokenBytes;
use encoder::PlainEncoder;
use fallback::{CrateEncoder, CratePipeline};
use file::TokenizerFile;
pub use gguf::GgufVocabulary;
pub use growing::GrowingPrompt;
use vocabulary::Vocabulary;

use crate::{Error, Result};

/// A tokenizer: an immutable vocabulary with its encoder; clones share it.
#[derive(Debug, Clone)]
pub struct Tokenizer {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    vocabulary: Arc<Vocabulary>,
    added: AddedTokens,
    encoder: Box<dyn PlainEncoder>,
    /// Set when matching or decoding depends on more than one token.
    pipeline: Option<CratePipeline>,
    token_bytes: TokenBytes,
    /// Threads that a long text is worth, once that was asked for.
    num_threads: OnceLock<NonZeroUsize>,
}

impl Tokenizer {
    /// Reads a Hugging Face `tokenizer.json`.
    ///
    /// # Errors
    /// [`Error::Tokenizer`] when the file cannot be read or is no supported tokenizer.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let json = std::fs::read_to_string(path).map_err(|error| Error::Tokenizer {
            message: format!("tokenizer file {} cannot be read: {error}", path.display()),
            offset: None,
        })?;
        Self::from_json(&json)
    }

    /// Builds a tokenizer from the text of a Hugging Face `tokenizer.json`.
    ///
    /// # Errors
    /// [`Error::Tokenizer`] when it is no supported tokenizer.
    pub fn from_json(json: &str) -> Result<Self> {
        let file = TokenizerFile::parse(json)?;
        let added = AddedTokens::new(&file.added_tokens)?;
        let token_bytes = TokenBytes::of_decoder(&file.decoder);
        let is_byte_level = token_bytes.is_byte_level();
        let vocabulary = Arc::new(Vocabulary::from_file(&file, is_byte_level)?);
        if let Some(encoder) = ByteBpe::from_file(&file, &vocabulary)?
            && added.has_plain_matching()
        {
            let inner = Inner {
                vocabulary,
                added,
                encoder: Box::new(encoder),
                pipeline: None,
                token_bytes,
                num_threads: OnceLock::new(),
            };
            return Ok(Self {
                inner: Arc::new(inner),
            });
        }
        let has_normalized =
            file.added_tokens.iter().any(|token| token.normalized) && !file.normalizer.is_null();
        let canonical = fallback::canonical(json)?;
        let needs_pipeline = !is_byte_level || !added.has_plain_matching() || has_normalized;
        let pipeline = if needs_pipeline {
            Some(CratePipeline::new(&canonical)?)
        } else {
            None
        };
        let encoder = Box::new(CrateEncoder::new(&canonical)?);
        Ok(Self {
            inner: Arc::new(Inner {
                vocabulary,
                added,
                encoder,
                pipeline,
                token_bytes,
                num_threads: OnceLock::new(),
            }),
        })
    }

    /// Builds a tokenizer from the vocabulary of a GGUF file.
    ///
    /// # Errors
    /// [`Error::Tokenizer`] when the kind is not supported or the lists do not fit together.
    pub fn from_gguf_vocabulary(vocabulary: GgufVocabulary<'_>) -> Result<Self> {
        Self::from_json(&vocabulary.to_tokenizer_json()?)
    }

    /// Ids of `text`, in which every spelling of an added token is that token.
    ///
    /// # Errors
    /// [`Error::Tokenizer`] when a character has no token and the vocabulary has no unknown token.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>> {
        let mut out = Vec::with_capacity(text.len() / 3);
        if let Some(pipeline) = &self.inner.pipeline {
            pipeline.encode_into(text, &mut out)?;
            return Ok(out);
        }
        let mut from = 0;
        for (range, id) in self.inner.added.find(text) {
            self.encode_stretch(text, from..range.start, NonZeroUsize::MIN, &mut out)?;
            out.push(id);
            from = range.end;
        }
        self.encode_stretch(text, from..text.len(), NonZeroUsize::MIN, &mut out)?;
        Ok(out)
    }

    /// Ids of `text`, in which spellings of added tokens are plain text.
    ///
    /// Long texts are cut at safe positions and encoded on up to `num_threads` threads (default: the processors that this
    /// process might use when the first long text came); the ids do not depend on it.
    ///
    /// # Errors
    /// [`Error::Tokenizer`] when a character has no token and the vocabulary has no unknown token.
    pub fn encode_plain(&self, text: &str, num_threads: Option<NonZeroUsize>) -> Result<Vec<u32>> {
        self.encode_ranges(text, &[], num_threads)
    }

    /// Ids of `text`, in which exactly the given byte ranges are added tokens.
    ///
    /// The ranges are in order, do not overlap, and each spells one added token; what lies between them is plain text,
    /// each stretch encoded by itself.
    ///
    /// # Errors
    /// [`Error::Tokenizer`] when a range is out of order, out of bounds, or spells no added token.
    pub fn encode_ranges(
        &self,
        text: &str,
        special_ranges: &[Range<usize>],
        num_threads: Option<NonZeroUsize>,
    ) -> Result<Vec<u32>> {
        let num_threads = match num_threads {
            Some(num_threads) => num_threads,
            // Finding out what the system grants takes longer than a short text.
            None if parallel::is_short(text) => NonZeroUsize::MIN,
            None => *self
                .inner
                .num_threads
                .get_or_init(parallel::default_num_threads),
        };
        let mut out = Vec::with_capacity(text.len() / 3);
        let mut from = 0;
        let mut skip_white = false;
        for range in special_ranges {
            let token = self.token_at(text, range, from)?;
            let mut stretch = from..range.start;
            if skip_white {
                stretch.start += leading_white(&text[stretch.clone()]);
            }
            if token.lstrip {
                stretch.end = stretch.start + text[stretch.clone()].trim_end().len();
            }
            self.encode_stretch(text, stretch, num_threads, &mut out)?;
            out.push(token.id);
            from = range.end;
            skip_white = token.rstrip;
        }
        if skip_white {
            from += leading_white(&text[from..]);
        }
        self.encode_stretch(text, from..text.len(), num_threads, &mut out)?;
        Ok(out)
    }

    fn token_at(&self, text: &str, range: &Range<usize>, from: usize) -> Result<&AddedToken> {
        let error = |message| {
            Err(Error::Tokenizer {
                message,
                offset: Some(range.start),
            })
        };
        if range.start < from || range.start > range.end {
            return error(format!(
                "special range {}..{} overlaps the one before it or is reversed; give ranges in order",
                range.start, range.end
            ));
        }
        match text.get(range.clone()) {
            None => error(format!(
                "special range {}..{} does not lie on characters of the text of {} bytes",
                range.start,
                range.end,
                text.len()
            )),
            Some(spelling) => match self.inner.added.get(spelling) {
                Some(token) => Ok(token),
                None => error(format!(
                    "special range {}..{} spells {spelling:?}, which is no added token of this tokenizer",
                    range.start, range.end
                )),
            },
        }
    }

    fn encode_stretch(
        &self,
        text: &str,
        stretch: Range<usize>,
        num_threads: NonZeroUsize,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        if stretch.is_empty() {
            return Ok(());
        }
        let at_start = stretch.start == 0;
        parallel::encode_into(
            self.inner.encoder.as_ref(),
            &text[stretch],
            at_start,
            num_threads,
            out,
        )
    }

    /// Text of `ids`; bytes that are no UTF-8 become U+FFFD, and ids that do not exist are left out.
    ///
    /// # Errors
    /// [`Error::Tokenizer`] when the decoder of a tokenizer that is not byte-level fails.
    pub fn decode(&self, ids: &[u32], skip_special_tokens: bool) -> Result<String> {
        if let Some(pipeline) = &self.inner.pipeline
            && !self.inner.token_bytes.is_byte_level()
        {
            return pipeline.decode(ids, skip_special_tokens);
        }
        let mut data = Vec::with_capacity(ids.len() * 5);
        for &id in ids {
            self.append_token_bytes(id, skip_special_tokens, &mut data);
        }
        Ok(match String::from_utf8(data) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        })
    }

    /// Appends what `id` contributes to a decoded text; an id that does not exist contributes nothing.
    pub(crate) fn append_token_bytes(
        &self,
        id: u32,
        skip_special_tokens: bool,
        data: &mut Vec<u8>,
    ) {
        if skip_special_tokens && self.inner.added.is_special(id) {
            return;
        }
        self.inner
            .token_bytes
            .append(self.inner.vocabulary.bytes(id), data);
    }

    /// Whether a decoded text loses the space that its first token starts with.
    #[must_use]
    pub(crate) fn strips_first_space(&self) -> bool {
        self.inner.token_bytes.strips_first_space()
    }

    /// Bytes that `id` contributes to a decoded text.
    ///
    /// # Errors
    /// [`Error::Tokenizer`] when the id does not exist.
    pub fn token_bytes(&self, id: u32) -> Result<Vec<u8>> {
        if self.inner.vocabulary.spelling(id).is_none() {
            return Err(Error::Tokenizer {
                message: format!(
                    "token id {id} does not exist; the vocabulary has {} ids",
                    self.vocab_size()
                ),
                offset: None,
            });
        }
        let mut data = Vec::new();
        self.append_token_bytes(id, false, &mut data);
        Ok(data)
    }

    /// The added token of an id.
    #[must_use]
    pub(crate) fn added_token(&self, id: u32) -> Option<&AddedToken> {
        self.inner.added.of_id(id)
    }

    /// The same as [`Self::token_bytes`], without a copy where that is possible; `None` for an id that does not exist.
    #[must_use]
    pub(crate) fn borrowed_token_bytes(&self, id: u32) -> Option<Cow<'_, [u8]>> {
        if self.inner.token_bytes.is_byte_level() {
            self.inner.vocabulary.spelling(id)?;
            return Some(Cow::Borrowed(self.inner.vocabulary.bytes(id)));
        }
        self.token_bytes(id).ok().map(Cow::Owned)
    }

    /// Id of the token that the file spells `token`.
    #[must_use]
    pub fn token_to_id(&self, token: &str) -> Option<u32> {
        self.inner.vocabulary.id(token)
    }

    /// Spelling of `id` in the file.
    #[must_use]
    pub fn id_to_token(&self, id: u32) -> Option<&str> {
        self.inner.vocabulary.spelling(id)
    }

    /// Number of ids: one more than the largest.
    #[must_use]
    pub fn vocab_size(&self) -> usize {
        self.inner.vocabulary.len()
    }

    /// The added tokens in the order of their spellings.
    pub fn added_tokens(&self) -> impl Iterator<Item = &AddedToken> {
        self.inner.added.iter()
    }

    /// Ids of the added tokens that `skip_special_tokens` leaves out, ascending.
    #[must_use]
    pub fn special_token_ids(&self) -> &[u32] {
        self.inner.added.special_ids()
    }

    /// Byte ranges of the added tokens that `text` spells.
    #[must_use]
    pub(crate) fn find_added_tokens(&self, text: &str) -> Vec<Range<usize>> {
        self.inner
            .added
            .find(text)
            .into_iter()
            .map(|(range, _)| range)
            .collect()
    }
}

/// Bytes of white space at the start of `text`.
fn leading_white(text: &str) -> usize {
    text.len() - text.trim_start().len()
}
