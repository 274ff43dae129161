//! Requests of the Responses protocol.

use std::collections::BTreeMap;

use crate::conversation::{Message, SystemMessage};
use crate::error::Result;
use crate::json::Value;
use crate::request::limits::{self, check_top_logprobs, read_stops};
use crate::request::options::{ConversionOptions, WebSearchBehavior};
use crate::request::reader::{Field, parse_body, refusal};
use crate::request::reporting::{Reporting, ToolKinds};
use crate::request::response_format::RequestedFormat;
use crate::request::responses_items::{self, Item};
use crate::request::responses_tool_listing;
use crate::request::responses_tools::{self, DeclaredTool, ToolContext, ToolNames};
use crate::request::thinking::ThinkingRequest;
use crate::request::tools::{self, RequestedChoice};
use crate::request::{CommonFields, ConversationRequest, Draft, Protocol};
use crate::request::{responses_echo, responses_input};
use crate::response::{ResponsesChunkGenerator, ResponsesEcho};

/// Fields of the protocol besides the shared ones.
const KNOWN_FIELDS: [&str; 12] = [
    "input",
    "include",
    "instructions",
    "max_output_tokens",
    "top_logprobs",
    "reasoning",
    "text",
    "tools",
    "tool_choice",
    "user",
    "parallel_tool_calls",
    "stop",
];

/// Entry of `include` that asks for reasoning in a form that can be sent back.
const CARRIED_REASONING: &str = "reasoning.encrypted_content";

/// A Responses request, read but not yet converted.
///
/// ```
/// use recipe_rs::{ConversionOptions, ResponsesRequest};
///
/// let request = ResponsesRequest::from_json(br#"{"model": "DeepSeek-V4.1-Flash", "input": "Hi"}"#)?;
/// let converted = request.convert(&ConversionOptions::default())?;
/// assert_eq!(converted.conversation.messages.len(), 1);
/// # Ok::<(), recipe_rs::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct ResponsesRequest {
    model: String,
    input: Option<Vec<Item>>,
    tools: Vec<DeclaredTool>,
    choice: ResponsesChoice,
    format: Option<RequestedFormat>,
    thinking: ThinkingRequest,
    stops: Vec<String>,
    common: CommonFields,
    top_logprobs: Option<u64>,
    carries_reasoning: bool,
    settings: ResponsesEcho,
}

#[derive(Debug, Clone)]
enum ResponsesChoice {
    Plain(RequestedChoice),
    /// A choice that only compat off knows.
    Allowed(RequestedChoice),
    WebSearch,
}

impl ResponsesChoice {
    fn resolve(self, options: &ConversionOptions) -> Result<RequestedChoice> {
        match self {
            Self::WebSearch if options.responses_web_search == WebSearchBehavior::Reject => {
                Err(refusal(
                    "tool_choice",
                    "tool_choice: web search is not supported here",
                ))
            }
            Self::Plain(choice) => Ok(choice),
            Self::WebSearch => Ok(RequestedChoice::Auto),
            Self::Allowed(choice) if !options.compat => Ok(choice),
            Self::Allowed(_) => Err(refusal(
                "tool_choice.type",
                "tool_choice: type \"allowed_tools\" is not supported; use \"function\", \"custom\" or a word",
            )),
        }
    }
}

impl ResponsesRequest {
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
        let input = body
            .optional("input")?
            .map(|input| responses_items::read(&input))
            .transpose()?;
        let mut thinking = ThinkingRequest::default();
        if let Some(reasoning) = body.optional("reasoning")? {
            thinking.read_effort(&reasoning, "effort")?;
            let summaries = [("auto", ()), ("concise", ()), ("detailed", ())];
            reasoning.optional_choice("summary", &summaries)?;
        }
        Ok(Self {
            model,
            input,
            tools: body
                .optional("tools")?
                .map_or_else(|| Ok(Vec::new()), |tools| responses_tools::read(&tools))?,
            choice: read_choice(&body)?,
            format: read_format(&body)?,
            thinking,
            stops: read_stops(&body, "stop", true).unwrap_or_default(),
            common: CommonFields::read(&body, &KNOWN_FIELDS)?,
            top_logprobs: body.optional_unsigned("top_logprobs", u64::from(u8::MAX))?,
            carries_reasoning: body.value["include"]
                .as_array()
                .is_some_and(|fields| fields.iter().any(|field| field == CARRIED_REASONING)),
            settings: responses_echo::read(&body)?,
        })
    }

    /// The model name of the request.
    #[must_use]
    pub fn model(&self) -> &str {
        &self.model
    }

    /// The settings that responses repeat, as the request gave them.
    #[must_use]
    pub fn echo(&self) -> ResponsesEcho {
        ResponsesEcho {
            tools: responses_tool_listing::echoed(&self.tools),
            ..self.settings.clone()
        }
    }

    /// A generator of the events of one response to a converted request.
    #[must_use]
    pub fn chunk_generator(
        request: &ConversationRequest,
        id: impl Into<String>,
        model: impl Into<String>,
    ) -> ResponsesChunkGenerator {
        ResponsesChunkGenerator::new(id, model)
            .with_thinking(request.conversation.thinking_mode)
            .with_tool_kinds(request.reporting.tool_kinds.clone())
            .with_carried_reasoning(request.reporting.carried_reasoning)
            .with_compat(request.parsing_options.compat)
    }

    /// The function names of tools inside namespaces, each with its namespace and own name.
    ///
    /// # Errors
    /// [`crate::Error::Conversion`] for a broken tool.
    pub fn namespace_tool_map(
        &self,
        options: &ConversionOptions,
    ) -> Result<BTreeMap<String, (String, String)>> {
        let model = options.served_model(&self.model)?;
        let mut names = ToolNames::default();
        if self.forbids_calls() {
            responses_tools::name_unchecked(&self.tools, model, &mut names);
        } else {
            let context = ToolContext {
                model,
                options,
                forbids_calls: false,
            };
            let tools = self.tools.clone();
            responses_tools::definitions(tools, "tools", context, &mut names)?;
        }
        Ok(names.into_kinds().namespaced)
    }

    fn forbids_calls(&self) -> bool {
        matches!(self.choice, ResponsesChoice::Plain(RequestedChoice::None))
    }

    /// Converts the request.
    ///
    /// # Errors
    /// [`crate::Error::Conversion`] that names the field.
    pub fn convert(self, options: &ConversionOptions) -> Result<ConversationRequest> {
        let compat = options.compat;
        let model = options.served_model(&self.model)?;
        let thinking = self.thinking.resolve(options, model)?;
        let instructions = self.settings.instructions.filter(|text| !text.is_empty());
        match &self.input {
            None if instructions.is_none() => {
                return Err(refusal(
                    "input",
                    "input: is missing; give input or instructions",
                ));
            }
            Some(items) if items.is_empty() => {
                return Err(refusal(
                    "input",
                    "input: the list is empty; give at least one item",
                ));
            }
            _ => {}
        }
        let choice = self.choice.resolve(options)?;
        let has_tools = self.tools.iter().any(|tool| tool.is_offered(model));
        let mut names = ToolNames::default();
        let forbids_calls = choice == RequestedChoice::None;
        let context = ToolContext {
            model,
            options,
            forbids_calls,
        };
        responses_tools::check_web_search(&self.tools, "tools", options)?;
        let mut definitions =
            responses_tools::definitions(self.tools, "tools", context, &mut names)?;
        // A search that another search found is reported as a function.
        let has_tool_search = names.has_tool_search();
        let mut messages = Vec::new();
        let mut origins = Vec::new();
        if let Some(text) = instructions {
            messages.push(Message::System(SystemMessage {
                content: text.as_str().into(),
                tools: None,
            }));
            origins.push(0);
        }
        let items = self.input.unwrap_or_default();
        let loaded =
            responses_input::convert(items, context, &mut names, &mut messages, &mut origins)?;
        definitions.extend(loaded);
        if choice != RequestedChoice::None {
            tools::check_unique(&definitions)?;
        }
        if compat && self.format == Some(RequestedFormat::JsonObject) && !mention_json(&messages) {
            return Err(refusal(
                "text.format",
                "text.format: json_object needs the word \"json\" in the input or the instructions",
            ));
        }
        let tools = tools::choose(definitions, choice, thinking.enabled, compat)?;
        let (response_format, response_constraint) = RequestedFormat::resolve(
            self.format
                .filter(|format| *format != RequestedFormat::Text),
            "text.format",
            &tools.tools,
            compat,
        )?;
        if !compat {
            limits::check_stops("stop", &self.stops)?;
        }
        Draft {
            protocol: Protocol::Responses,
            model,
            thinking,
            messages,
            origins,
            has_declared_tools: has_tools,
            tools,
            response_format,
            response_constraint,
            max_tokens_field: "max_output_tokens",
            max_tokens: self.settings.max_output_tokens,
            logprobs: self.top_logprobs.is_some(),
            top_logprobs: check_top_logprobs(self.top_logprobs)?,
            seed: None,
            stops: if compat { Vec::new() } else { self.stops },
            n: 1,
            reporting: Reporting {
                usage: false,
                carried_reasoning: self.carries_reasoning && !compat,
                tool_kinds: ToolKinds {
                    has_tool_search,
                    ..names.into_kinds()
                },
            },
            common: self.common,
        }
        .finish(options)
    }
}

fn mention_json(messages: &[Message]) -> bool {
    messages
        .iter()
        .any(|message| message.text().to_lowercase().contains("json"))
}

fn read_choice(body: &Field<'_, '_>) -> Result<ResponsesChoice> {
    let Some(choice) = body.optional("tool_choice")? else {
        return Ok(ResponsesChoice::Plain(RequestedChoice::Auto));
    };
    if !choice.value.is_object() {
        return tools::choice_word(&choice).map(ResponsesChoice::Plain);
    }
    let types = [
        ("function", 0_u8),
        ("web_search", 1),
        ("web_search_2025_08_26", 1),
        ("custom", 0),
        ("allowed_tools", 2),
    ];
    Ok(match choice.required("type")?.choice(&types)? {
        0 => {
            let name = choice.required("name")?.string()?.to_owned();
            ResponsesChoice::Plain(RequestedChoice::Named(name))
        }
        1 => ResponsesChoice::WebSearch,
        _ => {
            let required = choice
                .required("mode")?
                .choice(&[("auto", false), ("required", true)])?;
            let names = choice
                .required("tools")?
                .items()?
                .map(|tool| Ok(tool.required("name")?.string()?.to_owned()))
                .collect::<Result<_>>()?;
            ResponsesChoice::Allowed(RequestedChoice::Allowed { required, names })
        }
    })
}

fn read_format(body: &Field<'_, '_>) -> Result<Option<RequestedFormat>> {
    let Some(text) = body.optional("text")? else {
        return Ok(None);
    };
    text.optional_choice("verbosity", &[("low", ()), ("medium", ()), ("high", ())])?;
    if text.object()?.get("format").is_none() {
        return Ok(None);
    }
    let format = text.required("format")?;
    let types = [("text", 0_u8), ("json_schema", 2), ("json_object", 1)];
    Ok(Some(match format.required("type")?.choice(&types)? {
        0 => RequestedFormat::Text,
        1 => RequestedFormat::JsonObject,
        _ => {
            format.required("name")?.string()?;
            RequestedFormat::read_schema(&format)?
        }
    }))
}
