//! Codec between chat requests, prompts, token ids and protocol events.
//!
//! Requests of three protocols become one conversation, a conversation becomes a prompt whose
//! special tokens stand only where the template put them, a prompt becomes token ids, and the
//! model's output stream becomes protocol events.

mod carried_reasoning;
mod conversation;
mod error;
#[cfg(feature = "image")]
mod image;
pub mod json;
#[cfg(feature = "python")]
mod python;
mod render;
mod request;
mod response;
mod special_tokens;
mod stream;
mod text_stream;
mod tokenizer;
mod wire_constants;

pub use conversation::{
    AssistantMessage, Content, Conversation, ImageData, ImageDetail, ImageSource, Message,
    ReasoningEffort, ResponseFormat, SystemMessage, ToolCall, ToolChoice, ToolDefinition,
    ToolMessage,
};
pub use error::{Error, ImageErrorKind, Result};
#[cfg(feature = "fetch")]
pub use image::{DestinationFilter, HttpImageFetcher};
#[cfg(feature = "image")]
pub use image::{
    ImageFetcher, ImageInfo, ImageLimits, ImagePreprocessor, ImageQuota, ImageResolver, ImageSize,
    MultiModalData, PreprocessOptions, is_public_address,
};
pub use render::{
    ChatTemplateEncoding, ChatTemplateInput, DeepseekV4Renderer, DeepseekV41Renderer,
    RenderedPrompt,
};
pub use request::{
    ChatCompletionRequest, ConversationRequest, ConversionOptions, GenericModel, InferenceOptions,
    MessagesRequest, ModelVersion, OutputConstraint, ReasoningContentBehavior, Reporting,
    ResponsesRequest, ToolKinds, WebSearchBehavior, anthropic_error_body, openai_error_body,
};
pub use response::{
    CallIds, ChatCompletionChunk, ChatCompletionChunkGenerator, ChatCompletionResponse,
    MessagesChunkGenerator, MessagesResponse, MessagesStreamEvent, ResponsesChunkGenerator,
    ResponsesEcho, ResponsesResponse, ResponsesStreamEvent, UsageStyle,
};
pub use special_tokens::{IMAGE_SPECIAL_TOKEN_ID, SYSTEM_PLACEHOLDER, SpecialToken, SpecialTokens};
pub use stream::{
    ArgumentFragment, ChunkGenerator, FinishCause, InferenceChunk, InferenceFinishReason,
    LogprobEntry, OutputFormat, ParsingOptions, PromptUsage, StreamDiagnostics, StreamEvent,
    StreamProcessor, StreamUsage, StreamVocabulary, ThinkingInitialStage, TokenBytes, TokenForm,
    TokenLogprob, TopLogprob,
};
pub use text_stream::{
    StopMatch, StopMatcher, StreamDecoder, TextDelta, TextStream, TextStreamOptions,
};
pub use tokenizer::{AddedToken, GgufVocabulary, GrowingPrompt, Tokenizer};
