//! Chunks of Chat Completions and their form on the wire.
//!
//! A long answer is tens of thousands of chunks, so a chunk holds what is its own and refers to what all of them share.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Serialize;

use super::chat_completions::UsageStyle;
use super::to_json;
use super::usage::ChatUsage;
use crate::stream::{ArgumentFragment, LogprobEntry};

/// What all chunks of one choice share.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ChunkHead {
    pub(super) id: String,
    pub(super) created: i64,
    pub(super) model: String,
    pub(super) system_fingerprint: Option<String>,
    pub(super) usage_style: UsageStyle,
    pub(super) choice_index: u32,
    /// Whether deltas of text carry `reasoning_content` also where it is null.
    pub(super) is_thinking: bool,
}

/// One chunk of a Chat Completions stream.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatCompletionChunk {
    pub(super) head: Arc<ChunkHead>,
    pub(super) body: ChunkBody,
}

/// What one chunk says.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ChunkBody {
    /// The role, with an empty text of the kind that comes first.
    Start { in_reasoning: bool },
    Text {
        is_reasoning: bool,
        text: String,
        logprobs: Vec<LogprobEntry>,
    },
    CallStart {
        index: usize,
        id: String,
        name: String,
    },
    CallArguments {
        index: usize,
        fragment: ArgumentFragment,
    },
    /// The end of the choice, with usage where the style puts it there.
    Finish {
        reason: &'static str,
        usage: Option<Box<ChatUsage>>,
    },
    /// Usage in a chunk without choices.
    Usage(Box<ChatUsage>),
}

impl ChatCompletionChunk {
    /// The chunk as it goes over the wire.
    #[must_use]
    pub fn to_json(&self) -> String {
        let head = &*self.head;
        let choice = WireChoice {
            index: head.choice_index,
            delta: self.delta(),
            logprobs: self.logprobs(),
            finish_reason: match &self.body {
                ChunkBody::Finish { reason, .. } => Some(reason),
                _ => None,
            },
        };
        let (choices, usage) = match &self.body {
            ChunkBody::Usage(usage) => (&[][..], Some(&**usage)),
            ChunkBody::Finish { usage, .. } => (std::slice::from_ref(&choice), usage.as_deref()),
            _ => (std::slice::from_ref(&choice), None),
        };
        let prints_null = matches!(
            head.usage_style,
            UsageStyle::OnFinishWithNulls | UsageStyle::SeparateChunk
        );
        to_json(&WireChunk {
            id: &head.id,
            object: "chat.completion.chunk",
            created: head.created,
            model: &head.model,
            system_fingerprint: head.system_fingerprint.as_deref(),
            choices,
            usage: (prints_null || usage.is_some()).then_some(usage),
        })
    }

    fn delta(&self) -> WireDelta<'_> {
        let text = |content, reasoning: Option<_>| WireDelta {
            content: Some(content),
            reasoning_content: (self.head.is_thinking || reasoning.is_some()).then_some(reasoning),
            ..WireDelta::default()
        };
        match &self.body {
            ChunkBody::Start { in_reasoning } => WireDelta {
                role: Some("assistant"),
                ..if *in_reasoning {
                    text(None, Some(""))
                } else {
                    text(Some(""), None)
                }
            },
            ChunkBody::Text {
                is_reasoning: true,
                text: reasoning,
                ..
            } => text(None, Some(reasoning)),
            ChunkBody::Text { text: content, .. } => text(Some(content), None),
            ChunkBody::CallStart { index, id, name } => WireDelta::call(WireCall {
                index: *index,
                id: Some(id),
                kind: Some("function"),
                function: WireFunction {
                    name: Some(name),
                    arguments: Cow::Borrowed(""),
                },
            }),
            ChunkBody::CallArguments { index, fragment } => WireDelta::call(WireCall {
                index: *index,
                id: None,
                kind: None,
                function: WireFunction {
                    name: None,
                    arguments: Cow::Owned(fragment.to_json()),
                },
            }),
            ChunkBody::Finish { .. } | ChunkBody::Usage(_) => text(Some(""), None),
        }
    }

    fn logprobs(&self) -> Option<WireLogprobs<'_>> {
        match &self.body {
            ChunkBody::Text {
                is_reasoning,
                logprobs,
                ..
            } if !logprobs.is_empty() => Some(if *is_reasoning {
                WireLogprobs {
                    content: &[],
                    reasoning_content: logprobs,
                }
            } else {
                WireLogprobs {
                    content: logprobs,
                    reasoning_content: &[],
                }
            }),
            _ => None,
        }
    }
}

#[expect(clippy::option_option, reason = "absent and null differ on the wire")]
#[derive(Serialize)]
struct WireChunk<'a> {
    id: &'a str,
    object: &'static str,
    created: i64,
    model: &'a str,
    system_fingerprint: Option<&'a str>,
    choices: &'a [WireChoice<'a>],
    /// `Some(None)` prints null.
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Option<&'a ChatUsage>>,
}

#[derive(Serialize)]
struct WireChoice<'a> {
    index: u32,
    delta: WireDelta<'a>,
    logprobs: Option<WireLogprobs<'a>>,
    finish_reason: Option<&'static str>,
}

/// Fields that a delta carries; `Some(None)` prints null.
#[expect(clippy::option_option, reason = "absent and null differ on the wire")]
#[derive(Default, Serialize)]
struct WireDelta<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<Option<&'a str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<Option<&'a str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_calls: Option<[WireCall<'a>; 1]>,
}

impl<'a> WireDelta<'a> {
    fn call(call: WireCall<'a>) -> Self {
        Self {
            tool_calls: Some([call]),
            ..Self::default()
        }
    }
}

#[derive(Serialize)]
struct WireCall<'a> {
    index: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    function: WireFunction<'a>,
}

#[derive(Serialize)]
struct WireFunction<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    arguments: Cow<'a, str>,
}

#[derive(Serialize)]
struct WireLogprobs<'a> {
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    content: &'a [LogprobEntry],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    reasoning_content: &'a [LogprobEntry],
}
