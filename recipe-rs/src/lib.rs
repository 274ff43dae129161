//! Codec between chat requests, prompts, token ids and protocol events.
//!
//! Requests of three protocols become one conversation, a conversation becomes a prompt whose
//! special tokens stand only where the template put them, a prompt becomes token ids, and the
//! model's output stream becomes protocol events.

mod error;
mod special_tokens;
mod stream;

pub use error::{Error, Result};
pub use special_tokens::{IMAGE_SPECIAL_TOKEN_ID, SYSTEM_PLACEHOLDER, SpecialToken, SpecialTokens};
pub use stream::{
    InferenceChunk, InferenceFinishReason, OutputFormat, ParsingOptions, PromptUsage,
    ThinkingInitialStage, TokenLogprob,
};
