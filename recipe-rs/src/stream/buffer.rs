//! The part of the output that is not settled yet, with the borders of the pieces it came in.

use std::collections::VecDeque;
use std::ops::Range;

use super::delimiter::Trust;
use super::event::LogprobEntry;

/// One token (or the tokens of one text chunk) inside a piece.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TokenMark {
    /// Where its text ends, relative to the start of the piece.
    pub(crate) end: usize,
    /// How many tokens it stands for.
    pub(crate) num_tokens: u64,
    /// Whether these tokens were given as ids.
    pub(crate) is_id: bool,
    /// Its log probability, if asked for.
    pub(crate) logprob: Option<LogprobEntry>,
}

/// Text that arrived together.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Piece {
    pub(crate) text: String,
    pub(crate) trust: Trust,
    pub(crate) tokens: Vec<TokenMark>,
}

#[derive(Debug)]
struct HeldPiece {
    start: usize,
    end: usize,
    trust: Trust,
    tokens: Vec<TokenMark>,
    /// Tokens before this index are settled.
    next_token: usize,
    has_shown_logprobs: bool,
}

/// A stretch of one piece that became visible.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) text: String,
    pub(crate) logprobs: Vec<LogprobEntry>,
    /// Tokens that this part is the first to show: those given as ids, and the others.
    pub(crate) num_ids: u64,
    pub(crate) num_text_tokens: u64,
}

/// Text from the settled position on. All positions count bytes from the start of the stream.
#[derive(Debug, Default)]
pub(crate) struct PieceBuffer {
    text: String,
    /// Position of the first byte of `text`.
    base: usize,
    settled: usize,
    pieces: VecDeque<HeldPiece>,
    /// Whether log probabilities stay whole with the first visible part of their piece.
    keeps_logprobs_together: bool,
}

impl PieceBuffer {
    pub(crate) fn new(keeps_logprobs_together: bool) -> Self {
        Self {
            keeps_logprobs_together,
            ..Self::default()
        }
    }

    /// Position up to which everything is settled.
    pub(crate) fn settled(&self) -> usize {
        self.settled
    }

    /// Position behind the last byte.
    pub(crate) fn end(&self) -> usize {
        self.base + self.text.len()
    }

    pub(crate) fn append(&mut self, piece: Piece) {
        if piece.text.is_empty() {
            return;
        }
        if self.settled - self.base > self.text.len() / 2 {
            self.text.drain(..self.settled - self.base);
            self.base = self.settled;
        }
        let start = self.end();
        self.text.push_str(&piece.text);
        self.pieces.push_back(HeldPiece {
            start,
            end: self.end(),
            trust: piece.trust,
            tokens: piece.tokens,
            next_token: 0,
            has_shown_logprobs: false,
        });
    }

    /// Text between two positions that are not settled yet; empty inside a code point.
    pub(crate) fn text(&self, range: Range<usize>) -> &str {
        self.text
            .get(range.start - self.base..range.end - self.base)
            .unwrap_or_default()
    }

    /// Bytes from `position` to the end of the piece that holds it, and their trust.
    pub(crate) fn run_at(&self, position: usize) -> (&[u8], Trust) {
        let index = match self.pieces.back() {
            Some(last) if last.start <= position => self.pieces.len() - 1,
            _ => self.pieces.partition_point(|piece| piece.end <= position),
        };
        match self.pieces.get(index) {
            Some(piece) => (
                &self.text.as_bytes()[position - self.base..piece.end - self.base],
                piece.trust,
            ),
            None => (&[], Trust::Plain),
        }
    }

    /// End of the last piece that ends at or before `position`, or `settled`.
    pub(crate) fn last_border(&self, position: usize) -> usize {
        let index = self.pieces.partition_point(|piece| piece.end <= position);
        index
            .checked_sub(1)
            .and_then(|index| self.pieces.get(index))
            .map_or(self.settled, |piece| piece.end.max(self.settled))
    }

    /// Settles everything before `position` without showing it; returns the number of bytes.
    pub(crate) fn skip(&mut self, position: usize) -> usize {
        let skipped = position - self.settled;
        self.settled = position;
        while let Some(front) = self.pieces.front_mut() {
            if front.end > position {
                if !self.keeps_logprobs_together {
                    front.settle_tokens(position);
                }
                break;
            }
            self.pieces.pop_front();
        }
        skipped
    }

    /// Settles everything before `position` and hands it out, cut at the borders of pieces.
    pub(crate) fn take(&mut self, position: usize, mut each: impl FnMut(Part)) {
        while self.settled < position {
            let Some(front) = self.pieces.front_mut() else {
                return;
            };
            let end = front.end.min(position);
            let range = self.settled - self.base..end - self.base;
            let text = self.text.get(range).unwrap_or_default().to_owned();
            let part = front.show(self.settled, end, text, self.keeps_logprobs_together);
            self.settled = end;
            if front.end == end {
                self.pieces.pop_front();
            }
            each(part);
        }
    }
}

impl HeldPiece {
    /// Where the text of the next token begins, relative to the start of the piece.
    fn next_token_start(&self) -> usize {
        self.next_token
            .checked_sub(1)
            .map_or(0, |index| self.tokens[index].end)
    }

    /// Passes over the tokens that end before `position`.
    ///
    /// A token without text of its own begins a code point, so it goes with the text behind it.
    fn settle_tokens(&mut self, position: usize) {
        while let Some(token) = self.tokens.get(self.next_token) {
            let has_text = token.end > self.next_token_start();
            let end = self.start + token.end + usize::from(!has_text);
            if end > position {
                break;
            }
            self.next_token += 1;
        }
    }

    fn show(&mut self, start: usize, end: usize, text: String, logprobs_together: bool) -> Part {
        let mut part = Part {
            text,
            logprobs: Vec::new(),
            num_ids: 0,
            num_text_tokens: 0,
        };
        if logprobs_together {
            if !self.has_shown_logprobs {
                let tokens = &mut self.tokens;
                part.logprobs = tokens
                    .iter_mut()
                    .filter_map(|token| token.logprob.take())
                    .collect();
                self.has_shown_logprobs = true;
            }
            self.settle_tokens(start);
        }
        while self.next_token < self.tokens.len() {
            let token_start = self.next_token_start();
            if self.start + token_start >= end && token_start < self.end - self.start {
                break;
            }
            let token = &mut self.tokens[self.next_token];
            let count = std::mem::take(&mut token.num_tokens);
            if token.is_id {
                part.num_ids += count;
            } else {
                part.num_text_tokens += count;
            }
            part.logprobs.extend(token.logprob.take());
            if self.start + token.end > end {
                break;
            }
            self.next_token += 1;
        }
        part
    }
}
