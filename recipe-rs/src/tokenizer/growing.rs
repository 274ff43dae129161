//! Ids of a prompt that grows at its end, as a conversation does.

use std::ops::Range;

use super::{Tokenizer, leading_white};
use crate::Result;

/// A prompt that text is appended to; only its tail is encoded again.
///
/// The ids are always those of [`Tokenizer::encode_ranges`] for the whole text. Encoding goes back to the last place
/// where cutting changes no token; where the encoder knows none, to the last special token.
///
/// ```
/// # fn main() -> recipe_rs::Result<()> {
/// let json = r#"{"model": {"type": "WordLevel", "vocab": {"hello": 0, "hell": 1, "o": 2, "?": 3}, "unk_token": "?"},
///               "pre_tokenizer": {"type": "WhitespaceSplit"}, "added_tokens": []}"#;
/// let mut prompt = recipe_rs::GrowingPrompt::new(recipe_rs::Tokenizer::from_json(json)?);
/// prompt.append("o hell", &[])?;
/// assert_eq!(prompt.token_ids(), [2, 1]);
/// prompt.append("o", &[])?;
/// assert_eq!(prompt.token_ids(), [2, 0]);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct GrowingPrompt {
    tokenizer: Tokenizer,
    ids: Vec<u32>,
    /// Ids before the tail: no later text changes them.
    num_stable_ids: usize,
    /// Text that the ids behind those stand for.
    tail: String,
    is_tail_at_start: bool,
    /// Whether white space that comes next belongs to the special token before it.
    skips_white: bool,
}

impl GrowingPrompt {
    /// An empty prompt.
    #[must_use]
    pub fn new(tokenizer: Tokenizer) -> Self {
        Self {
            tokenizer,
            ids: Vec::new(),
            num_stable_ids: 0,
            tail: String::new(),
            is_tail_at_start: true,
            skips_white: false,
        }
    }

    /// Ids of the text so far.
    #[must_use]
    pub fn token_ids(&self) -> &[u32] {
        &self.ids
    }

    /// Appends `text`, in which exactly the given byte ranges are added tokens, and returns how many of the ids before
    /// stayed as they were.
    ///
    /// # Errors
    /// As [`Tokenizer::encode_ranges`]; the prompt then stays as it was, except for a text that cannot be encoded.
    pub fn append(&mut self, text: &str, special_ranges: &[Range<usize>]) -> Result<usize> {
        let mut end = 0;
        let mut tokens = Vec::with_capacity(special_ranges.len());
        for range in special_ranges {
            let token = self.tokenizer.token_at(text, range, end)?;
            tokens.push((token.id, token.lstrip, token.rstrip));
            end = range.end;
        }
        if text.is_empty() {
            return Ok(self.ids.len());
        }
        let before = self.ids.split_off(self.num_stable_ids);
        let first_changed = self.num_stable_ids;
        let mut from = 0;
        for (range, (id, lstrip, rstrip)) in special_ranges.iter().zip(tokens) {
            self.extend_tail(&text[from..range.start]);
            if lstrip {
                self.tail.truncate(self.tail.trim_end().len());
            }
            self.encode_tail(self.tail.len())?;
            self.ids.push(id);
            self.num_stable_ids = self.ids.len();
            self.skips_white = rstrip;
            self.is_tail_at_start = false;
            from = range.end;
        }
        self.extend_tail(&text[from..]);
        let cut = self
            .tokenizer
            .inner
            .encoder
            .last_safe_cut(&self.tail)
            .unwrap_or(0);
        self.encode_tail(cut)?;
        let tail = std::mem::take(&mut self.tail);
        self.encode(&tail)?;
        self.tail = tail;
        let same = self.ids[first_changed..]
            .iter()
            .zip(&before)
            .take_while(|(now, old)| now == old)
            .count();
        Ok(first_changed + same)
    }

    fn extend_tail(&mut self, text: &str) {
        let skipped = if self.skips_white {
            leading_white(text)
        } else {
            0
        };
        self.skips_white &= skipped == text.len();
        self.tail.push_str(&text[skipped..]);
    }

    /// Encodes the tail up to `end` for good.
    fn encode_tail(&mut self, end: usize) -> Result<()> {
        if end > 0 {
            let rest = self.tail.split_off(end);
            let stable = std::mem::replace(&mut self.tail, rest);
            self.encode(&stable)?;
            self.is_tail_at_start = false;
        }
        self.num_stable_ids = self.ids.len();
        Ok(())
    }

    fn encode(&mut self, text: &str) -> Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        let encoder = self.tokenizer.inner.encoder.as_ref();
        let num_threads = super::parallel::default_num_threads();
        super::parallel::encode_into(
            encoder,
            text,
            self.is_tail_at_start,
            num_threads,
            &mut self.ids,
        )
    }
}
