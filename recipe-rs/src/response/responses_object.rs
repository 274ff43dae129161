//! The response object of Responses: its settings, its items, and building it from events.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::responses_event::{Event, ResponsesStreamEvent};
use super::usage::ResponsesUsage;
use super::{to_json, unix_seconds};
use crate::stream::{LogprobEntry, StreamUsage};

/// Request settings that response objects report, as the request gave them.
#[derive(Debug, Clone, PartialEq)]
pub struct ResponsesEcho {
    /// Instructions of this request.
    pub instructions: Option<String>,
    /// Limit of output tokens.
    pub max_output_tokens: Option<u64>,
    /// Temperature asked for, not the one used.
    pub temperature: f32,
    /// Nucleus probability asked for, not the one used.
    pub top_p: f32,
    /// Number of alternatives per token.
    pub top_logprobs: u64,
    /// Name of the end user.
    pub user: Option<String>,
    /// The `reasoning` object.
    pub reasoning: Value,
    /// The `text` object.
    pub text: Value,
    /// The `tool_choice` value.
    pub tool_choice: Value,
    /// The `tools` list.
    pub tools: Value,
    /// Whether the response can be fetched later.
    pub store: bool,
    /// Whether the response is made in the background.
    pub background: bool,
    /// Whether several calls at once are allowed.
    pub parallel_tool_calls: bool,
    /// The response that this one continues.
    pub previous_response_id: Option<String>,
    /// Pairs that the client attached.
    pub metadata: Map<String, Value>,
}

impl Default for ResponsesEcho {
    fn default() -> Self {
        Self {
            instructions: None,
            max_output_tokens: None,
            temperature: 1.0,
            top_p: 1.0,
            top_logprobs: 0,
            user: None,
            reasoning: json!({"effort": null, "summary": null}),
            text: json!({"format": {"type": "text"}, "verbosity": null}),
            tool_choice: json!("auto"),
            tools: json!([]),
            store: false,
            background: false,
            parallel_tool_calls: true,
            previous_response_id: None,
            metadata: Map::new(),
        }
    }
}

/// One output item.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Item {
    Reasoning {
        id: String,
        status: &'static str,
        content: Vec<Part>,
        summary: [(); 0],
        encrypted_content: String,
    },
    Message {
        id: String,
        status: &'static str,
        role: &'static str,
        phase: &'static str,
        content: Vec<Part>,
    },
    FunctionCall {
        id: String,
        status: &'static str,
        call_id: String,
        name: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        namespace: Option<String>,
        arguments: String,
    },
    CustomToolCall {
        id: String,
        status: &'static str,
        call_id: String,
        name: String,
        input: String,
    },
    ToolSearchCall {
        id: String,
        status: &'static str,
        call_id: String,
        execution: &'static str,
        arguments: Map<String, Value>,
    },
}

/// One content part of an item.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Part {
    ReasoningText {
        text: String,
    },
    OutputText {
        annotations: [(); 0],
        logprobs: Vec<LogprobEntry>,
        text: String,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct IncompleteDetails {
    reason: &'static str,
}

/// A Responses response object.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ResponsesResponse {
    id: String,
    object: &'static str,
    created_at: i64,
    status: &'static str,
    background: bool,
    completed_at: Option<i64>,
    content_filters: Option<()>,
    error: Option<()>,
    frequency_penalty: f64,
    incomplete_details: Option<IncompleteDetails>,
    instructions: Option<String>,
    max_output_tokens: Option<u64>,
    max_tool_calls: Option<u64>,
    model: String,
    moderation: Option<()>,
    output: Vec<Item>,
    parallel_tool_calls: bool,
    presence_penalty: f64,
    previous_response_id: Option<String>,
    prompt_cache_key: Option<String>,
    prompt_cache_retention: Option<String>,
    reasoning: Value,
    safety_identifier: Option<String>,
    service_tier: &'static str,
    store: bool,
    temperature: f32,
    text: Value,
    tool_choice: Value,
    tools: Value,
    top_logprobs: u64,
    top_p: f32,
    truncation: &'static str,
    usage: Option<ResponsesUsage>,
    user: Option<String>,
    metadata: Map<String, Value>,
}

impl ResponsesResponse {
    /// A response without output.
    #[must_use]
    pub fn new(id: impl Into<String>, model: impl Into<String>, created: i64) -> Self {
        Self::from_settings(id.into(), model.into(), created, ResponsesEcho::default())
    }

    /// The same response with the settings of a request.
    pub(super) fn with_settings(self, echo: &ResponsesEcho) -> Self {
        Self::from_settings(self.id, self.model, self.created_at, echo.clone())
    }

    pub(super) fn with_created(mut self, created: i64) -> Self {
        self.created_at = created;
        self
    }

    fn from_settings(id: String, model: String, created: i64, echo: ResponsesEcho) -> Self {
        Self {
            id,
            object: "response",
            created_at: created,
            status: "in_progress",
            background: echo.background,
            completed_at: None,
            content_filters: None,
            error: None,
            frequency_penalty: 0.0,
            incomplete_details: None,
            instructions: echo.instructions,
            max_output_tokens: echo.max_output_tokens,
            max_tool_calls: None,
            model,
            moderation: None,
            output: Vec::new(),
            parallel_tool_calls: echo.parallel_tool_calls,
            presence_penalty: 0.0,
            previous_response_id: echo.previous_response_id,
            prompt_cache_key: None,
            prompt_cache_retention: None,
            reasoning: echo.reasoning,
            safety_identifier: None,
            service_tier: "default",
            store: echo.store,
            temperature: echo.temperature,
            text: echo.text,
            tool_choice: echo.tool_choice,
            tools: echo.tools,
            top_logprobs: echo.top_logprobs,
            top_p: echo.top_p,
            truncation: "disabled",
            usage: None,
            user: echo.user,
            metadata: echo.metadata,
        }
    }

    pub(super) fn finish(
        &mut self,
        output: Vec<Item>,
        usage: &StreamUsage,
        incomplete_reason: Option<&'static str>,
    ) {
        self.output = output;
        self.usage = Some(usage.into());
        if let Some(reason) = incomplete_reason {
            self.status = "incomplete";
            self.incomplete_details = Some(IncompleteDetails { reason });
        } else {
            self.status = "completed";
        }
        self.completed_at = Some(unix_seconds());
    }

    /// Adds one event; the events have to come in order.
    pub fn accumulate(&mut self, event: ResponsesStreamEvent) {
        match event.0 {
            Event::Created { response, .. }
            | Event::InProgress { response, .. }
            | Event::Completed { response, .. }
            | Event::Incomplete { response, .. } => *self = *response,
            Event::ItemDone { item, .. } => self.output.push(item),
            _ => {}
        }
    }

    /// The response as it goes over the wire.
    #[must_use]
    pub fn to_json(&self) -> String {
        to_json(self)
    }
}
