//! From token ids to pieces of text that know which of their bytes special ids spelled.

use std::borrow::Cow;

use super::buffer::{Piece, TokenMark};
use super::delimiter::Trust;
use super::event::{LogprobEntry, TopLogprob};
use super::utf8::Utf8Assembler;
use super::{ParsingOptions, TokenLogprob};
use crate::special_tokens::SpecialToken;

/// What one id stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenForm<'a> {
    /// No token has this id.
    Unknown,
    /// A piece of text, possibly not whole code points.
    Plain(Cow<'a, [u8]>),
    /// An entry of the added vocabulary.
    Added {
        /// How it is spelled.
        spelling: Cow<'a, str>,
        /// Whether the vocabulary calls it special.
        is_special: bool,
    },
}

/// The vocabulary as a stream needs it.
pub trait TokenBytes: Send + Sync {
    /// What `id` stands for.
    fn token_form(&self, id: u32) -> TokenForm<'_>;

    /// Number of tokens of a text, with every spelling of an added token taken as that token.
    ///
    /// `None` where the vocabulary cannot encode.
    fn count_tokens(&self, _text: &str) -> Option<u64> {
        None
    }

    /// Whether a decoded text loses the space that its first token starts with.
    fn strips_first_space(&self) -> bool {
        false
    }
}

/// What the parser does with a token of the added vocabulary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AddedRole {
    /// Spelled out as markup or grounding.
    Markup,
    /// Ends the turn.
    EndOfTurn,
    /// A stray control token.
    Control,
    /// Text like any other.
    Text,
}

/// One result of detokenizing.
#[derive(Debug, PartialEq)]
pub(crate) enum Detokenized {
    /// Text to be parsed.
    Piece(Piece),
    /// The model ended its turn.
    EndOfTurn,
    /// A control token was dropped; its spelling has this many bytes.
    DroppedControl(usize),
}

impl Detokenized {
    /// Tokens that it stands for.
    pub(crate) fn num_tokens(&self) -> u64 {
        match self {
            Self::Piece(piece) => piece.tokens.iter().map(|token| token.num_tokens).sum(),
            Self::EndOfTurn | Self::DroppedControl(_) => 1,
        }
    }
}

/// Turns the ids of one stream into pieces.
#[derive(Debug)]
pub(crate) struct Detokenizer {
    utf8: Utf8Assembler,
    text: String,
    tokens: Vec<TokenMark>,
    end_of_turn: String,
    markup: Vec<String>,
    /// Whether the text of a chunk that ends inside a code point waits for the rest.
    holds_whole_chunks: bool,
    has_begun: bool,
}

impl Detokenizer {
    pub(crate) fn new(options: &ParsingOptions, mut markup: Vec<String>) -> Self {
        let spelling = |kind| options.special_tokens.token(kind).to_owned();
        markup.extend(SpecialToken::GROUNDING.map(spelling));
        Self {
            utf8: Utf8Assembler::default(),
            text: String::new(),
            tokens: Vec::new(),
            end_of_turn: spelling(SpecialToken::Eos),
            markup,
            holds_whole_chunks: options.compat,
            has_begun: false,
        }
    }

    /// Reads the ids of one chunk; `logprobs` is empty or has one entry per id.
    pub(crate) fn push(
        &mut self,
        ids: &[u32],
        logprobs: &[TokenLogprob],
        vocabulary: &dyn TokenBytes,
        out: &mut Vec<Detokenized>,
    ) {
        let mut is_broken = false;
        for (index, id) in ids.iter().enumerate() {
            let logprob = logprobs
                .get(index)
                .map(|logprob| entry(*id, logprob, vocabulary));
            match vocabulary.token_form(*id) {
                TokenForm::Unknown => self.mark(logprob),
                TokenForm::Plain(bytes) => {
                    let drops_space = !self.has_begun && vocabulary.strips_first_space();
                    let text = match bytes.as_ref() {
                        [b' ', rest @ ..] if drops_space => rest,
                        bytes => bytes,
                    };
                    is_broken |= self.push_bytes(text, logprob);
                }
                TokenForm::Added {
                    spelling,
                    is_special,
                } => match self.role_of(&spelling, is_special) {
                    AddedRole::Text => {
                        is_broken |= self.push_bytes(spelling.as_bytes(), logprob);
                    }
                    AddedRole::Markup => {
                        self.flush_broken(out);
                        out.push(Detokenized::Piece(Piece {
                            tokens: vec![mark_at(spelling.len(), logprob)],
                            text: spelling.into_owned(),
                            trust: Trust::SpecialId,
                        }));
                    }
                    AddedRole::EndOfTurn => {
                        self.flush_broken(out);
                        out.push(Detokenized::EndOfTurn);
                    }
                    AddedRole::Control => {
                        self.flush_broken(out);
                        out.push(Detokenized::DroppedControl(spelling.len()));
                    }
                },
            }
            self.has_begun = true;
        }
        if is_broken || !(self.holds_whole_chunks && self.utf8.is_pending()) {
            self.flush(out);
        }
    }

    /// Hands out the text that is complete, before something that did not come as ids.
    pub(crate) fn flush(&mut self, out: &mut Vec<Detokenized>) {
        if !self.text.is_empty() {
            out.push(Detokenized::Piece(Piece {
                text: std::mem::take(&mut self.text),
                trust: Trust::Plain,
                tokens: std::mem::take(&mut self.tokens),
            }));
        }
    }

    /// Ends the stream: hands out what is complete and returns the bytes of a cut code point.
    pub(crate) fn finish(&mut self, out: &mut Vec<Detokenized>) -> usize {
        self.flush(out);
        self.utf8.drop_pending()
    }

    fn push_bytes(&mut self, bytes: &[u8], logprob: Option<LogprobEntry>) -> bool {
        let is_broken = self.utf8.push(bytes, &mut self.text);
        self.mark(logprob);
        is_broken
    }

    fn flush_broken(&mut self, out: &mut Vec<Detokenized>) {
        self.utf8.replace_pending(&mut self.text);
        if let Some(last) = self.tokens.last_mut() {
            last.end = self.text.len();
        }
        self.flush(out);
    }

    fn mark(&mut self, logprob: Option<LogprobEntry>) {
        self.tokens.push(mark_at(self.text.len(), logprob));
    }

    fn role_of(&self, spelling: &str, is_special: bool) -> AddedRole {
        let is_marker = |open, close| spelling.starts_with(open) && spelling.ends_with(close);
        if spelling == self.end_of_turn {
            AddedRole::EndOfTurn
        } else if self.markup.iter().any(|markup| markup == spelling) {
            AddedRole::Markup
        } else if is_special
            || spelling == SpecialToken::ThinkingStart.default_str()
            || is_marker("<|", "|>")
            || is_marker("<\u{ff5c}", "\u{ff5c}>")
        {
            AddedRole::Control
        } else {
            AddedRole::Text
        }
    }
}

fn mark_at(end: usize, logprob: Option<LogprobEntry>) -> TokenMark {
    TokenMark {
        end,
        num_tokens: 1,
        is_id: true,
        logprob,
    }
}

fn entry(id: u32, logprob: &TokenLogprob, vocabulary: &dyn TokenBytes) -> LogprobEntry {
    let (token, bytes) = spelled(id, vocabulary);
    LogprobEntry {
        token,
        logprob: logprob.logprob,
        bytes,
        top_logprobs: logprob
            .top_logprobs
            .iter()
            .map(|(id, logprob)| {
                let (token, bytes) = spelled(*id, vocabulary);
                TopLogprob {
                    token,
                    logprob: *logprob,
                    bytes,
                }
            })
            .collect(),
    }
}

/// The text of a token as logprobs name it, and its bytes.
fn spelled(id: u32, vocabulary: &dyn TokenBytes) -> (String, Vec<u8>) {
    let bytes = match vocabulary.token_form(id) {
        TokenForm::Unknown => Vec::new(),
        TokenForm::Plain(bytes) => bytes.into_owned(),
        TokenForm::Added { spelling, .. } => spelling.into_owned().into_bytes(),
    };
    let text = match std::str::from_utf8(&bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().fold(String::new(), |mut text, byte| {
            use std::fmt::Write;
            let _ = write!(text, "\\x{byte:02x}");
            text
        }),
    };
    (text, bytes)
}
