//! The call block of DeepSeek V4 and V4.1.
//!
//! Both versions are read alike: `<M word>` opens a block if an invoke tag follows, where `M` is the
//! marker token; an invoke holds parameters whose values are raw strings or JSON.

use super::ParsingOptions;
use super::delimiter::{Alternatives, Delimiter, DelimiterSet, Progress};
use super::dsml_parameter::{AfterParameter, Parameter};
use super::event::ArgumentFragment;
use super::grammar::{CallGrammar, Ending, Input, Step, find_byte, next_byte, scan_set};
use super::repair;
use crate::special_tokens::SpecialToken;

/// Words that a block is opened with; misspelled ones are read as well.
const BLOCK_WORDS: [&str; 3] = ["calls", "tool_calls", "invoke"];

/// Longest word of a tag; a longer one is no tag.
const MAX_WORD: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    /// `</M`
    Close,
    /// `parameter name=`
    Parameter,
    /// `invoke name="`
    Invoke,
}

/// What a closing tag ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Closed {
    Value,
    Call,
    Block,
}

#[derive(Debug)]
enum State {
    /// Behind `<M`: the word of the tag. `closing` for `</M` in visible text.
    Word { closing: bool },
    /// Behind `<M word>`: blanks up to the first invoke tag.
    Blank { dropped_to: usize },
    /// Inside the first invoke tag.
    FirstInvoke { dropped_to: usize },
    /// Inside `<M invoke`, without a block tag before it.
    BareInvoke { dropped_to: usize },
    /// The name of a call.
    CallName,
    /// Behind the name of a call.
    CallNameTail,
    /// Between the parameters of a call.
    Gap,
    /// Inside a parameter.
    Parameter,
    /// Behind `</M`.
    CloseTag(Closed),
    /// Between calls.
    Block,
}

/// Reads call blocks.
#[derive(Debug)]
pub(crate) struct DsmlGrammar {
    marker: String,
    compat: bool,
    state: State,
    /// Where the opener ended.
    opened_at: usize,
    first_invoke: Alternatives,
    bare_invoke: Alternatives,
    between: DelimiterSet<Found>,
    gap: DelimiterSet<Found>,
    parameter: Parameter,
    call_name: String,
    /// Whether the brace of the arguments was sent, and how many members followed.
    is_open: bool,
    num_members: usize,
}

impl DsmlGrammar {
    pub(crate) fn new(options: &ParsingOptions) -> Self {
        let marker = options.special_tokens.token(SpecialToken::Dsml).to_owned();
        let close = || (Delimiter::tag("</", &marker), Found::Close);
        let invoke = || (Delimiter::plain("invoke name=\""), Found::Invoke);
        Self {
            state: State::Block,
            opened_at: 0,
            first_invoke: Alternatives::new(vec![
                Delimiter::tag_with_tail(&marker, "invoke name=\""),
                Delimiter::tag_with_tail(&marker, " invoke name=\""),
                Delimiter::plain("invoke name=\""),
            ]),
            bare_invoke: Alternatives::new(vec![Delimiter::plain("name=\"")]),
            between: DelimiterSet::new([close(), invoke()]),
            gap: DelimiterSet::new([
                close(),
                (Delimiter::plain("parameter name="), Found::Parameter),
                invoke(),
            ]),
            parameter: Parameter::new(&marker, options.tool_parameters.clone()),
            marker,
            compat: options.compat,
            call_name: String::new(),
            is_open: false,
            num_members: 0,
        }
    }

    /// Reads the word of a tag behind the marker; `None` while it may go on.
    fn word(&mut self, input: &mut Input<'_>, closing: bool) -> Option<Step> {
        while let Some((byte, _)) = next_byte(input) {
            let word = tag_word(input.buffer.text(self.opened_at..*input.scan));
            let is_word = byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
            let is_first_space = byte == b' ' && *input.scan == self.opened_at;
            if (is_word && word.len() < MAX_WORD) || is_first_space {
                *input.scan += 1;
            } else if byte == b'>' {
                *input.scan += 1;
                let dropped_to = *input.scan;
                if closing {
                    return Some(Step::Rejected { dropped_to });
                }
                self.state = State::Blank { dropped_to };
                return None;
            } else if byte == b' ' && word == "invoke" && !closing {
                *input.scan += 1;
                self.bare_invoke.reset();
                self.state = State::BareInvoke {
                    dropped_to: self.opened_at,
                };
                return None;
            } else {
                return Some(Step::Rejected {
                    dropped_to: self.opened_at,
                });
            }
        }
        Some(Step::More)
    }

    fn first_invoke(
        &mut self,
        input: &mut Input<'_>,
        dropped_to: usize,
        bare: bool,
    ) -> Option<Step> {
        while let Some((byte, trust)) = next_byte(input) {
            let alternatives = if bare {
                &mut self.bare_invoke
            } else {
                &mut self.first_invoke
            };
            match alternatives.advance(byte, trust) {
                Progress::Open => *input.scan += 1,
                Progress::Complete => {
                    *input.scan += 1;
                    self.begin_name(input);
                    return None;
                }
                Progress::Dead => return Some(Step::Rejected { dropped_to }),
            }
        }
        Some(Step::More)
    }

    fn begin_name(&mut self, input: &mut Input<'_>) {
        input.markup(*input.scan);
        self.state = State::CallName;
    }

    fn call_name(&mut self, input: &mut Input<'_>) -> Option<Step> {
        let Some((position, byte)) = find_byte(input, |byte| matches!(byte, b'"' | b'\n')) else {
            return Some(Step::More);
        };
        let name = input.text_to(position).to_owned();
        if byte == b'"' {
            input.call(&name);
            input.used(position);
            *input.scan += 1;
            self.state = State::CallNameTail;
        } else {
            // The quote is missing: the line ends the name, and the tag with it.
            input.diagnostics.num_repairs += 1;
            input.call(name.trim_end_matches('>'));
            input.used(position);
            self.enter_gap(input);
        }
        input.markup(*input.scan);
        self.call_name = name;
        self.is_open = false;
        self.num_members = 0;
        None
    }

    fn call_name_tail(&mut self, input: &mut Input<'_>) -> Option<Step> {
        let Some((position, byte)) = find_byte(input, |byte| matches!(byte, b'>' | b'<')) else {
            return Some(Step::More);
        };
        if byte == b'<' {
            input.markup(position);
            self.enter_gap(input);
            return None;
        }
        *input.scan += 1;
        let closes_itself = input.text_to(position).ends_with('/');
        input.markup(*input.scan);
        if closes_itself {
            input.arguments(ArgumentFragment::EmptyObject);
            self.enter_block();
        } else {
            self.enter_gap(input);
        }
        None
    }

    fn enter_gap(&mut self, input: &mut Input<'_>) {
        debug_assert!(input.buffer.settled() <= *input.scan);
        self.gap.reset();
        self.state = State::Gap;
    }

    fn enter_block(&mut self) {
        self.between.reset();
        self.state = State::Block;
    }

    fn gap(&mut self, input: &mut Input<'_>) -> Option<Step> {
        let Some((found, start)) = scan_set(&mut self.gap, input) else {
            return Some(Step::More);
        };
        let (junk, is_marked) = self.before_tag(input.text_to(start), found);
        let junk = junk.trim().to_owned();
        match found {
            Found::Parameter => {
                Self::settle_gap(input, &junk);
                input.markup(*input.scan);
                if !self.is_open {
                    input.arguments(ArgumentFragment::OpenObject);
                } else if self.num_members > 0 {
                    input.arguments(ArgumentFragment::NextMember);
                }
                self.is_open = true;
                self.parameter.start(&self.call_name, is_marked);
                self.state = State::Parameter;
            }
            Found::Close => {
                self.close_call(input, &junk);
                input.markup(*input.scan);
                self.state = State::CloseTag(Closed::Call);
            }
            Found::Invoke => {
                input.diagnostics.num_repairs += 1;
                self.close_call(input, &junk);
                self.begin_name(input);
            }
        }
        None
    }

    /// Splits the text before a tag into what is not markup and whether the tag has the marker.
    fn before_tag<'a>(&self, before: &'a str, found: Found) -> (&'a str, bool) {
        if found == Found::Close {
            return (before, true);
        }
        let rest = before.strip_suffix(' ').unwrap_or(before);
        let (rest, is_marked) = match rest.strip_suffix(self.marker.as_str()) {
            Some(rest) => (rest, true),
            None => (rest, false),
        };
        match rest.strip_suffix('<') {
            Some(rest) => (rest, is_marked),
            None => (rest, is_marked),
        }
    }

    /// Counts text between parameters, which appears nowhere.
    fn settle_gap(input: &mut Input<'_>, junk: &str) {
        if !junk.is_empty() {
            input.discard(input.buffer.settled() + junk.len());
        }
    }

    /// Sends the end of the arguments; `body` is text in place of parameters.
    fn close_call(&mut self, input: &mut Input<'_>, body: &str) {
        if self.is_open {
            Self::settle_gap(input, body);
            input.arguments(ArgumentFragment::CloseObject);
        } else if body.is_empty() {
            input.arguments(ArgumentFragment::EmptyObject);
        } else {
            input.diagnostics.num_repairs += 1;
            let arguments = repair::body_arguments(&self.without_markers(body));
            input.used(input.buffer.settled() + body.len());
            input.arguments(ArgumentFragment::Json(arguments));
        }
        self.is_open = false;
    }

    /// A body whose markers, and the beginning of one at its end, are taken out.
    fn without_markers(&self, body: &str) -> String {
        let mut body = body.replace(&self.marker, "");
        let tail = body.rfind('<').map_or("", |start| &body[start + 1..]);
        let is_cut_marker = self.marker.starts_with(tail.trim_start_matches('/'));
        if is_cut_marker && body.contains('<') {
            body.truncate(body.rfind('<').unwrap_or_default());
        }
        body
    }

    fn parameter(&mut self, input: &mut Input<'_>) -> Option<Step> {
        match self.parameter.advance(input) {
            AfterParameter::More => return Some(Step::More),
            AfterParameter::Gap { num_members } => {
                self.num_members += num_members;
                self.enter_gap(input);
            }
            AfterParameter::CloseTag { num_members } => {
                self.num_members += num_members;
                self.state = State::CloseTag(Closed::Value);
            }
        }
        None
    }

    fn close_tag(&mut self, input: &mut Input<'_>, closed: Closed) -> Option<Step> {
        let start = input.buffer.settled();
        loop {
            let Some((byte, _)) = next_byte(input) else {
                return Some(Step::More);
            };
            let is_word = byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
            let may_go_on = is_word || (byte == b' ' && *input.scan == start);
            if !may_go_on || *input.scan - start > MAX_WORD {
                break;
            }
            *input.scan += 1;
        }
        let word = tag_word(input.text_to(*input.scan)).to_owned();
        if next_byte(input).is_some_and(|(byte, _)| byte == b'>') {
            *input.scan += 1;
        }
        input.markup(*input.scan);
        let ends_block = word.ends_with("calls") || word.starts_with("tool");
        let ends_call = ends_block || word == "invoke";
        if closed == Closed::Value && ends_call {
            input.diagnostics.num_repairs += 1;
            self.close_call(input, "");
        }
        if ends_block {
            return Some(Step::Left);
        }
        if closed == Closed::Value && !ends_call {
            self.enter_gap(input);
        } else {
            self.enter_block();
        }
        None
    }

    fn block(&mut self, input: &mut Input<'_>) -> Option<Step> {
        let Some((found, start)) = scan_set(&mut self.between, input) else {
            return Some(Step::More);
        };
        let junk = self.before_tag(input.text_to(start), found).0.trim().len();
        if junk > 0 {
            input.discard(input.buffer.settled() + junk);
        }
        if found == Found::Invoke {
            self.begin_name(input);
        } else {
            input.markup(*input.scan);
            self.state = State::CloseTag(Closed::Block);
        }
        None
    }

    /// Whether the word behind an opener that the output's end cut may be that of a block.
    fn is_cut_opener(&self, input: &Input<'_>) -> bool {
        let word = input.buffer.text(self.opened_at..input.buffer.end());
        let word = word.strip_prefix(' ').unwrap_or(word);
        BLOCK_WORDS.iter().any(|known| known.starts_with(word))
    }
}

impl CallGrammar for DsmlGrammar {
    fn openers(&self) -> Vec<Delimiter> {
        vec![Delimiter::tag("<", &self.marker).taking_newlines(self.compat)]
    }

    fn strays(&self) -> Vec<Delimiter> {
        vec![Delimiter::markup(&format!("</{}", self.marker))]
    }

    fn start(&mut self, position: usize) {
        self.opened_at = position;
        self.state = State::Word { closing: false };
    }

    fn start_stray(&mut self, position: usize) {
        self.opened_at = position;
        self.state = State::Word { closing: true };
    }

    fn start_inside(&mut self, position: usize) {
        self.opened_at = position;
        self.state = State::Blank {
            dropped_to: position,
        };
    }

    fn advance(&mut self, input: &mut Input<'_>) -> Step {
        loop {
            let step = match self.state {
                State::Word { closing } => self.word(input, closing),
                State::Blank { dropped_to } => {
                    let blank = |byte| matches!(byte, b' ' | b'\n' | b'\r' | b'\t');
                    match find_byte(input, |byte| !blank(byte)) {
                        None => Some(Step::More),
                        Some((_, b'<')) => {
                            *input.scan += 1;
                            self.first_invoke.reset();
                            self.state = State::FirstInvoke { dropped_to };
                            None
                        }
                        Some(_) => Some(Step::Rejected { dropped_to }),
                    }
                }
                State::FirstInvoke { dropped_to } => self.first_invoke(input, dropped_to, false),
                State::BareInvoke { dropped_to } => self.first_invoke(input, dropped_to, true),
                State::CallName => self.call_name(input),
                State::CallNameTail => self.call_name_tail(input),
                State::Gap => self.gap(input),
                State::Parameter => self.parameter(input),
                State::CloseTag(closed) => self.close_tag(input, closed),
                State::Block => self.block(input),
            };
            if let Some(step) = step {
                return step;
            }
        }
    }

    fn release(&mut self, input: &mut Input<'_>, whole_pieces: bool) {
        if matches!(self.state, State::Parameter) {
            self.parameter.release(input, whole_pieces);
        }
    }

    fn finish(&mut self, input: &mut Input<'_>, ending: Ending) -> Option<usize> {
        let end = input.buffer.end();
        match self.state {
            State::Word { closing } => {
                if closing || !self.is_cut_opener(input) {
                    return Some(self.opened_at);
                }
                input.discard(end);
            }
            State::Blank { .. }
            | State::FirstInvoke { .. }
            | State::BareInvoke { .. }
            | State::CallName
            | State::Block => input.discard(end),
            State::CloseTag(Closed::Value) | State::Parameter => {
                if matches!(self.state, State::Parameter) {
                    self.num_members += self.parameter.finish(input, ending);
                }
                input.markup(end);
                if ending == Ending::Turn {
                    input.diagnostics.num_repairs += 1;
                    input.arguments(ArgumentFragment::CloseObject);
                }
            }
            State::CloseTag(_) => input.markup(end),
            State::CallNameTail | State::Gap => {
                if ending == Ending::Turn {
                    input.diagnostics.num_repairs += 1;
                    let in_gap = matches!(self.state, State::Gap);
                    let body = if in_gap {
                        input.text_to(end).trim().to_owned()
                    } else {
                        String::new()
                    };
                    self.close_call(input, &body);
                    input.markup(end);
                } else {
                    input.discard(end);
                }
            }
        }
        None
    }
}

/// The word of a tag, behind the space that V4.1 writes.
fn tag_word(text: &str) -> &str {
    text.strip_prefix(' ').unwrap_or(text)
}
