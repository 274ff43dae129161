//! Requests of the Chat Completions protocol.

use crate::error::Result;
use crate::json::Value;
use crate::request::chat_messages::{self, ChatMessage};
use crate::request::content::ImagePolicy;
use crate::request::limits::{check_stops, check_top_logprobs, read_stops};
use crate::request::options::ConversionOptions;
use crate::request::reader::{Field, parse_body, refusal};
use crate::request::reporting::Reporting;
use crate::request::response_format::RequestedFormat;
use crate::request::thinking::ThinkingRequest;
use crate::request::tools::{self, RequestedChoice, RequestedTool};
use crate::request::{CommonFields, ConversationRequest, Draft, Protocol};
use crate::response::{ChatCompletionChunkGenerator, UsageStyle};
use crate::stream::ThinkingInitialStage;

/// Fields of the protocol besides the shared ones.
const KNOWN_FIELDS: [&str; 16] = [
    "messages",
    "logprobs",
    "top_logprobs",
    "max_tokens",
    "max_completion_tokens",
    "n",
    "response_format",
    "seed",
    "stop",
    "stream_options",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "thinking",
    "reasoning_effort",
    "frequency_penalty",
];

/// A Chat Completions request, read but not yet converted.
///
/// ```
/// use recipe_rs::{ChatCompletionRequest, ConversionOptions};
///
/// let body = br#"{"model": "DeepSeek-V4.1-Flash", "messages": [{"role": "user", "content": "Hi"}]}"#;
/// let request = ChatCompletionRequest::from_json(body)?.convert(&ConversionOptions::default())?;
/// assert!(request.conversation.thinking_mode);
/// # Ok::<(), recipe_rs::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct ChatCompletionRequest {
    model: String,
    messages: Vec<ChatMessage>,
    tools: Vec<RequestedTool>,
    choice: RequestedChoice,
    format: Option<RequestedFormat>,
    thinking: ThinkingRequest,
    common: CommonFields,
    max_tokens: Option<u64>,
    max_completion_tokens: Option<u64>,
    logprobs: bool,
    top_logprobs: Option<u64>,
    seed: Option<u64>,
    stops: Vec<String>,
    n: u64,
    has_stream_options: bool,
    reports_usage: bool,
}

impl ChatCompletionRequest {
    /// Reads the bytes of a body.
    ///
    /// # Errors
    /// [`crate::Error::Conversion`] that names the field.
    pub fn from_json(body: &[u8]) -> Result<Self> {
        Self::from_value(&parse_body(body)?)
    }

    /// Reads a body that is parsed already.
    ///
    /// # Errors
    /// [`crate::Error::Conversion`] that names the field.
    pub fn from_value(body: &Value) -> Result<Self> {
        let body = Field::root(body);
        let model = body.required("model")?.string()?.to_owned();
        let messages = body
            .required("messages")?
            .items()?
            .map(|item| chat_messages::read(&item))
            .collect::<Result<_>>()?;
        let mut thinking = ThinkingRequest::default();
        thinking.read_type(&body)?;
        thinking.read_effort(&body, "reasoning_effort")?;
        body.optional_bool("parallel_tool_calls")?;
        let stream_options = body.optional("stream_options")?;
        let reports_usage = match &stream_options {
            Some(stream_options) => stream_options.optional_bool("include_usage")?,
            None => None,
        };
        Ok(Self {
            model,
            messages,
            tools: read_tools(&body)?,
            choice: read_choice(&body)?,
            format: read_format(&body)?,
            thinking,
            max_tokens: body.optional_unsigned("max_tokens", u64::from(u32::MAX))?,
            max_completion_tokens: body
                .optional_unsigned("max_completion_tokens", u64::from(u32::MAX))?,
            logprobs: body.optional_bool("logprobs")?.unwrap_or(false),
            top_logprobs: body.optional_unsigned("top_logprobs", u64::from(u8::MAX))?,
            seed: body.optional_unsigned("seed", u64::MAX)?,
            stops: read_stops(&body, "stop", true)?,
            n: body
                .optional_unsigned("n", u64::from(u8::MAX))?
                .unwrap_or(1),
            has_stream_options: stream_options.is_some(),
            reports_usage: reports_usage.unwrap_or(false),
            common: CommonFields::read(&body, &KNOWN_FIELDS)?,
        })
    }

    /// The model name of the request.
    #[must_use]
    pub fn model(&self) -> &str {
        &self.model
    }

    /// A generator of the chunks of the first choice of one response to a converted request.
    ///
    /// Usage is reported as the official codec does; without compat, a stream reports it as the protocol
    /// says: where it was asked for, in a last chunk of its own.
    #[must_use]
    pub fn chunk_generator(
        request: &ConversationRequest,
        id: impl Into<String>,
        model: impl Into<String>,
    ) -> ChatCompletionChunkGenerator {
        let options = &request.parsing_options;
        let thinks = request.conversation.thinking_mode;
        let stage = options
            .thinking_initial_stage
            .or(thinks.then_some(ThinkingInitialStage::ContentContinuation));
        let usage_style = match (request.stream, request.reporting.usage, options.compat) {
            (false, ..) | (true, true, true) => UsageStyle::OnFinishWithNulls,
            (true, false, true) => UsageStyle::OnFinish,
            (true, true, false) => UsageStyle::SeparateChunk,
            (true, false, false) => UsageStyle::Omitted,
        };
        ChatCompletionChunkGenerator::new(id, model)
            .with_thinking(stage)
            .with_usage_style(usage_style)
    }

    /// Converts the request.
    ///
    /// # Errors
    /// [`crate::Error::Conversion`] that names the field.
    pub fn convert(self, options: &ConversionOptions) -> Result<ConversationRequest> {
        let compat = options.compat;
        let model = options.served_model(&self.model)?;
        let thinking = self.thinking.resolve(options, model)?;
        if self.messages.is_empty() {
            return Err(refusal(
                "messages",
                "messages: the list is empty; send at least one message",
            ));
        }
        self.check_plain_fields(compat)?;
        if compat
            && self.format == Some(RequestedFormat::JsonObject)
            && !chat_messages::mention_json(&self.messages)
        {
            return Err(refusal(
                "response_format",
                "response_format: json_object needs the word \"json\" in the content of a message",
            ));
        }
        let has_tools = !self.tools.is_empty();
        chat_messages::check_prefix(&self.messages, has_tools)?;
        if compat && self.format == Some(RequestedFormat::JsonObject) {
            chat_messages::check_no_prefix(&self.messages, "response_format")?;
        }
        let definitions = tools::definitions(self.tools, &self.choice, compat)?;
        let tools = tools::choose(definitions, self.choice, thinking.enabled, compat)?;
        let (response_format, response_constraint) =
            RequestedFormat::resolve(self.format, "response_format", &tools.tools, compat)?;
        chat_messages::check_calls(&self.messages)?;
        let images = ImagePolicy::of(model);
        let (messages, origins) = chat_messages::convert(self.messages, images, options)?;
        let replaced = self.max_completion_tokens.filter(|_| !compat);
        Draft {
            protocol: Protocol::ChatCompletions,
            model,
            thinking,
            messages,
            origins,
            has_declared_tools: has_tools,
            tools,
            response_format,
            response_constraint,
            max_tokens_field: if replaced.is_some() {
                "max_completion_tokens"
            } else {
                "max_tokens"
            },
            max_tokens: replaced.or(self.max_tokens),
            logprobs: self.logprobs,
            top_logprobs: check_top_logprobs(self.top_logprobs)?,
            seed: self.seed,
            stops: self.stops,
            n: self.n as u32,
            reporting: Reporting {
                usage: self.reports_usage,
                ..Reporting::default()
            },
            common: self.common,
        }
        .finish(options)
    }

    fn check_plain_fields(&self, compat: bool) -> Result<()> {
        if self.n == 0 || (compat && self.n != 1) {
            let accepted = if compat { "1" } else { "1 or more" };
            return Err(refusal(
                "n",
                format!("n: {} answers are not possible; use {accepted}", self.n),
            ));
        }
        if self.seed.is_some_and(|seed| seed > i64::MAX as u64) {
            return Err(refusal(
                "seed",
                "seed: use an integer from 0 to 9223372036854775807",
            ));
        }
        if self.top_logprobs.is_some() && !self.logprobs {
            return Err(refusal(
                "top_logprobs",
                "top_logprobs: needs logprobs set to true",
            ));
        }
        if self.has_stream_options && !self.common.stream {
            return Err(refusal(
                "stream_options",
                "stream_options: needs stream set to true",
            ));
        }
        check_stops("stop", &self.stops)
    }
}

fn read_tools(body: &Field<'_, '_>) -> Result<Vec<RequestedTool>> {
    let Some(tools) = body.optional("tools")? else {
        return Ok(Vec::new());
    };
    tools
        .items()?
        .map(|tool| {
            tool.required("type")?.choice(&[("function", ())])?;
            let function = tool.required("function")?;
            Ok(RequestedTool {
                name: function.required("name")?.string()?.to_owned(),
                description: function.optional_string("description")?.map(str::to_owned),
                parameters: function
                    .optional("parameters")?
                    .map(|parameters| parameters.value.clone()),
                strict: function.optional_bool("strict")?,
                defer_loading: false,
                name_path: format!("{}.function.name", tool.path()),
                parameters_path: format!("{}.function.parameters", tool.path()),
            })
        })
        .collect()
}

fn read_choice(body: &Field<'_, '_>) -> Result<RequestedChoice> {
    let Some(choice) = body.optional("tool_choice")? else {
        return Ok(RequestedChoice::Auto);
    };
    if choice.value.is_object() {
        let is_named = choice
            .required("type")?
            .choice(&[("function", true), ("allowed_tools", false)])?;
        if is_named {
            let name = choice
                .required("function")?
                .required("name")?
                .string()?
                .to_owned();
            return Ok(RequestedChoice::Named(name));
        }
        let allowed = choice.required("allowed_tools")?;
        let required = allowed
            .required("mode")?
            .choice(&[("auto", false), ("required", true)])?;
        let names = allowed
            .required("tools")?
            .items()?
            .map(|tool| {
                Ok(tool
                    .required("function")?
                    .required("name")?
                    .string()?
                    .to_owned())
            })
            .collect::<Result<_>>()?;
        return Ok(RequestedChoice::Allowed { required, names });
    }
    tools::choice_word(&choice)
}

fn read_format(body: &Field<'_, '_>) -> Result<Option<RequestedFormat>> {
    let Some(format) = body.optional("response_format")? else {
        return Ok(None);
    };
    let types = [
        ("text", 0_u8),
        ("json_object", 1),
        ("json_schema", 2),
        ("regex", 3),
    ];
    Ok(Some(match format.required("type")?.choice(&types)? {
        0 => RequestedFormat::Text,
        1 => RequestedFormat::JsonObject,
        2 => {
            let schema = format.required("json_schema")?;
            schema.optional_string("name")?;
            RequestedFormat::read_schema(&schema)?
        }
        _ => RequestedFormat::Regex(format.required("regex")?.string()?.to_owned()),
    }))
}
