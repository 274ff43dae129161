//! A whole Messages response, built from its events.

use super::messages::{Block, Delta, Event, Message, MessagesStreamEvent};
use super::to_json;
use super::tool_input::object_of;
use crate::stream::PromptUsage;

/// A Messages response.
#[derive(Debug, Clone, PartialEq)]
pub struct MessagesResponse {
    message: Message,
    /// JSON text of the tool input that is being received.
    input_json: String,
}

impl MessagesResponse {
    /// An empty response.
    #[must_use]
    pub fn new(id: &str, model: &str, prompt: PromptUsage) -> Self {
        Self {
            message: Message::new(id, model, prompt),
            input_json: String::new(),
        }
    }

    /// Adds one event; the events have to come in order.
    pub fn accumulate(&mut self, event: MessagesStreamEvent) {
        match event.0 {
            Event::MessageStart { message } => self.message = message,
            Event::ContentBlockStart { content_block, .. } => {
                self.input_json.clear();
                self.message.content.push(content_block);
            }
            Event::ContentBlockDelta { delta, .. } => self.add(delta),
            Event::ContentBlockStop { .. } => {
                // A cut input is no object: it stays empty, and the stop reason says why.
                if let Some(Block::ToolUse { input, .. }) = self.message.content.last_mut() {
                    *input = object_of(&self.input_json);
                }
            }
            Event::MessageDelta { delta, usage } => {
                self.message.stop_reason = Some(delta.stop_reason);
                self.message.stop_sequence = delta.stop_sequence;
                self.message.usage = usage;
            }
            Event::Ping | Event::MessageStop => {}
        }
    }

    /// The response as it goes over the wire.
    #[must_use]
    pub fn to_json(&self) -> String {
        to_json(&self.message)
    }

    fn add(&mut self, delta: Delta) {
        match (delta, self.message.content.last_mut()) {
            (Delta::ThinkingDelta { thinking: more }, Some(Block::Thinking { thinking, .. })) => {
                thinking.push_str(&more);
            }
            (
                Delta::SignatureDelta { signature: more },
                Some(Block::Thinking { signature, .. }),
            ) => {
                signature.push_str(&more);
            }
            (Delta::TextDelta { text: more }, Some(Block::Text { text })) => text.push_str(&more),
            (Delta::InputJsonDelta { partial_json }, Some(Block::ToolUse { .. })) => {
                self.input_json.push_str(&partial_json);
            }
            _ => {}
        }
    }
}
