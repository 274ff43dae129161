//! The item of a Responses stream that is being received.

use super::custom_input::CustomInput;
use super::responses_object::{Item, Part};
use super::tool_input::object_of;
use crate::carried_reasoning;
use crate::stream::LogprobEntry;

/// The item that is being received.
#[derive(Debug, Clone)]
pub(super) enum OpenItem {
    Reasoning(String),
    Message {
        text: String,
        logprobs: Vec<LogprobEntry>,
    },
    Function {
        call: Call,
        namespace: Option<String>,
    },
    Custom {
        call: Call,
        decoder: CustomInput,
    },
    ToolSearch {
        call: Call,
    },
}

#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) id: String,
    pub(super) name: String,
    /// Arguments, or the raw input of a custom call.
    pub(super) text: String,
}

/// Where an item stands in its life.
#[derive(Debug, Clone, Copy)]
pub(super) struct Report<'a> {
    /// Id of the response and index of the item in it.
    pub(super) response_id: &'a str,
    pub(super) output_index: usize,
    pub(super) status: &'static str,
    pub(super) phase: &'static str,
    /// Whether the item was just added, so that it has no content yet.
    pub(super) is_added: bool,
    /// Whether reasoning is packed for the client to send back.
    pub(super) carries_reasoning: bool,
}

impl OpenItem {
    pub(super) fn is_call(&self) -> bool {
        !matches!(self, Self::Reasoning(_) | Self::Message { .. })
    }

    /// The id of this item.
    pub(super) fn id(&self, response_id: &str, output_index: usize) -> String {
        let kind = match self {
            Self::Reasoning(_) => "rs",
            Self::Message { .. } => "msg",
            Self::Function { .. } => "fc",
            Self::Custom { .. } => "ctc",
            Self::ToolSearch { .. } => "tsc",
        };
        format!("{kind}_{response_id}_{output_index}")
    }

    /// The item as it is reported.
    pub(super) fn report(&self, report: Report<'_>) -> Item {
        let id = self.id(report.response_id, report.output_index);
        let status = report.status;
        let part = if report.is_added {
            None
        } else {
            self.part(false)
        };
        let content = part.into_iter().collect();
        match self {
            Self::Reasoning(text) => Item::Reasoning {
                id,
                status,
                content,
                summary: [],
                encrypted_content: match (report.carries_reasoning, report.is_added) {
                    (true, true) => String::new(),
                    (true, false) => carried_reasoning::pack(text),
                    (false, _) => format!("{}-{}", report.response_id, report.output_index),
                },
            },
            Self::Message { .. } => Item::Message {
                id,
                status,
                role: "assistant",
                phase: report.phase,
                content,
            },
            Self::Function { call, namespace } => Item::FunctionCall {
                id,
                status,
                call_id: call.id.clone(),
                name: call.name.clone(),
                namespace: namespace.clone(),
                arguments: call.text.clone(),
            },
            Self::Custom { call, .. } => Item::CustomToolCall {
                id,
                status,
                call_id: call.id.clone(),
                name: call.name.clone(),
                input: call.text.clone(),
            },
            Self::ToolSearch { call } => Item::ToolSearchCall {
                id,
                status,
                call_id: call.id.clone(),
                execution: "client",
                arguments: object_of(&call.text),
            },
        }
    }

    /// The content part of reasoning and messages; without text when it was just added.
    pub(super) fn part(&self, is_added: bool) -> Option<Part> {
        let shown = |text: &String| {
            if is_added {
                String::new()
            } else {
                text.clone()
            }
        };
        match self {
            Self::Reasoning(text) => Some(Part::ReasoningText { text: shown(text) }),
            Self::Message { text, logprobs } => Some(Part::OutputText {
                annotations: [],
                logprobs: if is_added {
                    Vec::new()
                } else {
                    logprobs.clone()
                },
                text: shown(text),
            }),
            Self::Function { .. } | Self::Custom { .. } | Self::ToolSearch { .. } => None,
        }
    }
}
