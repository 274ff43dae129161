//! Requests of the Messages protocol.

use crate::conversation::{Message, SystemMessage, ToolDefinition};
use crate::error::Result;
use crate::json::Value;
use crate::request::content::PART_SEPARATOR;
use crate::request::limits::{self, check_stops, read_stops};
use crate::request::messages_content::{self, InputMessage};
use crate::request::options::{ConversionOptions, ServedModel, WebSearchBehavior};
use crate::request::reader::{Field, parse_body, refusal};
use crate::request::reporting::Reporting;
use crate::request::response_format::RequestedFormat;
use crate::request::thinking::ThinkingRequest;
use crate::request::tools::{self, RequestedChoice, RequestedTool};
use crate::request::{CommonFields, ConversationRequest, Draft, Protocol};
use crate::response::MessagesChunkGenerator;

/// Fields of the protocol besides the shared ones.
const KNOWN_FIELDS: [&str; 11] = [
    "messages",
    "max_tokens",
    "system",
    "stop_sequences",
    "metadata",
    "thinking",
    "output_config",
    "output_format",
    "tools",
    "tool_choice",
    "cache_control",
];

/// A Messages request, read but not yet converted.
///
/// ```
/// use recipe_rs::{ConversionOptions, MessagesRequest};
///
/// let body = br#"{"model": "DeepSeek-V4.1-Flash", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}"#;
/// let request = MessagesRequest::from_json(body)?.convert(&ConversionOptions::default())?;
/// assert_eq!(request.inference_options.max_tokens, Some(9));
/// # Ok::<(), recipe_rs::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct MessagesRequest {
    model: String,
    messages: Vec<InputMessage>,
    system: Option<String>,
    tools: Vec<MessagesTool>,
    choice: MessagesChoice,
    output_format: Option<Value>,
    thinking: ThinkingRequest,
    max_tokens: Option<u64>,
    stops: Vec<String>,
    common: CommonFields,
}

/// A tool, with its type if it names one.
#[derive(Debug, Clone)]
struct MessagesTool {
    kind: Option<String>,
    requested: RequestedTool,
}

#[derive(Debug, Clone)]
enum MessagesChoice {
    Auto,
    Any,
    Named(String),
    None,
}

impl MessagesRequest {
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
        let messages = messages_content::read(&body.required("messages")?)?;
        let mut thinking = ThinkingRequest::default();
        thinking.read_type(&body)?;
        let mut output_format = body
            .optional("output_format")?
            .map(|format| format.value.clone());
        if let Some(config) = body.optional("output_config")? {
            thinking.read_effort(&config, "effort")?;
            if let Some(format) = config.optional("format")? {
                output_format = Some(format.value.clone());
            }
        }
        if let Some(metadata) = body.optional("metadata")? {
            metadata.optional_string("user_id")?;
        }
        let tools = body.optional("tools")?;
        Ok(Self {
            model,
            messages,
            system: body
                .optional("system")?
                .map(|system| read_system(&system))
                .transpose()?,
            tools: tools.map_or_else(
                || Ok(Vec::new()),
                |tools| tools.items()?.map(|tool| read_tool(&tool)).collect(),
            )?,
            choice: read_choice(&body)?,
            output_format,
            thinking,
            max_tokens: body.optional_unsigned("max_tokens", u64::from(u32::MAX))?,
            stops: read_stops(&body, "stop_sequences", false)?,
            common: CommonFields::read(&body, &KNOWN_FIELDS)?,
        })
    }

    /// The model name of the request.
    #[must_use]
    pub fn model(&self) -> &str {
        &self.model
    }

    /// A generator of the events of one response to a converted request.
    #[must_use]
    pub fn chunk_generator(
        request: &ConversationRequest,
        id: impl Into<String>,
        model: impl Into<String>,
    ) -> MessagesChunkGenerator {
        MessagesChunkGenerator::new(id, model, request.conversation.thinking_mode)
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
        check_stops("stop_sequences", &self.stops)?;
        let (requested, dropped) = client_tools(self.tools, options)?;
        let has_tools = !requested.is_empty();
        let choice = match self.choice {
            MessagesChoice::Auto => RequestedChoice::Auto,
            MessagesChoice::None => RequestedChoice::None,
            MessagesChoice::Any if compat => RequestedChoice::Auto,
            MessagesChoice::Any => RequestedChoice::Required,
            MessagesChoice::Named(name)
                if dropped.contains(&name) && !requested.iter().any(|tool| tool.name == name) =>
            {
                RequestedChoice::Auto
            }
            MessagesChoice::Named(name) if requested.is_empty() && !dropped.is_empty() => {
                return Err(tools::undeclared(&name));
            }
            MessagesChoice::Named(name) => RequestedChoice::Named(name),
        };
        let mut declared = requested
            .iter()
            .map(tools::named_only)
            .collect::<Result<Vec<_>>>()?;
        settle_deferred(&mut declared, model)?;
        let mut definitions = tools::definitions(requested, &choice, compat)?;
        settle_deferred(&mut definitions, model)?;
        let mut messages = Vec::new();
        let mut origins = Vec::new();
        if let Some(system) = self.system {
            let content = system.as_str().into();
            messages.push(Message::System(SystemMessage {
                content,
                tools: None,
            }));
            origins.push(0);
        }
        let scope = messages_content::Scope {
            options,
            tools: if choice == RequestedChoice::None {
                &declared
            } else {
                &definitions
            },
            model,
            named_tool: match &choice {
                RequestedChoice::Named(name) => Some(name),
                _ => None,
            },
            brings_tools: model.loads_tools_later() && choice != RequestedChoice::None,
        };
        messages_content::convert(self.messages, &scope, &mut messages, &mut origins)?;
        let format = match self.output_format {
            Some(format) if !compat => Some(read_format(&format)?),
            _ => None,
        };
        let tools = tools::choose(definitions, choice, thinking.enabled, compat)?;
        let (response_format, response_constraint) =
            RequestedFormat::resolve(format, "output_config.format", &tools.tools, compat)?;
        let bound = u64::from(options.max_tokens_upper_bound(thinking.enabled));
        Draft {
            protocol: Protocol::Messages,
            model,
            thinking,
            messages,
            origins,
            has_declared_tools: has_tools,
            tools,
            response_format,
            response_constraint,
            max_tokens_field: "max_tokens",
            max_tokens: self.max_tokens.map(|tokens| tokens.min(bound)),
            logprobs: false,
            top_logprobs: None,
            seed: None,
            stops: self.stops,
            n: 1,
            reporting: Reporting::default(),
            common: self.common,
        }
        .finish(options)
    }
}

fn read_system(system: &Field<'_, '_>) -> Result<String> {
    if let Some(text) = system.value.as_str() {
        return Ok(text.to_owned());
    }
    if !system.value.is_array() {
        return Err(system.refuse("expected a string or a list of text blocks"));
    }
    let texts = system
        .items()?
        .map(|block| {
            block.required("type")?.choice(&[("text", ())])?;
            Ok(block.required("text")?.string()?.to_owned())
        })
        .collect::<Result<Vec<_>>>()?;
    Ok(texts.join(PART_SEPARATOR))
}

fn read_tool(tool: &Field<'_, '_>) -> Result<MessagesTool> {
    let kind = match tool.object()?.get("type") {
        None => None,
        Some(_) => Some(tool.present("type")?.string()?.to_owned()),
    };
    let schema = tool.optional("input_schema")?;
    Ok(MessagesTool {
        requested: RequestedTool {
            name: tool.required("name")?.string()?.to_owned(),
            description: tool.optional_string("description")?.map(str::to_owned),
            parameters: Some(schema.map_or(Value::Null, |schema| schema.value.clone())),
            strict: None,
            defer_loading: tool.optional_bool("defer_loading")?.unwrap_or(false),
            name_path: format!("{}.name", tool.path()),
            parameters_path: format!("{}.input_schema", tool.path()),
        },
        kind,
    })
}

/// The client tools, and the names of web search tools that are left out.
fn client_tools(
    declared: Vec<MessagesTool>,
    options: &ConversionOptions,
) -> Result<(Vec<RequestedTool>, Vec<String>)> {
    let mut client = Vec::with_capacity(declared.len());
    let mut dropped = Vec::new();
    let drops_search = options.messages_web_search == WebSearchBehavior::Drop;
    for (index, tool) in declared.into_iter().enumerate() {
        match tool.kind.as_deref() {
            None => client.push(tool.requested),
            Some("custom") if !options.compat => client.push(tool.requested),
            Some(kind) if drops_search && kind.starts_with("web_search") => {
                dropped.push(tool.requested.name);
            }
            Some(kind) => {
                let path = format!("tools[{index}]");
                return Err(refusal(
                    &path,
                    format!("{path}: tools of type {kind:?} run on a server and are not supported"),
                ));
            }
        }
    }
    Ok((client, dropped))
}

/// Loads all tools at once where the model knows no other way, and refuses to defer all.
fn settle_deferred(definitions: &mut [ToolDefinition], model: ServedModel) -> Result<()> {
    if !model.loads_tools_later() {
        for tool in definitions.iter_mut() {
            tool.defer_loading = false;
        }
    }
    if !definitions.is_empty() && definitions.iter().all(|tool| tool.defer_loading) {
        return Err(refusal(
            "tools",
            "tools: all have defer_loading; at least one must be loaded from the start",
        ));
    }
    Ok(())
}

fn read_choice(body: &Field<'_, '_>) -> Result<MessagesChoice> {
    let Some(choice) = body.optional("tool_choice")? else {
        return Ok(MessagesChoice::Auto);
    };
    choice.optional_bool("disable_parallel_tool_use")?;
    let types = [("auto", 0_u8), ("any", 1), ("tool", 2), ("none", 3)];
    Ok(match choice.required("type")?.choice(&types)? {
        0 => MessagesChoice::Auto,
        1 => MessagesChoice::Any,
        2 => MessagesChoice::Named(choice.required("name")?.string()?.to_owned()),
        _ => MessagesChoice::None,
    })
}

fn read_format(format: &Value) -> Result<RequestedFormat> {
    let format = Field::root(format);
    let named = |error| limits::at("output_config.format", error);
    format
        .required("type")
        .and_then(|kind| kind.choice(&[("json_schema", ())]))
        .and_then(|()| RequestedFormat::read_schema(&format))
        .map_err(named)
}
