//! A whole Chat Completions response, built from its chunks.

use serde::Serialize;

use super::chat_chunk::{ChatCompletionChunk, ChunkBody};
use super::to_json;
use super::usage::ChatUsage;
use crate::stream::LogprobEntry;

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
    logprobs: Option<Logprobs>,
    finish_reason: Option<&'static str>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Message {
    role: &'static str,
    content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ToolCall>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct ToolCall {
    index: usize,
    id: String,
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Function {
    name: String,
    arguments: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
struct Logprobs {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    content: Vec<LogprobEntry>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reasoning_content: Vec<LogprobEntry>,
}

impl Message {
    /// The text so far, empty instead of null from now on.
    fn text_mut(&mut self, is_reasoning: bool) -> &mut String {
        let text = if is_reasoning {
            &mut self.reasoning_content
        } else {
            &mut self.content
        };
        text.get_or_insert_default()
    }
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
        if let Some(fingerprint) = &chunk.head.system_fingerprint
            && self.system_fingerprint.as_ref() != Some(fingerprint)
        {
            self.system_fingerprint = Some(fingerprint.clone());
        }
        if let ChunkBody::Usage(usage) = chunk.body {
            self.usage = Some(*usage);
            return;
        }
        let choice = self.choice_mut(chunk.head.choice_index);
        let message = &mut choice.message;
        match chunk.body {
            ChunkBody::Start { in_reasoning } => {
                message.text_mut(in_reasoning);
            }
            ChunkBody::Text {
                is_reasoning,
                text,
                logprobs,
            } => {
                message.text_mut(is_reasoning).push_str(&text);
                if !logprobs.is_empty() {
                    let known = choice.logprobs.get_or_insert_default();
                    if is_reasoning {
                        known.reasoning_content.extend(logprobs);
                    } else {
                        known.content.extend(logprobs);
                    }
                }
            }
            ChunkBody::CallStart { index, id, name } => message.tool_calls.push(ToolCall {
                index,
                id,
                kind: "function",
                function: Function {
                    name,
                    arguments: String::new(),
                },
            }),
            ChunkBody::CallArguments { index, fragment } => {
                let known = message
                    .tool_calls
                    .iter_mut()
                    .rfind(|call| call.index == index);
                if let Some(call) = known {
                    call.function.arguments.push_str(&fragment.to_json());
                }
            }
            ChunkBody::Finish { reason, usage } => {
                message.text_mut(false);
                choice.finish_reason = Some(reason);
                if let Some(usage) = usage {
                    self.usage = Some(*usage);
                }
            }
            ChunkBody::Usage(_) => {}
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
