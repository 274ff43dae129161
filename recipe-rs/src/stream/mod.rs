//! From a model's output, as text or token ids, to protocol events.

mod buffer;
mod chunk;
mod delimiter;
mod detokenize;
mod dsml;
mod dsml_parameter;
mod event;
mod formats;
mod grammar;
mod json_escape;
mod json_scan;
mod options;
mod processor;
mod repair;
mod states;
mod utf8;
mod vocabulary;

pub use chunk::{InferenceChunk, InferenceFinishReason, PromptUsage, TokenLogprob};
pub use detokenize::{TokenBytes, TokenForm};
pub use event::{
    ArgumentFragment, FinishCause, LogprobEntry, StreamDiagnostics, StreamEvent, StreamUsage,
    TopLogprob,
};
pub(crate) use json_scan::{JsonShape, shape_of};
pub use options::{OutputFormat, ParsingOptions, ThinkingInitialStage};
pub use processor::{ChunkGenerator, StreamProcessor};
pub(crate) use repair::UNREADABLE_PARAMETER;
pub use vocabulary::StreamVocabulary;
