//! Calls that are JSON objects: Hermes, Llama 3, Mistral.

use crate::stream::delimiter::Delimiter;
use crate::stream::event::ArgumentFragment;
use crate::stream::grammar::{CallGrammar, Ending, Input, Step, next_byte};
use crate::stream::json_scan::JsonScanner;

use super::call_object::{CallObject, ObjectStep};

/// Which family writes the calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JsonCalls {
    /// `<tool_call>` object `</tool_call>`
    Hermes,
    /// `<|python_tag|>` object, or an object as the whole answer; several are separated by `;`
    Llama3,
    /// `[TOOL_CALLS]` array of objects, or `[TOOL_CALLS]` name `[ARGS]` arguments
    Mistral,
}

impl JsonCalls {
    pub(crate) const fn opener(self) -> &'static str {
        match self {
            Self::Hermes => "<tool_call>",
            Self::Llama3 => "<|python_tag|>",
            Self::Mistral => "[TOOL_CALLS]",
        }
    }

    /// Everything that is markup besides the opener.
    pub(crate) const fn closers(self) -> &'static [&'static str] {
        match self {
            Self::Hermes => &["</tool_call>"],
            Self::Llama3 => &["<|eom_id|>"],
            Self::Mistral => &["[ARGS]", "[CALL_ID]"],
        }
    }
}

/// Longest name of a function in the form `name[ARGS]`.
const MAX_NAME: usize = 256;

#[derive(Debug)]
enum State {
    /// Behind the opener.
    Before,
    /// Inside an object with name and arguments.
    Object(CallObject),
    /// A name in front of its arguments, which begin at `{`.
    Name,
    /// The arguments of such a call.
    Arguments(JsonScanner),
    /// Behind a call.
    Behind,
}

/// Reads calls of one family.
#[derive(Debug)]
pub(crate) struct JsonCallGrammar {
    family: JsonCalls,
    state: State,
    opened_at: usize,
    in_array: bool,
    has_calls: bool,
    /// Whether the object stands without an opener, so that it may be an answer.
    is_bare: bool,
}

impl JsonCallGrammar {
    pub(crate) fn new(family: JsonCalls) -> Self {
        Self {
            family,
            state: State::Before,
            opened_at: 0,
            in_array: false,
            has_calls: false,
            is_bare: false,
        }
    }

    fn before(&mut self, input: &mut Input<'_>, byte: u8) -> Option<Step> {
        match byte {
            _ if byte.is_ascii_whitespace() => *input.scan += 1,
            b'{' => self.state = State::Object(CallObject::new(*input.scan)),
            b'[' if self.family == JsonCalls::Mistral && !self.in_array => {
                self.in_array = true;
                *input.scan += 1;
            }
            _ if self.family == JsonCalls::Mistral && !self.in_array => self.state = State::Name,
            _ => return Some(self.leave(input)),
        }
        None
    }

    /// Something that is no call follows: text again, if nothing was a call.
    fn leave(&mut self, input: &mut Input<'_>) -> Step {
        if self.has_calls {
            input.markup(*input.scan);
            return Step::Left;
        }
        Step::Rejected {
            dropped_to: self.opened_at,
        }
    }

    fn object(&mut self, input: &mut Input<'_>) -> Option<Step> {
        let State::Object(object) = &mut self.state else {
            return None;
        };
        match object.advance(input) {
            ObjectStep::More => return Some(Step::More),
            ObjectStep::Call => {
                self.has_calls = true;
                self.state = State::Behind;
            }
            ObjectStep::NoCall => return Some(self.leave(input)),
        }
        None
    }

    fn name(&mut self, input: &mut Input<'_>, byte: u8) -> Option<Step> {
        if byte == b'{' {
            let text = input.buffer.text(self.opened_at..*input.scan);
            let name = text.split('[').next().unwrap_or_default().trim();
            if name.is_empty() {
                return Some(self.leave(input));
            }
            let name = name.to_owned();
            input.markup(*input.scan);
            input.call(&name);
            self.has_calls = true;
            self.state = State::Arguments(JsonScanner::default());
        } else if byte == b'\n' || *input.scan - self.opened_at > MAX_NAME {
            return Some(self.leave(input));
        } else {
            *input.scan += 1;
        }
        None
    }

    fn arguments(&mut self, input: &mut Input<'_>, byte: u8) {
        let State::Arguments(scanner) = &mut self.state else {
            return;
        };
        if scanner.push(byte) {
            *input.scan += 1;
            if scanner.is_complete() {
                send_json(input);
                self.state = State::Behind;
            }
        } else {
            send_json(input);
            input.diagnostics.num_repairs += 1;
            input.arguments(ArgumentFragment::Json(scanner.completion()));
            self.state = State::Behind;
        }
    }

    fn behind(&mut self, input: &mut Input<'_>, byte: u8) -> Option<Step> {
        let closer = self.family.closers()[0];
        let rest = input.text_to(*input.scan).trim_start().len();
        if self.family == JsonCalls::Hermes && closer.as_bytes().get(rest) == Some(&byte) {
            *input.scan += 1;
            if rest + 1 == closer.len() {
                input.markup(*input.scan);
                return Some(Step::Left);
            }
        } else if byte.is_ascii_whitespace() && rest == 0 {
            *input.scan += 1;
        } else if byte == b';' || (byte == b',' && self.in_array) {
            *input.scan += 1;
            input.markup(*input.scan);
            self.state = State::Before;
        } else {
            if byte == b']' && self.in_array {
                *input.scan += 1;
            }
            input.markup(*input.scan);
            return Some(Step::Left);
        }
        None
    }
}

/// Sends everything that was read as JSON text of the arguments.
pub(crate) fn send_json(input: &mut Input<'_>) {
    let text = input.text_to(*input.scan).to_owned();
    if !text.is_empty() {
        input.used(*input.scan);
        input.arguments(ArgumentFragment::Json(text));
    }
}

impl CallGrammar for JsonCallGrammar {
    fn openers(&self) -> Vec<Delimiter> {
        vec![Delimiter::markup(self.family.opener()).taking_newlines(false)]
    }

    fn start(&mut self, position: usize) {
        *self = Self::new(self.family);
        self.opened_at = position;
    }

    fn start_inside(&mut self, position: usize) {
        self.start(position);
    }

    fn start_bare(&mut self, position: usize) -> bool {
        self.start(position);
        self.is_bare = self.family == JsonCalls::Llama3;
        self.is_bare
    }

    fn advance(&mut self, input: &mut Input<'_>) -> Step {
        while let Some((byte, _)) = next_byte(input) {
            let step = match self.state {
                State::Before => self.before(input, byte),
                State::Object(_) => self.object(input),
                State::Name => self.name(input, byte),
                State::Arguments(_) => {
                    self.arguments(input, byte);
                    None
                }
                State::Behind => self.behind(input, byte),
            };
            if let Some(step) = step {
                return step;
            }
        }
        Step::More
    }

    fn release(&mut self, input: &mut Input<'_>, _whole_pieces: bool) {
        match &self.state {
            State::Arguments(_) => send_json(input),
            State::Object(object) if object.is_sending() => send_json(input),
            _ => {}
        }
    }

    fn finish(&mut self, input: &mut Input<'_>, ending: Ending) -> Option<usize> {
        let completion = match &self.state {
            State::Arguments(scanner) => Some(scanner.completion()),
            State::Object(object) => object.completion(),
            State::Before | State::Name | State::Behind => None,
        };
        if let Some(completion) = completion {
            send_json(input);
            if ending == Ending::Turn {
                input.diagnostics.num_repairs += 1;
                input.arguments(ArgumentFragment::Json(completion));
            }
        } else if self.is_bare && !self.has_calls {
            return Some(self.opened_at);
        }
        input.discard(input.buffer.end());
        None
    }
}
