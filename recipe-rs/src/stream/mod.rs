//! From a model's output, as text or token ids, to protocol events.

mod chunk;
mod options;

pub use chunk::{InferenceChunk, InferenceFinishReason, PromptUsage, TokenLogprob};
pub use options::{OutputFormat, ParsingOptions, ThinkingInitialStage};
