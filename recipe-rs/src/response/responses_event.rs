//! The event types of Responses, with their fields in the order of the wire.

use serde::Serialize;

use super::responses_object::{Item, Part, ResponsesResponse};
use super::to_json;
use crate::stream::LogprobEntry;

/// One event of a Responses stream.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct ResponsesStreamEvent(pub(super) Event);

impl ResponsesStreamEvent {
    /// The data of the event as it goes over the wire.
    #[must_use]
    pub fn to_json(&self) -> String {
        to_json(self)
    }

    /// The name of the event.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match &self.0 {
            Event::Created { .. } => "response.created",
            Event::InProgress { .. } => "response.in_progress",
            Event::Completed { .. } => "response.completed",
            Event::Incomplete { .. } => "response.incomplete",
            Event::ItemAdded { .. } => "response.output_item.added",
            Event::ItemDone { .. } => "response.output_item.done",
            Event::PartAdded(_) => "response.content_part.added",
            Event::PartDone(_) => "response.content_part.done",
            Event::ReasoningDelta { .. } => "response.reasoning_text.delta",
            Event::ReasoningDone { .. } => "response.reasoning_text.done",
            Event::TextDelta { .. } => "response.output_text.delta",
            Event::TextDone { .. } => "response.output_text.done",
            Event::ArgumentsDelta(_) => "response.function_call_arguments.delta",
            Event::ArgumentsDone { .. } => "response.function_call_arguments.done",
            Event::InputDelta(_) => "response.custom_tool_call_input.delta",
            Event::InputDone { .. } => "response.custom_tool_call_input.done",
        }
    }
}

/// Events with their numbers; strings are owned because events outlive the stream.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type")]
pub(super) enum Event {
    #[serde(rename = "response.created")]
    Created {
        response: Box<ResponsesResponse>,
        sequence_number: u64,
    },
    #[serde(rename = "response.in_progress")]
    InProgress {
        response: Box<ResponsesResponse>,
        sequence_number: u64,
    },
    #[serde(rename = "response.completed")]
    Completed {
        response: Box<ResponsesResponse>,
        sequence_number: u64,
    },
    #[serde(rename = "response.incomplete")]
    Incomplete {
        response: Box<ResponsesResponse>,
        sequence_number: u64,
    },
    #[serde(rename = "response.output_item.added")]
    ItemAdded {
        item: Item,
        output_index: usize,
        sequence_number: u64,
    },
    #[serde(rename = "response.output_item.done")]
    ItemDone {
        item: Item,
        output_index: usize,
        sequence_number: u64,
    },
    #[serde(rename = "response.content_part.added")]
    PartAdded(PartEvent),
    #[serde(rename = "response.content_part.done")]
    PartDone(PartEvent),
    #[serde(rename = "response.reasoning_text.delta")]
    ReasoningDelta {
        content_index: u32,
        delta: String,
        item_id: String,
        output_index: usize,
        sequence_number: u64,
    },
    #[serde(rename = "response.reasoning_text.done")]
    ReasoningDone {
        content_index: u32,
        item_id: String,
        output_index: usize,
        sequence_number: u64,
        text: String,
    },
    #[serde(rename = "response.output_text.delta")]
    TextDelta {
        content_index: u32,
        delta: String,
        item_id: String,
        logprobs: Vec<LogprobEntry>,
        output_index: usize,
        sequence_number: u64,
    },
    #[serde(rename = "response.output_text.done")]
    TextDone {
        content_index: u32,
        item_id: String,
        logprobs: Vec<LogprobEntry>,
        output_index: usize,
        sequence_number: u64,
        text: String,
    },
    #[serde(rename = "response.function_call_arguments.delta")]
    ArgumentsDelta(CallDelta),
    #[serde(rename = "response.function_call_arguments.done")]
    ArgumentsDone {
        arguments: String,
        item_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        output_index: usize,
        sequence_number: u64,
    },
    #[serde(rename = "response.custom_tool_call_input.delta")]
    InputDelta(CallDelta),
    #[serde(rename = "response.custom_tool_call_input.done")]
    InputDone {
        input: String,
        item_id: String,
        output_index: usize,
        sequence_number: u64,
    },
}

/// A content part that begins or ends.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct PartEvent {
    pub(super) content_index: u32,
    pub(super) item_id: String,
    pub(super) output_index: usize,
    pub(super) part: Part,
    pub(super) sequence_number: u64,
}

/// More of the arguments or the input of a call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct CallDelta {
    pub(super) delta: String,
    pub(super) item_id: String,
    pub(super) output_index: usize,
    pub(super) sequence_number: u64,
}
