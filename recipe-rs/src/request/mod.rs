//! From a request of one of three protocols to a conversation.

mod chat_completions;
mod chat_messages;
mod content;
mod error_body;
mod extra_sampling;
mod limits;
mod messages;
mod messages_blocks;
mod messages_content;
mod options;
mod reader;
mod reporting;
mod response_format;
mod responses;
mod responses_echo;
mod responses_input;
mod responses_items;
mod responses_tool_listing;
mod responses_tools;
mod schema;
mod thinking;
mod tools;

pub use chat_completions::ChatCompletionRequest;
#[cfg(feature = "python")]
pub(crate) use error_body::ERROR_CODE;
pub use error_body::{anthropic_error_body, openai_error_body};
pub use messages::MessagesRequest;
pub use options::{
    ConversionOptions, GenericModel, ModelVersion, ReasoningContentBehavior, WebSearchBehavior,
};
#[cfg(feature = "python")]
pub(crate) use reader::{check_body, check_size, parse_body};
pub use reporting::{Reporting, ToolKinds};
pub use responses::ResponsesRequest;

use crate::conversation::{Conversation, Message, ResponseFormat, ToolChoice};
use crate::error::Result;
use crate::json::{Map, Value};
use crate::request::limits::{check_max_tokens, default_max_tokens, resolve_sampling};
use crate::request::options::ServedModel;
use crate::request::reader::{Field, refusal};
use crate::request::thinking::Thinking;
use crate::request::tools::ToolSet;
use crate::stream::{OutputFormat, ParsingOptions, ThinkingInitialStage};

/// What a backend may enforce on the output by constrained decoding.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum OutputConstraint {
    /// JSON that fits this schema; any JSON value if the text is empty.
    Json(String),
    /// Text that fits this regular expression.
    Regex(String),
    /// Calls, if any, are of these tools (a compact JSON list).
    ToolCall(String),
    /// At least one call of these tools.
    ToolCallRequired(String),
}

impl OutputConstraint {
    /// Name of the kind.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Json(_) => "json",
            Self::Regex(_) => "regex",
            Self::ToolCall(_) => "tool_call",
            Self::ToolCallRequired(_) => "tool_call_required",
        }
    }

    /// The schema, regular expression or list of tools.
    #[must_use]
    pub fn schema(&self) -> &str {
        match self {
            Self::Json(text)
            | Self::Regex(text)
            | Self::ToolCall(text)
            | Self::ToolCallRequired(text) => text,
        }
    }
}

/// What the backend samples with.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct InferenceOptions {
    /// Most tokens of the output, if the request says so.
    pub max_tokens: Option<u32>,
    /// Resolved temperature.
    pub temperature: Option<f32>,
    /// Resolved `top_p`.
    pub top_p: Option<f32>,
    /// Whether the log probability of each token is wanted.
    pub logprobs: bool,
    /// Alternatives per token.
    pub top_logprobs: Option<u8>,
    /// Seed below 2^63.
    pub seed: Option<u64>,
    /// Constraint on the output.
    pub output_constraint: Option<OutputConstraint>,
}

/// A converted request.
#[derive(Debug, Clone, PartialEq)]
pub struct ConversationRequest {
    /// The conversation.
    pub conversation: Conversation,
    /// What the backend samples with.
    pub inference_options: InferenceOptions,
    /// How the output is read.
    pub parsing_options: ParsingOptions,
    /// The model family.
    pub model_version: ModelVersion,
    /// Whether the answer is streamed.
    pub stream: bool,
    /// Constraint on an answer beside the one on calls; only with compat off and tools present.
    pub response_constraint: Option<OutputConstraint>,
    /// Sampling fields outside the official protocols, as given.
    pub extra_sampling: Map<String, Value>,
    /// Named values for the model's own chat template.
    pub chat_template_kwargs: Map<String, Value>,
    /// Number of answers.
    pub n: u32,
    /// What the request asks of the form of its responses.
    pub reporting: Reporting,
    /// Top-level fields of the request that had no effect.
    pub ignored_fields: Vec<String>,
}

impl ConversationRequest {
    /// A request with default options.
    #[must_use]
    pub fn new(conversation: Conversation, model_version: ModelVersion) -> Self {
        Self {
            conversation,
            inference_options: InferenceOptions::default(),
            parsing_options: ParsingOptions::default(),
            model_version,
            stream: false,
            response_constraint: None,
            extra_sampling: Map::new(),
            chat_template_kwargs: Map::new(),
            n: 1,
            reporting: Reporting::default(),
            ignored_fields: Vec::new(),
        }
    }

    /// Number of tokens to generate after a prompt of `prompt_tokens`.
    ///
    /// What the request asks for is kept; else it is 8192 without thinking, 131072 with the highest
    /// effort, 65536 otherwise, and all that is left for a generic model. The result is within the
    /// context and at least 1.
    ///
    /// # Errors
    /// [`crate::Error::Conversion`] if the prompt, with the requested tokens, exceeds the context.
    pub fn resolve_max_tokens(&self, prompt_tokens: u64, context_limit: u64) -> Result<u32> {
        let default = (self.model_version != ModelVersion::Generic).then(|| {
            default_max_tokens(
                self.conversation.thinking_mode,
                self.conversation.reasoning_effort,
            )
        });
        let requested = self.inference_options.max_tokens;
        limits::resolve_max_tokens(requested, default, prompt_tokens, context_limit)
    }
}

/// Fields that the three protocols share, read from a body.
#[derive(Debug, Clone, Default)]
struct CommonFields {
    temperature: Option<f32>,
    top_p: Option<f32>,
    stream: bool,
    extra_sampling: Map<String, Value>,
    chat_template_kwargs: Map<String, Value>,
    ignored_fields: Vec<String>,
}

impl CommonFields {
    /// Reads the shared fields; `known` are the other fields of the protocol.
    fn read(body: &Field<'_, '_>, known: &[&str]) -> Result<Self> {
        const SHARED: [&str; 5] = [
            "model",
            "temperature",
            "top_p",
            "stream",
            "chat_template_kwargs",
        ];
        let kwargs = body.optional("chat_template_kwargs")?;
        let ignored = body.object()?.keys().filter(|name| {
            let name = name.as_str();
            !SHARED.contains(&name) && !known.contains(&name) && !extra_sampling::is_extra(name)
        });
        Ok(Self {
            temperature: body.optional_float("temperature")?,
            top_p: body.optional_float("top_p")?,
            stream: body.optional_bool("stream")?.unwrap_or(false),
            extra_sampling: extra_sampling::read(body)?,
            chat_template_kwargs: kwargs
                .map_or_else(|| Ok(Map::new()), |kwargs| kwargs.object().cloned())?,
            ignored_fields: ignored.cloned().collect(),
        })
    }
}

/// The protocol of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protocol {
    ChatCompletions,
    Responses,
    Messages,
}

impl Protocol {
    /// Where the reasoning of the message with this index belongs.
    fn reasoning_path(self, index: usize) -> String {
        match self {
            Self::ChatCompletions => format!("messages[{index}].reasoning_content"),
            Self::Responses => format!("input[{index}]: reasoning_text"),
            Self::Messages => format!("messages.{index}.content[].thinking"),
        }
    }
}

/// Everything that a protocol found out about its request.
struct Draft {
    protocol: Protocol,
    model: ServedModel,
    thinking: Thinking,
    messages: Vec<Message>,
    /// Index in the request that each message comes from.
    origins: Vec<usize>,
    has_declared_tools: bool,
    tools: ToolSet,
    response_format: ResponseFormat,
    response_constraint: Option<OutputConstraint>,
    common: CommonFields,
    max_tokens_field: &'static str,
    max_tokens: Option<u64>,
    logprobs: bool,
    top_logprobs: Option<u8>,
    seed: Option<u64>,
    stops: Vec<String>,
    n: u32,
    reporting: Reporting,
}

impl Draft {
    /// Checks the numbers and puts the parts together.
    fn finish(mut self, options: &ConversionOptions) -> Result<ConversationRequest> {
        self.settle_reasoning(options)?;
        let Self {
            model,
            thinking,
            common,
            ..
        } = self;
        limits::check_range("temperature", common.temperature, 0.0, 2.0)?;
        limits::check_top_p(common.top_p)?;
        let bound = options.max_tokens_upper_bound(thinking.enabled);
        let max_tokens = check_max_tokens(self.max_tokens_field, self.max_tokens, bound)?;
        let (temperature, top_p) = resolve_sampling(
            model,
            thinking,
            self.tools.is_active(),
            common.temperature,
            common.top_p,
        );

        let opens_block = self.tools.choice == ToolChoice::Required && !thinking.enabled;
        let starts_in_tool_calls = self.tools.is_active() && opens_block;
        let stage = initial_stage(&self.messages, thinking, model);
        let parsing_options = ParsingOptions {
            parse_tool_calls: self.tools.is_active(),
            starts_in_tool_calls,
            parse_json_output: matches!(self.response_format, ResponseFormat::JsonObject),
            thinking_initial_stage: stage,
            stop_sequences: self.stops,
            special_tokens: options.special_tokens.clone(),
            output_format: model
                .generic
                .map_or(OutputFormat::Dsml, |generic| generic.output_format),
            tool_parameters: self.tools.parameter_names(),
            compat: options.compat,
        };
        let (output_constraint, response_constraint) = match self.tools.constraint() {
            Some(calls) => (
                Some(calls),
                self.response_constraint.filter(|_| !options.compat),
            ),
            None => (self.response_constraint, None),
        };
        Ok(ConversationRequest {
            conversation: Conversation {
                messages: self.messages,
                thinking_mode: thinking.enabled,
                tools: self.tools.tools,
                tool_choice: self.tools.choice,
                reasoning_effort: thinking.effort,
                response_format: self.response_format,
            },
            inference_options: InferenceOptions {
                max_tokens,
                temperature: Some(temperature),
                top_p: Some(top_p),
                logprobs: self.logprobs,
                top_logprobs: self.top_logprobs,
                seed: self.seed,
                output_constraint,
            },
            parsing_options,
            model_version: model.version,
            stream: common.stream,
            response_constraint,
            extra_sampling: common.extra_sampling,
            chat_template_kwargs: common.chat_template_kwargs,
            n: self.n,
            reporting: self.reporting,
            ignored_fields: common.ignored_fields,
        })
    }
}

impl Draft {
    /// Fills in or refuses missing reasoning, and drops it outside thinking mode.
    ///
    /// Only turns after the last user message can be refused: those with calls, and all if the
    /// request declares tools.
    fn settle_reasoning(&mut self, options: &ConversionOptions) -> Result<()> {
        let is_user = |message: &Message| matches!(message, Message::User(_));
        let first_open = self
            .messages
            .iter()
            .rposition(is_user)
            .map_or(0, |last| last + 1);
        let rejects = options.reasoning_content_behavior == ReasoningContentBehavior::Reject;
        for (index, message) in self.messages.iter_mut().enumerate() {
            let Message::Assistant(message) = message else {
                continue;
            };
            if !self.thinking.enabled {
                message.reasoning_content = None;
                continue;
            }
            let is_needed = message.tool_calls.is_some() || self.has_declared_tools;
            if rejects && is_needed && index >= first_open && message.reasoning_content.is_none() {
                let path = self
                    .protocol
                    .reasoning_path(self.origins.get(index).copied().unwrap_or(0));
                return Err(refusal(
                    &path,
                    format!("{path} is missing; in thinking mode it must be passed back"),
                ));
            }
            message.reasoning_content.get_or_insert_default();
        }
        Ok(())
    }
}

/// Where parsing begins: after the reasoning or answer that a prefix message already holds.
fn initial_stage(
    messages: &[Message],
    thinking: Thinking,
    model: ServedModel,
) -> Option<ThinkingInitialStage> {
    if !thinking.enabled || model.version == ModelVersion::Generic {
        return None;
    }
    let Some(Message::Assistant(last)) = messages
        .last()
        .filter(|message| matches!(message, Message::Assistant(assistant) if assistant.prefix))
    else {
        return Some(ThinkingInitialStage::ReasoningStart);
    };
    Some(if !last.content.is_empty() {
        ThinkingInitialStage::ContentContinuation
    } else if last
        .reasoning_content
        .as_deref()
        .unwrap_or_default()
        .is_empty()
    {
        ThinkingInitialStage::ReasoningStart
    } else {
        ThinkingInitialStage::ReasoningContinuation
    })
}
