//! What the parser found, before it becomes the chunks of a protocol.

use serde::Serialize;

use super::json_escape::{escape_into, quoted};
use super::{InferenceFinishReason, PromptUsage};

/// Log probability of one token with its text.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LogprobEntry {
    /// Text of the token, or `\x` escapes of its bytes where they are no text.
    pub token: String,
    /// Natural logarithm of its probability.
    pub logprob: f32,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// The most likely tokens at this place.
    pub top_logprobs: Vec<TopLogprob>,
}

/// One of the most likely tokens at a place.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TopLogprob {
    /// Text of the token, or `\x` escapes of its bytes where they are no text.
    pub token: String,
    /// Natural logarithm of its probability.
    pub logprob: f32,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// A piece of the arguments of a call; the pieces of a finished call join to one JSON object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArgumentFragment {
    /// The brace that opens the object.
    OpenObject,
    /// The comma before another member.
    NextMember,
    /// A member name, unescaped.
    Name(String),
    /// A member name that the end of the output cut, unescaped.
    PartialName(String),
    /// The colon after a name.
    Colon,
    /// The quote that opens a string value.
    OpenString,
    /// A piece of a string value, unescaped.
    StringPiece(String),
    /// The quote that closes a string value.
    CloseString,
    /// JSON text to be copied.
    Json(String),
    /// The brace that closes the object.
    CloseObject,
    /// The whole object of a call without parameters.
    EmptyObject,
}

impl ArgumentFragment {
    /// The JSON text of this piece.
    #[must_use]
    pub fn to_json(&self) -> String {
        match self {
            Self::OpenObject => "{".to_owned(),
            Self::NextMember => ", ".to_owned(),
            Self::Name(name) => quoted(name),
            Self::PartialName(name) => {
                let mut out = String::from("\"");
                escape_into(name, &mut out);
                out
            }
            Self::Colon => ": ".to_owned(),
            Self::OpenString | Self::CloseString => "\"".to_owned(),
            Self::StringPiece(text) => {
                let mut out = String::with_capacity(text.len());
                escape_into(text, &mut out);
                out
            }
            Self::Json(text) => text.clone(),
            Self::CloseObject => "}".to_owned(),
            Self::EmptyObject => "{}".to_owned(),
        }
    }
}

/// One thing that the parser found.
#[derive(Debug, Clone, PartialEq)]
pub enum StreamEvent {
    /// More reasoning.
    Reasoning {
        /// The text, never empty.
        text: String,
        /// Log probabilities of its tokens, empty when there are none.
        logprobs: Vec<LogprobEntry>,
    },
    /// More of the answer.
    Content {
        /// The text, never empty.
        text: String,
        /// Log probabilities of its tokens, empty when there are none.
        logprobs: Vec<LogprobEntry>,
    },
    /// A call begins; the arguments that follow belong to it.
    CallStart {
        /// Name of the tool.
        name: String,
    },
    /// More of the arguments of the last call.
    CallArguments(ArgumentFragment),
}

/// Why a stream ended, as far as the parser knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FinishCause {
    /// The backend said so.
    Backend(InferenceFinishReason),
    /// This stop sequence was found in the answer.
    StopSequence(String),
    /// The input ended without a finish chunk.
    EndOfInput,
}

/// Token counts of one stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StreamUsage {
    /// Prompt side.
    pub prompt: PromptUsage,
    /// Tokens of the output.
    pub completion_tokens: u64,
    /// Tokens of the output that were reasoning; `None` when they cannot be counted.
    pub reasoning_tokens: Option<u64>,
}

/// What became of the bytes that went into a stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StreamDiagnostics {
    /// Bytes that came in.
    pub num_input_bytes: u64,
    /// Bytes that stand in reasoning, answer, or the names and arguments of calls.
    pub num_visible_bytes: u64,
    /// Bytes of the markup of delivered calls and of reasoning.
    pub num_markup_bytes: u64,
    /// Bytes that appear nowhere.
    pub num_dropped_bytes: u64,
    /// Control tokens that the model should not have written.
    pub num_dropped_control_tokens: u64,
    /// Places where malformed arguments were mended.
    pub num_repairs: u64,
}
