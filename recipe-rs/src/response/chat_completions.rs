//! The generator of Chat Completions chunks.

use std::sync::Arc;

use super::call_id::CallIds;
use super::chat_chunk::{ChatCompletionChunk, ChunkBody, ChunkHead};
use super::unix_seconds;
use crate::stream::{
    ChunkGenerator, FinishCause, InferenceFinishReason, PromptUsage, StreamEvent, StreamUsage,
    ThinkingInitialStage,
};

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
    head: Arc<ChunkHead>,
    initial_stage: Option<ThinkingInitialStage>,
    call_ids: CallIds,
    num_calls: usize,
}

impl ChatCompletionChunkGenerator {
    /// A generator without thinking that reports usage on the finish chunk.
    #[must_use]
    pub fn new(id: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            head: Arc::new(ChunkHead {
                id: id.into(),
                created: unix_seconds(),
                model: model.into(),
                system_fingerprint: None,
                usage_style: UsageStyle::OnFinish,
                choice_index: 0,
                is_thinking: false,
            }),
            initial_stage: None,
            call_ids: CallIds::default(),
            num_calls: 0,
        }
    }

    /// Sets where a thinking model begins; `None` leaves the reasoning field out.
    #[must_use]
    pub fn with_thinking(mut self, initial_stage: Option<ThinkingInitialStage>) -> Self {
        self.initial_stage = initial_stage;
        self.head_mut().is_thinking = initial_stage.is_some();
        self.call_ids.set_empty_thinking(initial_stage.is_some());
        self
    }

    /// Sets where usage is reported.
    #[must_use]
    pub fn with_usage_style(mut self, usage_style: UsageStyle) -> Self {
        self.head_mut().usage_style = usage_style;
        self
    }

    /// Sets the creation time in seconds since 1970.
    #[must_use]
    pub fn with_created(mut self, created: i64) -> Self {
        self.head_mut().created = created;
        self
    }

    /// Sets the index of the choice.
    #[must_use]
    pub fn with_choice_index(mut self, index: u32) -> Self {
        self.head_mut().choice_index = index;
        self
    }

    /// Sets how call ids are made.
    #[must_use]
    pub fn with_call_ids(mut self, call_ids: CallIds) -> Self {
        self.call_ids = call_ids;
        self.call_ids.set_empty_thinking(self.head.is_thinking);
        self
    }

    fn head_mut(&mut self) -> &mut ChunkHead {
        Arc::make_mut(&mut self.head)
    }

    fn chunk(&self, body: ChunkBody) -> ChatCompletionChunk {
        ChatCompletionChunk {
            head: Arc::clone(&self.head),
            body,
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
        self.head_mut().system_fingerprint = system_fingerprint;
        let in_reasoning = self
            .initial_stage
            .is_some_and(ThinkingInitialStage::starts_in_reasoning);
        chunks.push(self.chunk(ChunkBody::Start { in_reasoning }));
    }

    fn event(&mut self, event: StreamEvent, chunks: &mut Vec<ChatCompletionChunk>) {
        let index = self.num_calls.saturating_sub(1);
        let body = match event {
            StreamEvent::Reasoning { text, logprobs } => {
                self.call_ids.set_empty_thinking(false);
                ChunkBody::Text {
                    is_reasoning: true,
                    text,
                    logprobs,
                }
            }
            StreamEvent::Content { text, logprobs } => ChunkBody::Text {
                is_reasoning: false,
                text,
                logprobs,
            },
            StreamEvent::CallStart { name } => {
                let index = self.num_calls;
                self.num_calls += 1;
                let id = self.call_ids.next_id();
                ChunkBody::CallStart { index, id, name }
            }
            StreamEvent::CallArguments(fragment) => ChunkBody::CallArguments { index, fragment },
        };
        chunks.push(self.chunk(body));
    }

    fn finish(
        &mut self,
        cause: &FinishCause,
        usage: &StreamUsage,
        chunks: &mut Vec<ChatCompletionChunk>,
    ) {
        let style = self.head.usage_style;
        let rides_along = matches!(style, UsageStyle::OnFinish | UsageStyle::OnFinishWithNulls);
        chunks.push(self.chunk(ChunkBody::Finish {
            reason: self.finish_reason(cause),
            usage: rides_along.then(|| Box::new(usage.into())),
        }));
        if style == UsageStyle::SeparateChunk {
            chunks.push(self.chunk(ChunkBody::Usage(Box::new(usage.into()))));
        }
    }
}
