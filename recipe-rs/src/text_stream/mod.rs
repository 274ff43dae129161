//! Token ids of one request, turned into text piece by piece, up to a stop string.

mod stop;
mod utf8;

use std::collections::VecDeque;

pub use stop::{StopMatch, StopMatcher};
pub use utf8::StreamDecoder;

use crate::{Error, Result, Tokenizer};

/// How a [`TextStream`] treats the text.
#[derive(Debug, Clone, Default)]
pub struct TextStreamOptions {
    /// Strings that end the text.
    pub stop: Vec<String>,
    /// Leave special tokens out of the text.
    pub skip_special_tokens: bool,
    /// Keep the stop string that ended the text.
    pub include_stop_str_in_output: bool,
}

/// What a push added to the text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextDelta {
    /// Text that is certain now: whole characters, nothing that may belong to a stop string.
    pub text: String,
    /// The stop string that ended the text.
    pub stop: Option<String>,
    /// Tokens taken so far; after a stop, up to and including the token that completed it.
    pub num_tokens: usize,
    /// Tokens whose text has been returned completely so far.
    pub num_released_tokens: usize,
}

/// Incremental decoder of one request.
///
/// Pieces of any size give the same text, which is that of [`Tokenizer::decode`] for the whole (tokenizers that are not
/// byte-level: where no invalid UTF-8 is involved).
#[derive(Debug, Clone)]
pub struct TextStream {
    tokenizer: Tokenizer,
    options: TextStreamOptions,
    decoder: StreamDecoder,
    matcher: StopMatcher,
    /// Decoded text that may still become part of a stop string.
    held: String,
    /// Bytes of text returned so far.
    released_bytes: usize,
    strip_space: bool,
    num_tokens: usize,
    num_released_tokens: usize,
    /// Tokens that wait: for each, the number of bytes of text up to its end, or `None` while its last character is
    /// incomplete.
    waiting: VecDeque<Option<usize>>,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Stopped,
    Finished,
}

impl TextStream {
    /// Starts the text of a request.
    ///
    /// # Errors
    /// [`Error::Conversion`] when a stop string is empty.
    pub fn new(tokenizer: Tokenizer, options: TextStreamOptions) -> Result<Self> {
        let matcher = StopMatcher::new(&options.stop)?;
        let strip_space = tokenizer.strips_first_space();
        Ok(Self {
            tokenizer,
            options,
            decoder: StreamDecoder::default(),
            matcher,
            held: String::new(),
            released_bytes: 0,
            strip_space,
            num_tokens: 0,
            num_released_tokens: 0,
            waiting: VecDeque::new(),
            state: State::Open,
        })
    }

    /// Adds token ids; those behind the one that completes a stop string are not looked at.
    ///
    /// An id that does not exist adds no text.
    ///
    /// # Errors
    /// [`Error::Stream`] after a stop string or after [`TextStream::finish`].
    pub fn push(&mut self, token_ids: &[u32]) -> Result<TextDelta> {
        match self.state {
            State::Open => {}
            State::Stopped => {
                return Err(closed(
                    "a stop string ended this text; start a new stream",
                    "stopped",
                ));
            }
            State::Finished => {
                return Err(closed(
                    "this text is finished; start a new stream",
                    "finished",
                ));
            }
        }
        let mut text = String::new();
        let (mut data, mut decoded) = (Vec::new(), String::new());
        for &id in token_ids {
            data.clear();
            decoded.clear();
            self.tokenizer
                .append_token_bytes(id, self.options.skip_special_tokens, &mut data);
            if self.strip_space && !data.is_empty() {
                self.strip_space = false;
                if data[0] == b' ' {
                    data.remove(0);
                }
            }
            self.decoder.push(&data, &mut decoded);
            self.num_tokens += 1;
            self.waiting.push_back(None);
            let stop = self.advance(&decoded, &mut text);
            if stop.is_some() {
                return Ok(self.delta(text, stop));
            }
        }
        Ok(self.delta(text, None))
    }

    /// Ends the text and returns what was held back.
    ///
    /// # Errors
    /// [`Error::Stream`] when the text was finished before.
    pub fn finish(&mut self) -> Result<TextDelta> {
        let mut text = String::new();
        let mut stop = None;
        match self.state {
            State::Finished => return Err(closed("this text is finished already", "finished")),
            State::Stopped => {}
            State::Open => {
                let mut decoded = String::new();
                self.decoder.finish(&mut decoded);
                stop = self.advance(&decoded, &mut text);
                if stop.is_none() {
                    text.push_str(&self.held);
                    self.held.clear();
                    self.num_released_tokens = self.num_tokens;
                }
            }
        }
        self.state = State::Finished;
        Ok(self.delta(text, stop))
    }

    fn delta(&self, text: String, stop: Option<usize>) -> TextDelta {
        TextDelta {
            text,
            stop: stop.map(|index| self.options.stop[index].clone()),
            num_tokens: self.num_tokens,
            num_released_tokens: self.num_released_tokens,
        }
    }

    /// Adds decoded text, moves what is certain to `text`, and returns the index of the stop string that it completes.
    fn advance(&mut self, decoded: &str, text: &mut String) -> Option<usize> {
        let before = self.held.len();
        self.held.push_str(decoded);
        let decoded_bytes = self.released_bytes + self.held.len();
        if self.decoder.num_pending_bytes() == 0 {
            for end in self
                .waiting
                .iter_mut()
                .rev()
                .take_while(|end| end.is_none())
            {
                *end = Some(decoded_bytes);
            }
        }
        let found = self.matcher.push(decoded);
        let keep = match found {
            Some(found) => {
                let end = before + found.end;
                self.state = State::Stopped;
                if self.options.include_stop_str_in_output {
                    end
                } else {
                    end - found.length
                }
            }
            None => self.held.len() - self.matcher.num_held_bytes(),
        };
        text.push_str(&self.held[..keep]);
        self.held.drain(..keep);
        self.released_bytes += keep;
        if found.is_some() {
            self.held.clear();
        }
        while let Some(Some(end)) = self.waiting.front()
            && *end <= self.released_bytes
        {
            self.waiting.pop_front();
            self.num_released_tokens += 1;
        }
        found.map(|found| found.index)
    }
}

fn closed(message: &str, state: &'static str) -> Error {
    Error::Stream {
        message: message.to_owned(),
        state,
    }
}
