//! One call written as a JSON object with a name and arguments.

use crate::stream::event::ArgumentFragment;
use crate::stream::grammar::{Input, next_byte};
use crate::stream::json_scan::{JsonScanner, JsonShape, shape_of};
use crate::stream::repair;

use super::json_calls::send_json;

/// Result of reading on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ObjectStep {
    More,
    /// The object is complete, and its call was sent.
    Call,
    /// This is no call.
    NoCall,
}

/// The member that is being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Member {
    Name,
    Arguments,
    Other,
}

/// Reads the object byte by byte; arguments that follow the name are sent as they come.
#[derive(Debug)]
pub(crate) struct CallObject {
    scanner: JsonScanner,
    start: usize,
    member: Member,
    /// Where the current name or value of the object began.
    token_start: Option<usize>,
    name: Option<String>,
    /// Arguments that came before the name.
    waiting: Option<String>,
    has_arguments: bool,
    /// Scanner of the arguments while they are sent.
    sending: Option<JsonScanner>,
}

impl CallObject {
    pub(crate) fn new(start: usize) -> Self {
        Self {
            scanner: JsonScanner::default(),
            start,
            member: Member::Other,
            token_start: None,
            name: None,
            waiting: None,
            has_arguments: false,
            sending: None,
        }
    }

    /// Whether the arguments are sent as they come.
    pub(crate) fn is_sending(&self) -> bool {
        self.sending.is_some()
    }

    /// What completes the arguments if the output ends here; `None` before the name.
    pub(crate) fn completion(&self) -> Option<String> {
        self.name.as_ref()?;
        Some(match &self.sending {
            Some(scanner) => scanner.completion(),
            None if self.has_arguments => String::new(),
            None => "{}".to_owned(),
        })
    }

    pub(crate) fn advance(&mut self, input: &mut Input<'_>) -> ObjectStep {
        while let Some((byte, _)) = next_byte(input) {
            let position = *input.scan;
            let was_before_value = self.scanner.depth() == 1 && self.scanner.is_before_value();
            if !self.scanner.push(byte) {
                return self.give_up(input);
            }
            *input.scan += 1;
            if let Some(sending) = &mut self.sending {
                sending.push(byte);
                if sending.is_complete() {
                    send_json(input);
                    self.sending = None;
                    self.token_start = None;
                }
                continue;
            }
            if self.scanner.is_complete() {
                return self.end(input);
            }
            self.look(input, position, byte, was_before_value);
        }
        ObjectStep::More
    }

    /// Follows the names and values directly inside the object.
    fn look(&mut self, input: &mut Input<'_>, position: usize, byte: u8, was_before_value: bool) {
        let is_blank = byte.is_ascii_whitespace();
        if was_before_value && !is_blank {
            self.token_start = Some(position);
            if self.member == Member::Arguments && byte == b'{' && self.name.is_some() {
                self.begin_sending(input, position, byte);
                return;
            }
        } else if self.token_start.is_none() && byte == b'"' && self.scanner.depth() == 1 {
            self.token_start = Some(position);
            return;
        }
        if self.scanner.depth() != 1 {
            return;
        }
        let Some(start) = self.token_start else {
            return;
        };
        if self.scanner.is_behind_name() {
            let name: Option<String> =
                serde_json::from_str(input.buffer.text(start..*input.scan)).ok();
            self.member = match name.as_deref() {
                Some("name") => Member::Name,
                Some("arguments" | "parameters") => Member::Arguments,
                _ => Member::Other,
            };
            self.token_start = None;
        } else if self.scanner.is_behind_value() || byte == b',' {
            let end = if byte == b',' { position } else { *input.scan };
            self.end_value(input, start, end);
        }
    }

    fn begin_sending(&mut self, input: &mut Input<'_>, position: usize, byte: u8) {
        input.markup(position);
        let mut scanner = JsonScanner::default();
        scanner.push(byte);
        self.sending = Some(scanner);
        self.has_arguments = true;
    }

    fn end_value(&mut self, input: &mut Input<'_>, start: usize, end: usize) {
        self.token_start = None;
        let text = input.buffer.text(start..end).to_owned();
        match self.member {
            Member::Name if self.name.is_none() => {
                if let Ok(name) = serde_json::from_str::<String>(&text) {
                    input.markup(end);
                    input.call(&name);
                    self.name = Some(name);
                    if let Some(arguments) = self.waiting.take() {
                        self.send_whole(input, &arguments);
                    }
                }
            }
            Member::Arguments if !self.has_arguments => {
                if self.name.is_some() {
                    input.used(end);
                    self.send_whole(input, &text);
                } else {
                    self.waiting = Some(text);
                }
            }
            Member::Name | Member::Arguments | Member::Other => {}
        }
        self.member = Member::Other;
    }

    /// Sends arguments that are complete: an object, or a string that holds one.
    fn send_whole(&mut self, input: &mut Input<'_>, text: &str) {
        self.has_arguments = true;
        let inner: Option<String> = serde_json::from_str(text).ok();
        let text = inner.as_deref().unwrap_or(text).trim();
        let is_object = text.starts_with('{') && shape_of(text) == JsonShape::Value;
        input.diagnostics.num_repairs += u64::from(!is_object);
        let fragment = if is_object {
            ArgumentFragment::Json(text.to_owned())
        } else if text == "null" || text.is_empty() {
            ArgumentFragment::EmptyObject
        } else {
            ArgumentFragment::Json(repair::body_arguments(text))
        };
        input.arguments(fragment);
    }

    fn end(&mut self, input: &mut Input<'_>) -> ObjectStep {
        if let Some(start) = self.token_start.take() {
            // A number or a literal right before the brace.
            self.end_value(input, start, *input.scan - 1);
        }
        if self.name.is_none() {
            *input.scan = self.start;
            return ObjectStep::NoCall;
        }
        if !self.has_arguments {
            input.arguments(ArgumentFragment::EmptyObject);
        }
        input.markup(*input.scan);
        ObjectStep::Call
    }

    /// The object is broken here.
    fn give_up(&mut self, input: &mut Input<'_>) -> ObjectStep {
        let Some(completion) = self.completion() else {
            *input.scan = self.start;
            return ObjectStep::NoCall;
        };
        input.diagnostics.num_repairs += 1;
        if self.sending.is_some() {
            send_json(input);
        }
        input.arguments(ArgumentFragment::Json(completion));
        input.markup(*input.scan);
        ObjectStep::Call
    }
}
