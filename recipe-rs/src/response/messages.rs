//! Events of Messages.

use serde::Serialize;
use serde_json::{Map, Value};

use super::call_id::CallIds;
use super::to_json;
use super::usage::MessagesUsage;
use crate::stream::{
    ChunkGenerator, FinishCause, InferenceFinishReason, PromptUsage, StreamEvent, StreamUsage,
};

/// One event of a Messages stream.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct MessagesStreamEvent(pub(super) Event);

impl MessagesStreamEvent {
    /// The data of the event as it goes over the wire.
    #[must_use]
    pub fn to_json(&self) -> String {
        to_json(self)
    }

    /// The name of the event.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match &self.0 {
            Event::MessageStart { .. } => "message_start",
            Event::ContentBlockStart { .. } => "content_block_start",
            Event::Ping => "ping",
            Event::ContentBlockDelta { .. } => "content_block_delta",
            Event::ContentBlockStop { .. } => "content_block_stop",
            Event::MessageDelta { .. } => "message_delta",
            Event::MessageStop => "message_stop",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Event {
    MessageStart {
        message: Message,
    },
    ContentBlockStart {
        index: usize,
        content_block: Block,
    },
    Ping,
    ContentBlockDelta {
        index: usize,
        delta: Delta,
    },
    ContentBlockStop {
        index: usize,
    },
    MessageDelta {
        delta: StopDelta,
        usage: MessagesUsage,
    },
    MessageStop,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Message {
    pub(super) id: String,
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    pub(super) role: &'static str,
    pub(super) model: String,
    pub(super) content: Vec<Block>,
    pub(super) stop_reason: Option<&'static str>,
    pub(super) stop_sequence: Option<String>,
    pub(super) usage: MessagesUsage,
}

impl Message {
    pub(super) fn new(id: &str, model: &str, prompt: PromptUsage) -> Self {
        Self {
            id: id.to_owned(),
            kind: "message",
            role: "assistant",
            model: model.to_owned(),
            content: Vec::new(),
            stop_reason: None,
            stop_sequence: None,
            usage: MessagesUsage::new(prompt, 0),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Block {
    Thinking {
        thinking: String,
        signature: String,
    },
    Text {
        text: String,
    },
    ToolUse {
        id: String,
        name: String,
        input: Map<String, Value>,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(clippy::enum_variant_names, reason = "the names of the protocol")]
pub(super) enum Delta {
    ThinkingDelta { thinking: String },
    SignatureDelta { signature: String },
    TextDelta { text: String },
    InputJsonDelta { partial_json: String },
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct StopDelta {
    pub(super) stop_reason: &'static str,
    pub(super) stop_sequence: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpenBlock {
    Thinking,
    Text,
    ToolUse,
}

/// Makes the events of one Messages response.
#[derive(Debug, Clone)]
pub struct MessagesChunkGenerator {
    id: String,
    model: String,
    is_thinking: bool,
    signature: String,
    call_ids: CallIds,
    open: Option<OpenBlock>,
    num_blocks: usize,
    has_calls: bool,
}

impl MessagesChunkGenerator {
    /// A generator whose thinking blocks are signed with the response id.
    #[must_use]
    pub fn new(id: impl Into<String>, model: impl Into<String>, thinking_mode: bool) -> Self {
        let id = id.into();
        Self {
            signature: id.clone(),
            id,
            model: model.into(),
            is_thinking: thinking_mode,
            call_ids: CallIds::default(),
            open: None,
            num_blocks: 0,
            has_calls: false,
        }
        .with_call_ids(CallIds::default())
    }

    /// Sets the signature at the end of each thinking block.
    #[must_use]
    pub fn with_signature(mut self, signature: impl Into<String>) -> Self {
        self.signature = signature.into();
        self
    }

    /// Sets how call ids are made.
    #[must_use]
    pub fn with_call_ids(mut self, call_ids: CallIds) -> Self {
        self.call_ids = call_ids;
        self.call_ids.set_empty_thinking(self.is_thinking);
        self
    }

    fn delta(&self, delta: Delta) -> MessagesStreamEvent {
        MessagesStreamEvent(Event::ContentBlockDelta {
            index: self.num_blocks.saturating_sub(1),
            delta,
        })
    }

    fn close_block(&mut self, chunks: &mut Vec<MessagesStreamEvent>) {
        let Some(open) = self.open.take() else { return };
        if open == OpenBlock::Thinking {
            chunks.push(self.delta(Delta::SignatureDelta {
                signature: self.signature.clone(),
            }));
        }
        chunks.push(MessagesStreamEvent(Event::ContentBlockStop {
            index: self.num_blocks.saturating_sub(1),
        }));
    }

    fn open_block(&mut self, open: OpenBlock, block: Block, chunks: &mut Vec<MessagesStreamEvent>) {
        self.close_block(chunks);
        chunks.push(MessagesStreamEvent(Event::ContentBlockStart {
            index: self.num_blocks,
            content_block: block,
        }));
        if self.num_blocks == 0 {
            chunks.push(MessagesStreamEvent(Event::Ping));
        }
        self.open = Some(open);
        self.num_blocks += 1;
    }

    fn open_thinking(&mut self, chunks: &mut Vec<MessagesStreamEvent>) {
        let block = Block::Thinking {
            thinking: String::new(),
            signature: String::new(),
        };
        self.open_block(OpenBlock::Thinking, block, chunks);
    }

    fn stop_reason(&self, cause: &FinishCause) -> &'static str {
        match cause {
            FinishCause::Backend(InferenceFinishReason::Stop) if self.has_calls => "tool_use",
            FinishCause::Backend(InferenceFinishReason::Length) => "max_tokens",
            FinishCause::Backend(InferenceFinishReason::ContentFilter) => "refusal",
            FinishCause::StopSequence(_) => "stop_sequence",
            FinishCause::Backend(InferenceFinishReason::Stop) | FinishCause::EndOfInput => {
                "end_turn"
            }
        }
    }
}

impl ChunkGenerator for MessagesChunkGenerator {
    type Chunk = MessagesStreamEvent;

    fn start(
        &mut self,
        prompt: PromptUsage,
        _system_fingerprint: Option<String>,
        chunks: &mut Vec<MessagesStreamEvent>,
    ) {
        chunks.push(MessagesStreamEvent(Event::MessageStart {
            message: Message::new(&self.id, &self.model, prompt),
        }));
        if self.is_thinking {
            self.open_thinking(chunks);
        }
    }

    fn event(&mut self, event: StreamEvent, chunks: &mut Vec<MessagesStreamEvent>) {
        let delta = match event {
            StreamEvent::Reasoning { text, .. } => {
                self.call_ids.set_empty_thinking(false);
                if self.open != Some(OpenBlock::Thinking) {
                    self.open_thinking(chunks);
                }
                Delta::ThinkingDelta { thinking: text }
            }
            StreamEvent::Content { text, .. } => {
                if self.open != Some(OpenBlock::Text) {
                    let block = Block::Text {
                        text: String::new(),
                    };
                    self.open_block(OpenBlock::Text, block, chunks);
                }
                Delta::TextDelta { text }
            }
            StreamEvent::CallStart { name } => {
                self.has_calls = true;
                let block = Block::ToolUse {
                    id: self.call_ids.next_id(),
                    name,
                    input: Map::new(),
                };
                self.open_block(OpenBlock::ToolUse, block, chunks);
                return;
            }
            StreamEvent::CallArguments(fragment) => Delta::InputJsonDelta {
                partial_json: fragment.to_json(),
            },
        };
        chunks.push(self.delta(delta));
    }

    fn finish(
        &mut self,
        cause: &FinishCause,
        usage: &StreamUsage,
        chunks: &mut Vec<MessagesStreamEvent>,
    ) {
        self.close_block(chunks);
        chunks.push(MessagesStreamEvent(Event::MessageDelta {
            delta: StopDelta {
                stop_reason: self.stop_reason(cause),
                stop_sequence: match cause {
                    FinishCause::StopSequence(stop) => Some(stop.clone()),
                    _ => None,
                },
            },
            usage: MessagesUsage::new(usage.prompt, usage.completion_tokens),
        }));
        chunks.push(MessagesStreamEvent(Event::MessageStop));
    }
}
