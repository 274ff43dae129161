//! Chunks of Chat Completions.

use serde::Serialize;

use super::call_id::CallIds;
use super::usage::ChatUsage;
use super::{to_json, unix_seconds};
use crate::stream::{
    ChunkGenerator, FinishCause, InferenceFinishReason, LogprobEntry, PromptUsage, StreamEvent,
    StreamUsage, ThinkingInitialStage,
};

/// One chunk of a Chat Completions stream.
#[expect(clippy::option_option, reason = "absent and null differ on the wire")]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChatCompletionChunk {
    id: String,
    object: &'static str,
    created: i64,
    model: String,
    pub(super) system_fingerprint: Option<String>,
    pub(super) choices: Vec<ChunkChoice>,
    /// `Some(None)` prints null.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) usage: Option<Option<ChatUsage>>,
}

impl ChatCompletionChunk {
    /// The chunk as it goes over the wire.
    #[must_use]
    pub fn to_json(&self) -> String {
        to_json(self)
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct ChunkChoice {
    pub(super) index: u32,
    pub(super) delta: Delta,
    pub(super) logprobs: Option<ChoiceLogprobs>,
    pub(super) finish_reason: Option<&'static str>,
}

/// Fields that a delta carries; `Some(None)` prints null.
#[expect(clippy::option_option, reason = "absent and null differ on the wire")]
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(super) struct Delta {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) content: Option<Option<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reasoning_content: Option<Option<String>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) tool_calls: Vec<ToolCallDelta>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct ToolCallDelta {
    pub(super) index: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub(super) kind: Option<&'static str>,
    pub(super) function: FunctionDelta,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct FunctionDelta {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    pub(super) arguments: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(super) struct ChoiceLogprobs {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) content: Vec<LogprobEntry>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) reasoning_content: Vec<LogprobEntry>,
}

/// Where a Chat Completions stream reports its usage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UsageStyle {
    /// On the finish chunk; earlier chunks have no such field.
    OnFinish,
    /// On the finish chunk; earlier chunks carry null.
    OnFinishWithNulls,
    /// On a last chunk without choices; earlier chunks carry null.
    SeparateChunk,
    /// Nowhere.
    Omitted,
}

/// Makes the chunks of one Chat Completions choice.
#[derive(Debug, Clone)]
pub struct ChatCompletionChunkGenerator {
    id: String,
    model: String,
    created: i64,
    system_fingerprint: Option<String>,
    initial_stage: Option<ThinkingInitialStage>,
    usage_style: UsageStyle,
    choice_index: u32,
    call_ids: CallIds,
    num_calls: usize,
}

impl ChatCompletionChunkGenerator {
    /// A generator without thinking that reports usage on the finish chunk.
    #[must_use]
    pub fn new(id: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            model: model.into(),
            created: unix_seconds(),
            system_fingerprint: None,
            initial_stage: None,
            usage_style: UsageStyle::OnFinish,
            choice_index: 0,
            call_ids: CallIds::default(),
            num_calls: 0,
        }
    }

    /// Sets where a thinking model begins; `None` leaves the reasoning field out.
    #[must_use]
    pub fn with_thinking(mut self, initial_stage: Option<ThinkingInitialStage>) -> Self {
        self.initial_stage = initial_stage;
        self.call_ids.set_empty_thinking(initial_stage.is_some());
        self
    }

    /// Sets where usage is reported.
    #[must_use]
    pub fn with_usage_style(mut self, usage_style: UsageStyle) -> Self {
        self.usage_style = usage_style;
        self
    }

    /// Sets the creation time in seconds since 1970.
    #[must_use]
    pub fn with_created(mut self, created: i64) -> Self {
        self.created = created;
        self
    }

    /// Sets the index of the choice.
    #[must_use]
    pub fn with_choice_index(mut self, index: u32) -> Self {
        self.choice_index = index;
        self
    }

    /// Sets how call ids are made.
    #[must_use]
    pub fn with_call_ids(mut self, call_ids: CallIds) -> Self {
        self.call_ids = call_ids;
        self.call_ids.set_empty_thinking(self.is_thinking());
        self
    }

    fn is_thinking(&self) -> bool {
        self.initial_stage.is_some()
    }

    fn chunk(&self, choices: Vec<ChunkChoice>) -> ChatCompletionChunk {
        ChatCompletionChunk {
            id: self.id.clone(),
            object: "chat.completion.chunk",
            created: self.created,
            model: self.model.clone(),
            system_fingerprint: self.system_fingerprint.clone(),
            choices,
            usage: match self.usage_style {
                UsageStyle::OnFinishWithNulls | UsageStyle::SeparateChunk => Some(None),
                UsageStyle::OnFinish | UsageStyle::Omitted => None,
            },
        }
    }

    fn choice(&self, delta: Delta) -> ChunkChoice {
        ChunkChoice {
            index: self.choice_index,
            delta,
            logprobs: None,
            finish_reason: None,
        }
    }

    fn text_delta(&self, content: Option<String>, reasoning: Option<String>) -> Delta {
        Delta {
            content: Some(content),
            reasoning_content: (self.is_thinking() || reasoning.is_some()).then_some(reasoning),
            ..Delta::default()
        }
    }

    fn call_delta(&self, id: Option<String>, name: Option<String>, arguments: String) -> Delta {
        Delta {
            tool_calls: vec![ToolCallDelta {
                index: self.num_calls.saturating_sub(1),
                kind: id.is_some().then_some("function"),
                id,
                function: FunctionDelta { name, arguments },
            }],
            ..Delta::default()
        }
    }

    fn finish_reason(&self, cause: &FinishCause) -> &'static str {
        match cause {
            FinishCause::Backend(InferenceFinishReason::Stop) if self.num_calls > 0 => "tool_calls",
            FinishCause::Backend(InferenceFinishReason::Length) => "length",
            FinishCause::Backend(InferenceFinishReason::ContentFilter) => "content_filter",
            FinishCause::Backend(InferenceFinishReason::Stop)
            | FinishCause::StopSequence(_)
            | FinishCause::EndOfInput => "stop",
        }
    }
}

impl ChunkGenerator for ChatCompletionChunkGenerator {
    type Chunk = ChatCompletionChunk;

    fn start(
        &mut self,
        _prompt: PromptUsage,
        system_fingerprint: Option<String>,
        chunks: &mut Vec<ChatCompletionChunk>,
    ) {
        self.system_fingerprint = system_fingerprint;
        let in_reasoning = self
            .initial_stage
            .is_some_and(ThinkingInitialStage::starts_in_reasoning);
        let mut delta = if in_reasoning {
            self.text_delta(None, Some(String::new()))
        } else {
            self.text_delta(Some(String::new()), None)
        };
        delta.role = Some("assistant");
        chunks.push(self.chunk(vec![self.choice(delta)]));
    }

    fn event(&mut self, event: StreamEvent, chunks: &mut Vec<ChatCompletionChunk>) {
        let mut logprobs = ChoiceLogprobs::default();
        let delta = match event {
            StreamEvent::Reasoning {
                text,
                logprobs: entries,
            } => {
                logprobs.reasoning_content = entries;
                self.call_ids.set_empty_thinking(false);
                self.text_delta(None, Some(text))
            }
            StreamEvent::Content {
                text,
                logprobs: entries,
            } => {
                logprobs.content = entries;
                self.text_delta(Some(text), None)
            }
            StreamEvent::CallStart { name } => {
                self.num_calls += 1;
                let id = self.call_ids.next_id();
                self.call_delta(Some(id), Some(name), String::new())
            }
            StreamEvent::CallArguments(fragment) => self.call_delta(None, None, fragment.to_json()),
        };
        let mut choice = self.choice(delta);
        choice.logprobs = (logprobs != ChoiceLogprobs::default()).then_some(logprobs);
        chunks.push(self.chunk(vec![choice]));
    }

    fn finish(
        &mut self,
        cause: &FinishCause,
        usage: &StreamUsage,
        chunks: &mut Vec<ChatCompletionChunk>,
    ) {
        let mut choice = self.choice(self.text_delta(Some(String::new()), None));
        choice.finish_reason = Some(self.finish_reason(cause));
        let mut last = self.chunk(vec![choice]);
        match self.usage_style {
            UsageStyle::OnFinish | UsageStyle::OnFinishWithNulls => {
                last.usage = Some(Some(usage.into()));
                chunks.push(last);
            }
            UsageStyle::Omitted => chunks.push(last),
            UsageStyle::SeparateChunk => {
                chunks.push(last);
                let mut separate = self.chunk(Vec::new());
                separate.usage = Some(Some(usage.into()));
                chunks.push(separate);
            }
        }
    }
}
