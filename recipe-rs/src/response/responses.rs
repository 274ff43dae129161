//! The generator of Responses events.

use std::collections::{BTreeMap, BTreeSet};

use super::call_id::CallIds;
use super::custom_input::CustomInput;
use super::responses_event::{CallDelta, Event, PartEvent, ResponsesStreamEvent};
use super::responses_item::{Call, OpenItem, Report};
use super::responses_object::{Item, ResponsesEcho, ResponsesResponse};
use super::unix_seconds;
use crate::request::ToolKinds;
use crate::stream::{
    ArgumentFragment, ChunkGenerator, FinishCause, InferenceFinishReason, PromptUsage, StreamEvent,
    StreamUsage,
};

/// The name of the function that searches tools.
const TOOL_SEARCH: &str = "tool_search";

/// What ends an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Closing {
    /// Another item begins; true for a call.
    Next { is_call: bool },
    /// The response ends; true if it was cut.
    End { is_cut: bool },
}

/// Makes the events of one Responses response.
#[derive(Debug, Clone)]
pub struct ResponsesChunkGenerator {
    response: ResponsesResponse,
    id: String,
    tool_kinds: ToolKinds,
    is_thinking: bool,
    carries_reasoning: bool,
    compat: bool,
    call_ids: CallIds,
    sequence_number: u64,
    output: Vec<Item>,
    open: Option<OpenItem>,
}

impl ResponsesChunkGenerator {
    /// A generator for a request without settings of its own.
    #[must_use]
    pub fn new(id: impl Into<String>, model: impl Into<String>) -> Self {
        let id = id.into();
        Self {
            response: ResponsesResponse::new(id.clone(), model, unix_seconds()),
            id,
            tool_kinds: ToolKinds::default(),
            is_thinking: false,
            carries_reasoning: false,
            compat: true,
            call_ids: CallIds::default(),
            sequence_number: 0,
            output: Vec::new(),
            open: None,
        }
    }

    /// Sets how the calls of which tools are reported.
    #[must_use]
    pub fn with_tool_kinds(mut self, tool_kinds: ToolKinds) -> Self {
        self.tool_kinds = tool_kinds;
        self
    }

    /// Splits these function names into namespace and local name.
    #[must_use]
    pub fn with_namespace_tool_map(mut self, map: BTreeMap<String, (String, String)>) -> Self {
        self.tool_kinds.namespaced = map;
        self
    }

    /// Reports these request settings.
    #[must_use]
    pub fn with_echo(mut self, echo: &ResponsesEcho) -> Self {
        self.response = self.response.with_settings(echo);
        self
    }

    /// Names the tools whose calls carry raw input.
    #[must_use]
    pub fn with_custom_tools(mut self, names: BTreeSet<String>) -> Self {
        self.tool_kinds.custom = names;
        self
    }

    /// Sets whether calls of the tool search are items of their own kind.
    #[must_use]
    pub fn with_tool_search(mut self, has_tool_search: bool) -> Self {
        self.tool_kinds.has_tool_search = has_tool_search;
        self
    }

    /// Sets whether reasoning items carry their text as `encrypted_content`, to be sent back.
    #[must_use]
    pub fn with_carried_reasoning(mut self, carries_reasoning: bool) -> Self {
        self.carries_reasoning = carries_reasoning;
        self
    }

    /// Sets whether the model thinks.
    #[must_use]
    pub fn with_thinking(mut self, is_thinking: bool) -> Self {
        self.is_thinking = is_thinking;
        self.call_ids.set_empty_thinking(is_thinking);
        self
    }

    /// Sets whether `phase` and the `name` of finished arguments stay as the official codec has them.
    #[must_use]
    pub fn with_compat(mut self, compat: bool) -> Self {
        self.compat = compat;
        self
    }

    /// Sets how call ids are made.
    #[must_use]
    pub fn with_call_ids(mut self, call_ids: CallIds) -> Self {
        self.call_ids = call_ids;
        self.call_ids.set_empty_thinking(self.is_thinking);
        self
    }

    /// Sets the creation time in seconds since 1970.
    #[must_use]
    pub fn with_created(mut self, created: i64) -> Self {
        self.response = self.response.with_created(created);
        self
    }

    fn next_number(&mut self) -> u64 {
        self.sequence_number += 1;
        self.sequence_number - 1
    }

    fn send(&mut self, make: impl FnOnce(u64) -> Event, chunks: &mut Vec<ResponsesStreamEvent>) {
        let event = make(self.next_number());
        chunks.push(ResponsesStreamEvent(event));
    }

    fn report(
        &self,
        open: &OpenItem,
        status: &'static str,
        phase: &'static str,
        is_added: bool,
    ) -> Item {
        open.report(Report {
            response_id: &self.id,
            output_index: self.output.len(),
            status,
            phase,
            is_added,
            carries_reasoning: self.carries_reasoning,
        })
    }

    fn open_item(&mut self, open: OpenItem, chunks: &mut Vec<ResponsesStreamEvent>) {
        let is_call = open.is_call();
        self.close_item(Closing::Next { is_call }, chunks);
        let item = self.report(&open, "in_progress", "final_answer", true);
        let part = open.part(true);
        let output_index = self.output.len();
        let item_id = open.id(&self.id, self.output.len());
        self.open = Some(open);
        self.send(
            |sequence_number| Event::ItemAdded {
                item,
                output_index,
                sequence_number,
            },
            chunks,
        );
        if let Some(part) = part {
            self.send(
                |sequence_number| {
                    Event::PartAdded(PartEvent {
                        content_index: 0,
                        item_id,
                        output_index,
                        part,
                        sequence_number,
                    })
                },
                chunks,
            );
        }
    }

    fn close_item(&mut self, closing: Closing, chunks: &mut Vec<ResponsesStreamEvent>) {
        let Some(open) = self.open.take() else { return };
        let output_index = self.output.len();
        let item_id = open.id(&self.id, self.output.len());
        self.send_done(&open, &item_id, output_index, chunks);
        if let Some(part) = open.part(false) {
            let item_id = item_id.clone();
            self.send(
                |sequence_number| {
                    Event::PartDone(PartEvent {
                        content_index: 0,
                        item_id,
                        output_index,
                        part,
                        sequence_number,
                    })
                },
                chunks,
            );
        }
        let status = match closing {
            Closing::End { is_cut: true } => "incomplete",
            Closing::Next { .. } | Closing::End { is_cut: false } => "completed",
        };
        let phase = match closing {
            Closing::Next { is_call: true } if self.compat => "commentary",
            Closing::Next { .. } | Closing::End { .. } => "final_answer",
        };
        let item = self.report(&open, status, phase, false);
        self.output.push(item.clone());
        self.send(
            |sequence_number| Event::ItemDone {
                item,
                output_index,
                sequence_number,
            },
            chunks,
        );
    }

    /// Sends the event that closes the text, the arguments or the input.
    fn send_done(
        &mut self,
        open: &OpenItem,
        item_id: &str,
        output_index: usize,
        chunks: &mut Vec<ResponsesStreamEvent>,
    ) {
        let item_id = item_id.to_owned();
        let names_calls = !self.compat;
        let sequence_number = match open {
            OpenItem::ToolSearch { .. } => return,
            _ => self.next_number(),
        };
        let event = match open.clone() {
            OpenItem::Reasoning(text) => Event::ReasoningDone {
                content_index: 0,
                item_id,
                output_index,
                sequence_number,
                text,
            },
            OpenItem::Message { text, logprobs } => Event::TextDone {
                content_index: 0,
                item_id,
                logprobs,
                output_index,
                sequence_number,
                text,
            },
            OpenItem::Function { call, .. } => Event::ArgumentsDone {
                arguments: call.text,
                item_id,
                name: names_calls.then_some(call.name),
                output_index,
                sequence_number,
            },
            OpenItem::Custom { call, .. } | OpenItem::ToolSearch { call } => Event::InputDone {
                input: call.text,
                item_id,
                output_index,
                sequence_number,
            },
        };
        chunks.push(ResponsesStreamEvent(event));
    }

    fn start_call(&mut self, name: String, chunks: &mut Vec<ResponsesStreamEvent>) {
        let call = |name: String, id: String| Call {
            id,
            name,
            text: String::new(),
        };
        let call_id = self.call_ids.next_id();
        let open = if self.tool_kinds.custom.contains(&name) {
            OpenItem::Custom {
                call: call(name, call_id),
                decoder: CustomInput::default(),
            }
        } else if self.tool_kinds.has_tool_search && name == TOOL_SEARCH {
            OpenItem::ToolSearch {
                call: call(name, call_id),
            }
        } else {
            let (namespace, name) = match self.tool_kinds.namespaced.get(&name) {
                Some((namespace, local)) => (Some(namespace.clone()), local.clone()),
                None => (None, name),
            };
            OpenItem::Function {
                call: call(name, call_id),
                namespace,
            }
        };
        self.open_item(open, chunks);
    }

    fn add_arguments(
        &mut self,
        fragment: ArgumentFragment,
        chunks: &mut Vec<ResponsesStreamEvent>,
    ) {
        let output_index = self.output.len();
        let Some(open) = self.open.as_mut() else {
            return;
        };
        let item_id = open.id(&self.id, output_index);
        let (delta, is_input) = match open {
            OpenItem::Function { call, .. } => {
                let delta = fragment.to_json();
                call.text.push_str(&delta);
                (delta, false)
            }
            OpenItem::ToolSearch { call } => {
                call.text.push_str(&fragment.to_json());
                return;
            }
            OpenItem::Custom { call, decoder } => {
                let Some(delta) = decoder.push(fragment) else {
                    return;
                };
                call.text.push_str(&delta);
                (delta, true)
            }
            OpenItem::Reasoning(_) | OpenItem::Message { .. } => return,
        };
        self.send(
            |sequence_number| {
                let delta = CallDelta {
                    delta,
                    item_id,
                    output_index,
                    sequence_number,
                };
                if is_input {
                    Event::InputDelta(delta)
                } else {
                    Event::ArgumentsDelta(delta)
                }
            },
            chunks,
        );
    }
}

impl ChunkGenerator for ResponsesChunkGenerator {
    type Chunk = ResponsesStreamEvent;

    fn start(
        &mut self,
        _prompt: PromptUsage,
        _system_fingerprint: Option<String>,
        chunks: &mut Vec<ResponsesStreamEvent>,
    ) {
        let response = Box::new(self.response.clone());
        self.send(
            |sequence_number| Event::Created {
                response: response.clone(),
                sequence_number,
            },
            chunks,
        );
        self.send(
            |sequence_number| Event::InProgress {
                response,
                sequence_number,
            },
            chunks,
        );
    }

    fn event(&mut self, event: StreamEvent, chunks: &mut Vec<ResponsesStreamEvent>) {
        match event {
            StreamEvent::Reasoning { text, .. } => {
                self.call_ids.set_empty_thinking(false);
                if !matches!(self.open, Some(OpenItem::Reasoning(_))) {
                    self.open_item(OpenItem::Reasoning(String::new()), chunks);
                }
                if let Some(OpenItem::Reasoning(whole)) = &mut self.open {
                    whole.push_str(&text);
                }
                let output_index = self.output.len();
                let item_id = format!("rs_{}_{output_index}", self.id);
                self.send(
                    |sequence_number| Event::ReasoningDelta {
                        content_index: 0,
                        delta: text,
                        item_id,
                        output_index,
                        sequence_number,
                    },
                    chunks,
                );
            }
            StreamEvent::Content { text, logprobs } => {
                if !matches!(self.open, Some(OpenItem::Message { .. })) {
                    let empty = OpenItem::Message {
                        text: String::new(),
                        logprobs: Vec::new(),
                    };
                    self.open_item(empty, chunks);
                }
                if let Some(OpenItem::Message {
                    text: whole,
                    logprobs: all,
                }) = &mut self.open
                {
                    whole.push_str(&text);
                    all.extend_from_slice(&logprobs);
                }
                let output_index = self.output.len();
                let item_id = format!("msg_{}_{output_index}", self.id);
                self.send(
                    |sequence_number| Event::TextDelta {
                        content_index: 0,
                        delta: text,
                        item_id,
                        logprobs,
                        output_index,
                        sequence_number,
                    },
                    chunks,
                );
            }
            StreamEvent::CallStart { name } => self.start_call(name, chunks),
            StreamEvent::CallArguments(fragment) => self.add_arguments(fragment, chunks),
        }
    }

    fn finish(
        &mut self,
        cause: &FinishCause,
        usage: &StreamUsage,
        chunks: &mut Vec<ResponsesStreamEvent>,
    ) {
        let incomplete_reason = match cause {
            FinishCause::Backend(InferenceFinishReason::Length) => Some("max_output_tokens"),
            FinishCause::Backend(InferenceFinishReason::ContentFilter) => Some("content_filter"),
            _ => None,
        };
        let is_cut = incomplete_reason.is_some();
        self.close_item(Closing::End { is_cut }, chunks);
        let output = std::mem::take(&mut self.output);
        self.response.finish(output, usage, incomplete_reason);
        let response = Box::new(self.response.clone());
        self.send(
            |sequence_number| {
                if is_cut {
                    Event::Incomplete {
                        response,
                        sequence_number,
                    }
                } else {
                    Event::Completed {
                        response,
                        sequence_number,
                    }
                }
            },
            chunks,
        );
    }
}
