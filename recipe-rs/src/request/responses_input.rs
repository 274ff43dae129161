//! From input items of the Responses protocol to messages.

use std::collections::{HashMap, HashSet};

use crate::conversation::{
    AssistantMessage, Content, Message, SystemMessage, ToolCall, ToolDefinition, ToolMessage,
};
use crate::error::Result;
use crate::json::Value;
use crate::request::content::{ImagePolicy, PART_SEPARATOR, Part, Place, image_from_url, join};
use crate::request::options::ModelVersion;
use crate::request::reader::refusal;
use crate::request::responses_items::{InputPart, Item, ItemKind, Role};
use crate::request::responses_tool_listing;
use crate::request::responses_tools::{self, ToolContext, ToolNames};
use crate::special_tokens::SpecialToken;

/// Appends the messages of the items, and returns the tools that searches found.
pub(super) fn convert(
    items: Vec<Item>,
    context: ToolContext<'_>,
    names: &mut ToolNames,
    messages: &mut Vec<Message>,
    origins: &mut Vec<usize>,
) -> Result<Vec<ToolDefinition>> {
    let mut builder = Builder {
        context,
        names,
        messages,
        origins,
        turn: None,
        results: HashMap::new(),
        call_ids: HashSet::new(),
        loaded: Vec::new(),
    };
    let keeps_searches = context.model.loads_tools_later();
    for item in items {
        let is_search = matches!(
            item.kind,
            ItemKind::SearchCall(_) | ItemKind::SearchOutput { .. }
        );
        if keeps_searches || !is_search {
            builder.add(item)?;
        }
    }
    builder.close_turn()?;
    Ok(builder.loaded)
}

/// An assistant turn that further items may still extend.
#[derive(Default)]
struct Turn {
    reasoning: Option<String>,
    is_encrypted: bool,
    texts: Option<String>,
    calls: Vec<ToolCall>,
    call_ids: HashSet<String>,
    /// Tools that the results bring, in the order of the results.
    brought: Vec<Vec<ToolDefinition>>,
    index: usize,
}

struct Builder<'a> {
    context: ToolContext<'a>,
    names: &'a mut ToolNames,
    messages: &'a mut Vec<Message>,
    origins: &'a mut Vec<usize>,
    turn: Option<Turn>,
    results: HashMap<String, Content>,
    call_ids: HashSet<String>,
    loaded: Vec<ToolDefinition>,
}

impl Builder<'_> {
    fn add(&mut self, item: Item) -> Result<()> {
        let index = item.index;
        match item.kind {
            ItemKind::Message {
                role: Role::Assistant,
                parts,
            } => {
                let text = assistant_text(parts, index)?;
                let turn = self.open_turn(index, |turn| turn.calls.is_empty())?;
                let texts = turn.texts.get_or_insert_default();
                if !texts.is_empty() && !text.is_empty() {
                    texts.push_str(PART_SEPARATOR);
                }
                texts.push_str(&text);
            }
            ItemKind::Message { role, parts } => {
                self.close_turn()?;
                let reads_developer_as_user =
                    self.context.model.version == ModelVersion::DeepseekV4Pro;
                let content = self.content(parts, index, &format!("input[{index}]"))?;
                self.push(
                    index,
                    if role == Role::System || (role == Role::Developer && !reads_developer_as_user)
                    {
                        Message::System(SystemMessage {
                            content,
                            tools: None,
                        })
                    } else {
                        Message::User(content)
                    },
                );
            }
            ItemKind::Unknown => {}
            ItemKind::WebSearchCall => {
                if self
                    .turn
                    .as_ref()
                    .is_some_and(|turn| !turn.calls.is_empty())
                {
                    self.close_turn()?;
                }
            }
            ItemKind::Reasoning {
                text: None,
                is_encrypted,
                ..
            } if self.context.options.compat || !is_encrypted => {}
            ItemKind::Reasoning {
                text,
                is_encrypted,
                carried,
            } => {
                let carried = carried.filter(|_| !self.context.options.compat);
                let has_no_text =
                    |turn: &Turn| turn.texts.as_deref().unwrap_or_default().is_empty();
                let turn =
                    self.open_turn(index, |turn| turn.calls.is_empty() && has_no_text(turn))?;
                turn.is_encrypted |= is_encrypted;
                if let Some(text) = text.or(carried) {
                    match &mut turn.reasoning {
                        Some(reasoning) => {
                            reasoning.push('\n');
                            reasoning.push_str(&text);
                        }
                        None => turn.reasoning = Some(text),
                    }
                }
            }
            ItemKind::Call {
                mut call,
                namespace,
            } => {
                if let Some(namespace) = namespace {
                    let separator = self.context.model.namespace_separator();
                    call.name = format!("{namespace}{separator}{}", call.name);
                }
                self.add_call(index, call)?;
            }
            ItemKind::SearchCall(call) => self.add_call(index, call)?,
            ItemKind::Output { call_id, parts } => {
                let content = self.content(parts, index, &format!("input[{index}]"))?;
                self.add_result(index, call_id, content)?;
            }
            ItemKind::SearchOutput { call_id, tools } => {
                let path = format!("input[{index}].tools");
                responses_tools::check_web_search(&tools, &path, self.context.options)?;
                let content = Content::text_only(responses_tool_listing::found(&tools, &path)?);
                let mut tools =
                    responses_tools::definitions(tools, &path, self.context, self.names)?;
                for tool in &mut tools {
                    tool.defer_loading = true;
                }
                self.add_result(index, call_id, content)?;
                if let Some(turn) = self.turn.as_mut().filter(|_| !tools.is_empty()) {
                    turn.brought.push(tools);
                }
            }
        }
        Ok(())
    }

    /// The open turn if it may go on, else a new one.
    fn open_turn(&mut self, index: usize, goes_on: impl Fn(&Turn) -> bool) -> Result<&mut Turn> {
        let may_go_on = self.results.is_empty() && self.turn.as_ref().is_some_and(goes_on);
        if !may_go_on {
            self.close_turn()?;
        }
        Ok(self.turn.get_or_insert_with(|| Turn {
            index,
            ..Turn::default()
        }))
    }

    fn add_call(&mut self, index: usize, call: ToolCall) -> Result<()> {
        check_call_id(&call.id, index)?;
        if !self.call_ids.insert(call.id.clone()) {
            let problem = "occurs twice; ids of calls must differ";
            return Err(call_id_refusal(index, &call.id, problem));
        }
        let turn = self.open_turn(index, |_| true)?;
        turn.call_ids.insert(call.id.clone());
        turn.calls.push(call);
        Ok(())
    }

    fn add_result(&mut self, index: usize, call_id: String, content: Content) -> Result<()> {
        check_call_id(&call_id, index)?;
        let turn = self.turn.as_ref();
        if !turn.is_some_and(|turn| turn.call_ids.contains(&call_id)) {
            let problem = "has an output but no call right before it";
            return Err(call_id_refusal(index, &call_id, problem));
        }
        if self.results.contains_key(&call_id) {
            return Err(call_id_refusal(
                index,
                &call_id,
                "has two outputs; send one",
            ));
        }
        self.results.insert(call_id, content);
        Ok(())
    }

    /// Appends the open turn and the results of its calls, in the order of the calls: that of their
    /// ids in compat mode, else the given one.
    fn close_turn(&mut self) -> Result<()> {
        let Some(mut turn) = self.turn.take() else {
            return Ok(());
        };
        if self.context.options.compat {
            turn.calls.sort_by(|left, right| left.id.cmp(&right.id));
        }
        let mut results = std::mem::take(&mut self.results);
        let mut answers = Vec::with_capacity(turn.calls.len());
        for call in &turn.calls {
            let Some(result) = results.remove(&call.id) else {
                let problem = "has no output right after its call";
                return Err(call_id_refusal(turn.index, &call.id, problem));
            };
            answers.push((call.id.clone(), result));
        }
        let hidden_reasoning =
            (turn.is_encrypted && !self.context.options.compat).then(String::new);
        let reasoning_content = turn.reasoning.or(hidden_reasoning);
        if turn.texts.is_none() && turn.calls.is_empty() && reasoning_content.is_none() {
            return Ok(());
        }
        let message = AssistantMessage {
            content: turn.texts.unwrap_or_default(),
            reasoning_content,
            tool_calls: (!turn.calls.is_empty()).then_some(turn.calls),
            prefix: false,
        };
        self.push(turn.index, Message::Assistant(message));
        for (call_id, content) in answers {
            let message = ToolMessage {
                content,
                tool_call_id: Some(call_id),
            };
            self.push(turn.index, Message::Tool(message));
        }
        for tools in turn.brought {
            if self.context.forbids_calls {
                continue;
            }
            self.loaded.extend(tools.iter().cloned());
            let message = SystemMessage {
                content: Content::default(),
                tools: Some(tools),
            };
            self.push(turn.index, Message::System(message));
        }
        Ok(())
    }

    fn push(&mut self, index: usize, message: Message) {
        self.messages.push(message);
        self.origins.push(index);
    }

    fn content(&self, parts: Vec<InputPart>, index: usize, said: &str) -> Result<Content> {
        let image_token = self
            .context
            .options
            .special_tokens
            .token(SpecialToken::Image);
        let mut converted = Vec::with_capacity(parts.len());
        for part in parts {
            converted.push(match part {
                InputPart::Text(text) => Part::Text(text),
                InputPart::Image {
                    image_url,
                    file_id,
                    detail,
                    position,
                } => {
                    let param = format!("input[{index}].content[{position}]");
                    let place = Place {
                        said: &param,
                        param: &param,
                    };
                    if let Some(substitute) =
                        ImagePolicy::of(self.context.model).substitute(place)?
                    {
                        converted.push(substitute);
                        continue;
                    }
                    match (image_url, file_id) {
                        (Some(_), Some(_)) => {
                            return Err(place.refuse("image_url and file_id exclude each other"));
                        }
                        (None, Some(_)) => {
                            return Err(place.refuse(
                                "file_id is not supported; send the image as a base64 data URL",
                            ));
                        }
                        (None, None) => return Err(place.refuse("an image needs image_url")),
                        (Some(url), None) => {
                            let mut source = image_from_url(&url, detail, place)?;
                            said.clone_into(&mut source.path);
                            Part::Image(source)
                        }
                    }
                }
            });
        }
        Ok(join(converted, image_token))
    }
}

fn assistant_text(parts: Vec<InputPart>, index: usize) -> Result<String> {
    let mut texts = Vec::with_capacity(parts.len());
    for part in parts {
        match part {
            InputPart::Text(text) => texts.push(text),
            InputPart::Image { position, .. } => {
                return Err(refusal(
                    format!("input[{index}].content[{position}]"),
                    format!("input[{index}]: an assistant message cannot hold images"),
                ));
            }
        }
    }
    Ok(texts.join(PART_SEPARATOR))
}

fn check_call_id(call_id: &str, index: usize) -> Result<()> {
    if call_id.is_empty() {
        return Err(call_id_refusal(index, call_id, "must not be empty"));
    }
    Ok(())
}

fn call_id_refusal(index: usize, call_id: &str, problem: &str) -> crate::error::Error {
    let path = format!("input[{index}].call_id");
    let shown = Value::from(call_id);
    refusal(&path, format!("{path}: {shown} {problem}"))
}
