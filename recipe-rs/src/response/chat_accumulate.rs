//! A whole Chat Completions response, built from its chunks.

use serde::Serialize;

use super::chat_completions::{ChatCompletionChunk, ChoiceLogprobs, ToolCallDelta};
use super::to_json;
use super::usage::ChatUsage;

/// A Chat Completions response.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChatCompletionResponse {
    id: String,
    object: &'static str,
    created: i64,
    model: String,
    choices: Vec<Choice>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<ChatUsage>,
    system_fingerprint: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Choice {
    index: u32,
    message: Message,
    logprobs: Option<ChoiceLogprobs>,
    finish_reason: Option<&'static str>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Message {
    role: &'static str,
    content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ToolCallDelta>,
}

impl ChatCompletionResponse {
    /// An empty response.
    #[must_use]
    pub fn new(id: impl Into<String>, model: impl Into<String>, created: i64) -> Self {
        Self {
            id: id.into(),
            object: "chat.completion",
            created,
            model: model.into(),
            choices: Vec::new(),
            usage: None,
            system_fingerprint: None,
        }
    }

    /// Adds one chunk; the chunks of one choice have to come in order.
    pub fn accumulate(&mut self, chunk: ChatCompletionChunk) {
        if chunk.system_fingerprint.is_some() {
            self.system_fingerprint = chunk.system_fingerprint;
        }
        if let Some(Some(usage)) = chunk.usage {
            self.usage = Some(usage);
        }
        for part in chunk.choices {
            let choice = self.choice_mut(part.index);
            let message = &mut choice.message;
            if let Some(role) = part.delta.role {
                message.role = role;
            }
            append(&mut message.content, part.delta.content);
            append(&mut message.reasoning_content, part.delta.reasoning_content);
            for call in part.delta.tool_calls {
                match message
                    .tool_calls
                    .iter_mut()
                    .find(|known| known.index == call.index)
                {
                    Some(known) => known.function.arguments.push_str(&call.function.arguments),
                    None => message.tool_calls.push(call),
                }
            }
            if let Some(logprobs) = part.logprobs {
                let known = choice.logprobs.get_or_insert_default();
                known.content.extend(logprobs.content);
                known.reasoning_content.extend(logprobs.reasoning_content);
            }
            choice.finish_reason = part.finish_reason.or(choice.finish_reason);
        }
    }

    /// The response as it goes over the wire.
    #[must_use]
    pub fn to_json(&self) -> String {
        to_json(self)
    }

    fn choice_mut(&mut self, index: u32) -> &mut Choice {
        let place = match self.choices.iter().position(|choice| choice.index >= index) {
            Some(place) if self.choices[place].index == index => place,
            place => {
                let place = place.unwrap_or(self.choices.len());
                self.choices.insert(
                    place,
                    Choice {
                        index,
                        message: Message {
                            role: "assistant",
                            content: None,
                            reasoning_content: None,
                            tool_calls: Vec::new(),
                        },
                        logprobs: None,
                        finish_reason: None,
                    },
                );
                place
            }
        };
        &mut self.choices[place]
    }
}

#[expect(
    clippy::option_option,
    reason = "absent, null and text differ on the wire"
)]
fn append(text: &mut Option<String>, delta: Option<Option<String>>) {
    if let Some(Some(delta)) = delta {
        text.get_or_insert_default().push_str(&delta);
    }
}
