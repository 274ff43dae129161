//! One parameter of a DSML call: its name, the `string` attribute, and the value.

use std::collections::BTreeMap;

use super::delimiter::{Delimiter, DelimiterSet};
use super::event::ArgumentFragment;
use super::grammar::{Ending, Input, next_byte, scan_set};
use super::json_escape::quoted;
use super::json_scan::{JsonShape, shape_of};
use super::repair;

/// What follows a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterParameter {
    /// The parameter goes on.
    More,
    /// Other parameters; this many members were sent.
    Gap { num_members: usize },
    /// The rest of a closing tag; this many members were sent.
    CloseTag { num_members: usize },
}

/// Markers that cannot stand inside the tag of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Marker {
    Open,
    Close,
}

/// How a value ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ValueEnd {
    /// `</M`
    Marked,
    /// `</parameter>` for a parameter whose opening tag had no marker either.
    Unmarked,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Behind `name=`.
    BeforeName,
    /// Inside a quoted name.
    Name(NameState),
    /// Inside a name without quotes.
    BareName,
    /// Behind the name, up to the end of the tag.
    Attribute,
    /// A string value that is sent as it comes.
    StringValue,
    /// A value that is judged when it is complete.
    HeldValue { is_string: bool },
}

/// The name ends at the quote before ` string=` or `>`: quotes inside it are part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NameState {
    Text,
    /// Behind the quote at this position and blanks.
    Quote(usize),
    /// Behind this many letters of `string`.
    Word(usize, usize),
    /// Behind the slash of `/>`.
    Slash(usize),
}

const ATTRIBUTE: &[u8] = b"string";

/// Reads one parameter after another.
#[derive(Debug)]
pub(crate) struct Parameter {
    state: State,
    guard: DelimiterSet<Marker>,
    marked_end: DelimiterSet<ValueEnd>,
    any_end: DelimiterSet<ValueEnd>,
    tool_parameters: BTreeMap<String, Vec<String>>,
    tool: String,
    is_marked: bool,
    name: String,
    /// Whether the value may be a wrapped object, so that the name is held back too.
    is_wrapper: bool,
}

impl Parameter {
    pub(crate) fn new(marker: &str, tool_parameters: BTreeMap<String, Vec<String>>) -> Self {
        let close = || Delimiter::tag("</", marker);
        Self {
            state: State::BeforeName,
            guard: DelimiterSet::new([
                (Delimiter::tag("<", marker), Marker::Open),
                (close(), Marker::Close),
            ]),
            marked_end: DelimiterSet::new([(close(), ValueEnd::Marked)]),
            any_end: DelimiterSet::new([
                (close(), ValueEnd::Marked),
                (Delimiter::plain("</parameter>"), ValueEnd::Unmarked),
            ]),
            tool_parameters,
            tool: String::new(),
            is_marked: true,
            name: String::new(),
            is_wrapper: false,
        }
    }

    /// A tag was read up to `name=`.
    pub(crate) fn start(&mut self, tool: &str, is_marked: bool) {
        self.state = State::BeforeName;
        tool.clone_into(&mut self.tool);
        self.is_marked = is_marked;
        self.is_wrapper = false;
        self.name.clear();
        self.guard.reset();
    }

    pub(crate) fn advance(&mut self, input: &mut Input<'_>) -> AfterParameter {
        loop {
            let after = match self.state {
                State::BeforeName => self.before_name(input),
                State::Name(_) | State::BareName | State::Attribute => self.tag(input),
                State::StringValue | State::HeldValue { .. } => return self.value(input),
            };
            if let Some(after) = after {
                return after;
            }
        }
    }

    fn before_name(&mut self, input: &mut Input<'_>) -> Option<AfterParameter> {
        let Some((byte, _)) = next_byte(input) else {
            return Some(AfterParameter::More);
        };
        self.state = if byte == b'"' {
            *input.scan += 1;
            input.markup(*input.scan);
            State::Name(NameState::Text)
        } else {
            State::BareName
        };
        None
    }

    /// Reads inside the tag, byte by byte: a marker inside it means that the tag is broken.
    fn tag(&mut self, input: &mut Input<'_>) -> Option<AfterParameter> {
        while let Some((byte, trust)) = next_byte(input) {
            let position = *input.scan;
            *input.scan += 1;
            if let Some(hit) = self.guard.scan(&[byte], trust) {
                return Some(self.broken_tag(input, hit.role, *input.scan - hit.length));
            }
            match self.state {
                State::Name(name) => self.name_byte(input, name, position, byte),
                State::BareName if byte == b'>' || byte.is_ascii_whitespace() => {
                    self.end_name(input, position, byte == b'>');
                }
                State::Attribute if byte == b'>' => {
                    self.end_tag(input, position);
                }
                _ => {}
            }
            if self.state == State::BeforeName {
                // The tag closed itself.
                return Some(AfterParameter::Gap { num_members: 1 });
            }
            if matches!(self.state, State::StringValue | State::HeldValue { .. }) {
                return None;
            }
        }
        Some(AfterParameter::More)
    }

    fn name_byte(&mut self, input: &mut Input<'_>, name: NameState, position: usize, byte: u8) {
        let next = match (name, byte) {
            (NameState::Word(quote, 6), b'=') => return self.end_name(input, quote, false),
            (NameState::Quote(quote) | NameState::Slash(quote), b'>') => {
                let closes_itself = name == NameState::Slash(quote);
                self.end_name(input, quote, true);
                if closes_itself {
                    if self.is_wrapper {
                        self.send_name(input);
                    }
                    input.arguments(ArgumentFragment::Json(quoted("")));
                    self.state = State::BeforeName;
                }
                return;
            }
            (NameState::Quote(quote), b'/') => NameState::Slash(quote),
            (NameState::Quote(quote), b's') => NameState::Word(quote, 1),
            (NameState::Quote(_) | NameState::Word(_, 6), _) if byte.is_ascii_whitespace() => name,
            (NameState::Word(quote, length), _) if ATTRIBUTE.get(length) == Some(&byte) => {
                NameState::Word(quote, length + 1)
            }
            (_, b'"') => NameState::Quote(position),
            _ => NameState::Text,
        };
        self.state = State::Name(next);
    }

    /// The name reaches up to `end`; everything before the scan position belongs to the tag.
    fn end_name(&mut self, input: &mut Input<'_>, end: usize, ends_tag: bool) {
        self.name = input.text_to(end).to_owned();
        input.used(end);
        input.markup(*input.scan);
        let declared = self.tool_parameters.get(&self.tool);
        self.is_wrapper = declared.is_some_and(|declared| repair::is_wrapper(&self.name, declared));
        if !self.is_wrapper {
            self.send_name(input);
        }
        if ends_tag {
            input.diagnostics.num_repairs += 1;
            self.enter_value(State::HeldValue { is_string: false });
        } else {
            self.state = State::Attribute;
        }
    }

    fn send_name(&mut self, input: &mut Input<'_>) {
        input.arguments(ArgumentFragment::Name(self.name.clone()));
        input.arguments(ArgumentFragment::Colon);
    }

    /// The tag ends at `position`, behind the attribute.
    fn end_tag(&mut self, input: &mut Input<'_>, position: usize) {
        let text = input.text_to(position).trim_start();
        let (is_string, is_well_formed) = match text.strip_prefix("string=").unwrap_or(text) {
            "\"true\"" => (true, true),
            "\"false\"" => (false, true),
            _ => (false, false),
        };
        input.diagnostics.num_repairs += u64::from(!is_well_formed);
        input.markup(*input.scan);
        if is_string && !self.is_wrapper {
            input.arguments(ArgumentFragment::OpenString);
            self.enter_value(State::StringValue);
        } else {
            self.enter_value(State::HeldValue { is_string });
        }
    }

    fn enter_value(&mut self, state: State) {
        self.marked_end.reset();
        self.any_end.reset();
        self.state = state;
    }

    /// A marker stands inside the tag: what was read of it becomes the value of the parameter.
    fn broken_tag(
        &mut self,
        input: &mut Input<'_>,
        marker: Marker,
        start: usize,
    ) -> AfterParameter {
        self.unreadable(input, start);
        if marker == Marker::Close {
            input.markup(*input.scan);
            AfterParameter::CloseTag { num_members: 1 }
        } else {
            // The marker opens the next tag, which the caller reads.
            *input.scan = start;
            AfterParameter::Gap { num_members: 1 }
        }
    }

    /// Sends the text up to `end`, which is part of a broken tag, as a string.
    fn unreadable(&mut self, input: &mut Input<'_>, end: usize) {
        input.diagnostics.num_repairs += 1;
        if self.state != State::Attribute {
            repair::UNREADABLE_PARAMETER.clone_into(&mut self.name);
        }
        if self.state != State::Attribute || self.is_wrapper {
            self.send_name(input);
        }
        let text = input.text_to(end);
        let value = match self.state {
            State::Attribute => ["\"true\"", "\"false\""]
                .iter()
                .find_map(|attribute| text.strip_prefix(attribute))
                .unwrap_or(text),
            _ => text,
        };
        let value = quoted(value);
        input.used(end);
        input.arguments(ArgumentFragment::Json(value));
    }

    fn value(&mut self, input: &mut Input<'_>) -> AfterParameter {
        let set = if self.is_marked {
            &mut self.marked_end
        } else {
            &mut self.any_end
        };
        let Some((end, start)) = scan_set(set, input) else {
            return AfterParameter::More;
        };
        if self.state == State::StringValue {
            input.string_pieces(start);
            input.arguments(ArgumentFragment::CloseString);
        } else {
            self.send_held(input, start);
        }
        input.markup(*input.scan);
        let num_members = usize::from(self.state != State::BeforeName);
        match end {
            ValueEnd::Marked => AfterParameter::CloseTag { num_members },
            ValueEnd::Unmarked => AfterParameter::Gap { num_members },
        }
    }

    /// Sends a value that is complete at `end`.
    ///
    /// An unwrapped object without members sends nothing, which the state `BeforeName` tells.
    fn send_held(&mut self, input: &mut Input<'_>, end: usize) {
        let is_string = self.state == State::HeldValue { is_string: true };
        let text = input.text_to(end).to_owned();
        input.used(end);
        if self.is_wrapper {
            let declared = self
                .tool_parameters
                .get(&self.tool)
                .map_or(&[][..], Vec::as_slice);
            if let Some(members) = repair::unwrapped_members(&text, is_string, declared) {
                input.diagnostics.num_repairs += 1;
                if members.is_empty() {
                    self.state = State::BeforeName;
                } else {
                    input.arguments(ArgumentFragment::Json(members));
                }
                return;
            }
            self.send_name(input);
        }
        let value = if is_string {
            quoted(&text)
        } else {
            let (value, is_mended) = repair::json_value(&text);
            input.diagnostics.num_repairs += u64::from(is_mended);
            value
        };
        input.arguments(ArgumentFragment::Json(value));
    }

    /// Bytes at the end of a value that may belong to its closing tag.
    fn held_end(&self) -> usize {
        if self.is_marked {
            self.marked_end.held()
        } else {
            self.any_end.held()
        }
    }

    /// Sends what is certain of a string value.
    pub(crate) fn release(&mut self, input: &mut Input<'_>, whole_pieces: bool) {
        if self.state != State::StringValue {
            return;
        }
        let certain = *input.scan - self.held_end();
        let position = if whole_pieces {
            input.buffer.last_border(certain)
        } else {
            certain
        };
        input.string_pieces(position);
    }

    /// The output ended inside the parameter; returns the number of members that were sent.
    pub(crate) fn finish(&mut self, input: &mut Input<'_>, ending: Ending) -> usize {
        let end = input.buffer.end();
        match (self.state, ending) {
            (State::StringValue, Ending::Turn) => {
                input.string_pieces(end);
                input.arguments(ArgumentFragment::CloseString);
            }
            (State::StringValue, Ending::Cut) => input.string_pieces(end),
            (State::HeldValue { .. }, Ending::Turn) => self.send_held(input, end),
            (State::HeldValue { is_string }, Ending::Cut) => {
                if self.is_wrapper {
                    self.send_name(input);
                }
                self.send_cut_value(input, is_string, end);
            }
            (State::Attribute, Ending::Cut) => {
                if self.is_wrapper {
                    self.send_name(input);
                }
            }
            (State::Attribute | State::Name(_) | State::BareName, Ending::Turn) => {
                self.unreadable(input, end);
            }
            (State::BeforeName, Ending::Turn) => {
                self.unreadable(input, input.buffer.settled());
            }
            (State::Name(name), Ending::Cut) => Self::send_cut_name(input, name, end),
            (State::BeforeName | State::BareName, Ending::Cut) => input.discard(end),
        }
        1
    }

    fn send_cut_value(&self, input: &mut Input<'_>, is_string: bool, end: usize) {
        // The beginning of a closing tag is no JSON; in a string it may be meant.
        let end = if is_string {
            end
        } else {
            end - self.held_end()
        };
        let text = input.text_to(end).to_owned();
        input.used(end);
        if text.is_empty() {
            return;
        }
        if !is_string && shape_of(&text) != JsonShape::Invalid {
            input.arguments(ArgumentFragment::Json(text));
        } else {
            input.arguments(ArgumentFragment::OpenString);
            input.arguments(ArgumentFragment::StringPiece(text));
        }
    }

    fn send_cut_name(input: &mut Input<'_>, name: NameState, end: usize) {
        let quote = match name {
            NameState::Text => None,
            NameState::Quote(quote) | NameState::Word(quote, _) | NameState::Slash(quote) => {
                Some(quote)
            }
        };
        let name_end = quote.unwrap_or(end);
        let text = input.text_to(name_end).to_owned();
        input.used(name_end);
        match quote {
            None => input.arguments(ArgumentFragment::PartialName(text)),
            Some(quote) => {
                input.arguments(ArgumentFragment::Name(text));
                if end > quote + 1 {
                    input.arguments(ArgumentFragment::Colon);
                }
            }
        }
        input.markup(end);
    }
}
