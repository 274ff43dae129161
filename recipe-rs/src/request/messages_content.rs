//! Messages and content blocks of the Messages protocol.

use std::collections::HashSet;

use crate::conversation::{
    AssistantMessage, Content, ImageData, ImageDetail, ImageSource, Message, SystemMessage,
    ToolCall, ToolDefinition, ToolMessage,
};
use crate::error::Result;
use crate::json::{self, NumberStyle};
use crate::request::content::{self, ImagePolicy, PART_SEPARATOR, Part, Place};
use crate::request::messages_blocks::{self, Block, ImageReference, ResultPart};
use crate::request::options::{ConversionOptions, ModelVersion, ServedModel, WebSearchBehavior};
use crate::request::reader::{Field, refusal};
use crate::special_tokens::SpecialToken;
use crate::wire_constants::WIRE;

/// What stands before the result of a call that failed; only with compat off.
const ERROR_MARK: &str = "Error: ";

/// One message as the request has it.
#[derive(Debug, Clone)]
pub(super) struct InputMessage {
    role: Role,
    blocks: Vec<Block>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    User,
    Assistant,
    System,
}

const ROLES: [(&str, Role); 3] = [
    ("user", Role::User),
    ("assistant", Role::Assistant),
    ("system", Role::System),
];

/// What conversion of content depends on.
pub(super) struct Scope<'a> {
    pub(super) options: &'a ConversionOptions,
    pub(super) tools: &'a [ToolDefinition],
    pub(super) model: ServedModel,
    /// Whether messages may bring tools.
    pub(super) brings_tools: bool,
    /// The only tool that the request wants, if it names one.
    pub(super) named_tool: Option<&'a str>,
}

impl Scope<'_> {
    fn brings(&self, tool: &ToolDefinition) -> bool {
        self.brings_tools && self.named_tool.is_none_or(|name| name == tool.name)
    }
}

/// Reads the list of messages.
pub(super) fn read(messages: &Field<'_, '_>) -> Result<Vec<InputMessage>> {
    messages
        .items()?
        .map(|message| {
            let role = message.required("role")?.choice(&ROLES)?;
            let blocks = messages_blocks::read(&message.required("content")?)?;
            Ok(InputMessage { role, blocks })
        })
        .collect()
}

/// Appends the converted messages, with the index that each comes from.
pub(super) fn convert(
    input: Vec<InputMessage>,
    scope: &Scope<'_>,
    messages: &mut Vec<Message>,
    origins: &mut Vec<usize>,
) -> Result<()> {
    check_order(&input)?;
    for (index, message) in input.into_iter().enumerate() {
        match message.role {
            Role::User => convert_user(message.blocks, index, scope, messages)?,
            Role::Assistant => messages.push(Message::Assistant(convert_assistant(
                message.blocks,
                index,
                scope,
            )?)),
            Role::System => {
                let is_addition = |block: &Block| matches!(block, Block::ToolAddition(_));
                let has_addition = message.blocks.iter().any(is_addition);
                let system = convert_system(message.blocks, index, scope)?;
                if scope.model.version == ModelVersion::DeepseekV4Pro {
                    messages.extend(reminder(&system.content));
                } else if !has_addition
                    || system.tools.is_some()
                    || !system.content.text().is_empty()
                {
                    messages.push(Message::System(system));
                }
            }
        }
        origins.resize(messages.len(), index);
    }
    Ok(())
}

/// Refuses blocks in messages of the wrong role, and calls and results that do not match.
fn check_order(input: &[InputMessage]) -> Result<()> {
    let mut calls: HashSet<&str> = HashSet::new();
    for (index, message) in input.iter().enumerate() {
        let path = format!("messages.{index}");
        if message.blocks.is_empty() && message.role != Role::System {
            return Err(refusal(
                format!("{path}.content"),
                format!("{path}: content must not be empty"),
            ));
        }
        for block in &message.blocks {
            check_role(block, message.role, &path)?;
        }
        check_results(&message.blocks, &calls, &path)?;
        calls.clear();
        if message.role != Role::Assistant {
            continue;
        }
        for (position, block) in message.blocks.iter().enumerate() {
            match block {
                Block::ToolUse { id, .. } if !calls.insert(id) => {
                    let path = format!("{path}.content.{position}");
                    return Err(refusal(
                        &path,
                        format!("{path}: tool_use id {id:?} occurs twice; ids must differ"),
                    ));
                }
                Block::ToolUse { .. } | Block::Thinking(_) => {}
                _ if !calls.is_empty() => {
                    return Err(unanswered(&format!("{path}.{position}"), &calls));
                }
                _ => {}
            }
        }
        if !calls.is_empty() {
            check_next(input.get(index + 1), index, &calls)?;
        }
    }
    Ok(())
}

fn check_role(block: &Block, role: Role, path: &str) -> Result<()> {
    let (name, is_right, wanted) = match block {
        Block::Thinking(_) => ("thinking", role == Role::Assistant, "assistant"),
        Block::ToolUse { .. } => ("tool_use", role == Role::Assistant, "assistant"),
        Block::WebSearchResult => (
            "web_search_tool_result",
            role == Role::Assistant,
            "assistant",
        ),
        Block::ToolResult { .. } => ("tool_result", role == Role::User, "user"),
        Block::ToolAddition(_) => ("tool_addition", role == Role::System, "system"),
        _ => return Ok(()),
    };
    if is_right {
        return Ok(());
    }
    Err(refusal(
        format!("{path}.content"),
        format!("{path}.content: a {name} block can only stand in a message of role {wanted:?}"),
    ))
}

/// Refuses results that answer no call of the message before, or one that is answered already.
fn check_results(blocks: &[Block], calls: &HashSet<&str>, path: &str) -> Result<()> {
    let mut answered = HashSet::new();
    for (position, block) in blocks.iter().enumerate() {
        let Block::ToolResult { id, .. } = block else {
            continue;
        };
        let path = format!("{path}.content.{position}");
        if !calls.contains(&id.as_str()) {
            return Err(refusal(
                format!("{path}.tool_use_id"),
                format!("{path}: tool_use_id {id:?} names no tool_use of the message before"),
            ));
        }
        if !answered.insert(id) {
            return Err(refusal(
                &path,
                format!("{path}: tool_use {id:?} has two results; send one"),
            ));
        }
    }
    Ok(())
}

fn check_next(next: Option<&InputMessage>, index: usize, calls: &HashSet<&str>) -> Result<()> {
    let Some(next) = next else {
        return Err(unanswered(&format!("messages.{index}"), calls));
    };
    let leading = next.blocks.iter().map_while(|block| match block {
        Block::ToolResult { id, .. } => Some(id.as_str()),
        _ => None,
    });
    let answered: HashSet<&str> = leading.collect();
    let missing: Vec<&str> = calls
        .iter()
        .copied()
        .filter(|id| !answered.contains(id))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(unanswered(&format!("messages.{}", index + 1), &missing))
}

fn unanswered(path: &str, ids: impl std::fmt::Debug) -> crate::error::Error {
    refusal(
        path,
        format!(
            "{path}: tool_use {ids:?} needs a tool_result at the start of the message right after it"
        ),
    )
}

fn convert_user(
    blocks: Vec<Block>,
    index: usize,
    scope: &Scope<'_>,
    messages: &mut Vec<Message>,
) -> Result<()> {
    let mut brought = Vec::new();
    let mut others = Vec::new();
    for (position, block) in blocks.into_iter().enumerate() {
        match block {
            Block::ToolResult {
                id,
                parts,
                is_error,
            } => {
                let content =
                    result_content(parts, is_error, index, position, scope, &mut brought)?;
                messages.push(Message::Tool(ToolMessage {
                    content,
                    tool_call_id: Some(id),
                }));
            }
            other => others.push((position, other)),
        }
    }
    for (position, block) in others {
        let said = format!("messages.{index}.content[{position}]");
        if let Some(part) = visible_part(block, &said, scope)? {
            messages.push(Message::User(content::join(vec![part], image_token(scope))));
        }
    }
    if !brought.is_empty() {
        messages.push(Message::System(SystemMessage {
            content: Content::default(),
            tools: Some(brought),
        }));
    }
    Ok(())
}

fn result_content(
    parts: Vec<ResultPart>,
    is_error: bool,
    index: usize,
    position: usize,
    scope: &Scope<'_>,
    brought: &mut Vec<ToolDefinition>,
) -> Result<Content> {
    let path = format!("messages.{index}.content.{position}");
    let mut converted = Vec::with_capacity(parts.len());
    for part in parts {
        converted.push(match part {
            ResultPart::Text(text) => Part::Text(text),
            ResultPart::Image(reference) => {
                image_part(reference, &format!("{path}.tool_result"), scope)?
            }
            ResultPart::ToolReference(name) => {
                let tool = scope
                    .tools
                    .iter()
                    .find(|tool| tool.name == name)
                    .ok_or_else(|| {
                        refusal(
                            &path,
                            format!("{path}: tool_reference {name:?} names no declared tool"),
                        )
                    })?;
                if scope.brings(tool) {
                    brought.push(tool.clone());
                }
                Part::Text(name)
            }
        });
    }
    if is_error && !scope.options.compat {
        let mut content = Content::text_only(ERROR_MARK);
        content.push_content(&content::join(converted, image_token(scope)));
        return Ok(content);
    }
    Ok(content::join(converted, image_token(scope)))
}

/// A block that shows text or an image; `None` for blocks that are left out.
fn visible_part(block: Block, said: &str, scope: &Scope<'_>) -> Result<Option<Part>> {
    Ok(Some(match block {
        Block::Text(text) => Part::Text(text),
        Block::Image(reference) => image_part(reference, said, scope)?,
        Block::Document { placeholder, text } => match text {
            Some(text) if !scope.options.compat => Part::Text(text),
            _ => Part::Text(placeholder),
        },
        Block::Extension { text, kind } => {
            if scope.options.compat {
                return Err(refusal(
                    said,
                    format!("{said}: blocks of type {kind:?} are not supported"),
                ));
            }
            return Ok(text.map(Part::Text));
        }
        Block::ServerToolUse | Block::WebSearchResult => {
            if scope.options.messages_web_search == WebSearchBehavior::Reject {
                return Err(refusal(
                    said,
                    format!("{said}: a content block of a server tool is not supported"),
                ));
            }
            return Ok(None);
        }
        Block::Thinking(_)
        | Block::ToolUse { .. }
        | Block::ToolResult { .. }
        | Block::ToolAddition(_) => {
            return Ok(None);
        }
    }))
}

fn convert_assistant(
    blocks: Vec<Block>,
    index: usize,
    scope: &Scope<'_>,
) -> Result<AssistantMessage> {
    let mut content = String::new();
    let mut reasoning: Vec<String> = Vec::new();
    let mut calls = Vec::new();
    let mut has_hidden_reasoning = false;
    for (position, block) in blocks.into_iter().enumerate() {
        let said = format!("messages.{index}.content[{position}]");
        match block {
            Block::Thinking(text) => reasoning.push(text),
            Block::ToolUse { id, name, input } => {
                let arguments = json::spaced(&input, NumberStyle::Shortest);
                calls.push(ToolCall {
                    id,
                    name,
                    arguments,
                });
            }
            Block::Image(_) => {
                return Err(refusal(
                    &said,
                    format!("messages.{index}: an assistant message cannot hold images"),
                ));
            }
            other => {
                has_hidden_reasoning |= matches!(
                    &other,
                    Block::Extension {
                        kind: "redacted_thinking",
                        ..
                    }
                );
                if let Some(Part::Text(text)) = visible_part(other, &said, scope)? {
                    if !content.is_empty() {
                        content.push_str(PART_SEPARATOR);
                    }
                    content.push_str(&text);
                }
            }
        }
    }
    let has_reasoning = has_hidden_reasoning || !reasoning.is_empty();
    Ok(AssistantMessage {
        content,
        reasoning_content: has_reasoning.then(|| reasoning.join(PART_SEPARATOR)),
        tool_calls: (!calls.is_empty()).then_some(calls),
        prefix: false,
    })
}

fn convert_system(blocks: Vec<Block>, index: usize, scope: &Scope<'_>) -> Result<SystemMessage> {
    let mut parts = Vec::new();
    let mut added: Option<Vec<ToolDefinition>> = None;
    for (position, block) in blocks.into_iter().enumerate() {
        if let Block::ToolAddition(name) = &block {
            let path = format!("messages.{index}.content.{position}");
            let tool = scope
                .tools
                .iter()
                .find(|tool| tool.name == *name)
                .ok_or_else(|| {
                    refusal(
                        &path,
                        format!("{path}: tool_addition of {name:?} names no declared tool"),
                    )
                })?;
            // A message that names only tools which the request does not want brings an empty list.
            let added = added.get_or_insert_default();
            if scope.brings(tool) {
                added.push(tool.clone());
            }
            continue;
        }
        let said = format!("messages.{index}");
        parts.extend(visible_part(block, &said, scope)?);
    }
    Ok(SystemMessage {
        content: content::join(parts, image_token(scope)),
        tools: added,
    })
}

/// A system message inside the conversation, as V4 reads it; `None` if it is empty.
fn reminder(content: &Content) -> Option<Message> {
    if content.text().is_empty() {
        return None;
    }
    let mut marked = Content::text_only(WIRE.system_reminder_open.as_str());
    marked.push_content(content);
    marked.push_text(&WIRE.system_reminder_close);
    Some(Message::User(marked))
}

fn image_token<'c>(scope: &Scope<'c>) -> &'c str {
    scope.options.special_tokens.token(SpecialToken::Image)
}

fn image_part(reference: ImageReference, said: &str, scope: &Scope<'_>) -> Result<Part> {
    let place = Place { said, param: said };
    if let Some(substitute) = ImagePolicy::of(scope.model).substitute(place)? {
        return Ok(substitute);
    }
    let data = match reference {
        ImageReference::Base64 { media_type, data } => {
            content::check_base64(&data, place)?;
            ImageData::DataUrl(format!("data:{media_type};base64,{data}"))
        }
        ImageReference::Url(url) => {
            content::check_external_url(&url, place)?;
            ImageData::Url(url)
        }
        ImageReference::File => {
            return Err(place.refuse("file_id is not supported; send the image as base64"));
        }
    };
    Ok(Part::Image(ImageSource {
        data,
        detail: ImageDetail::High,
        path: said.to_owned(),
    }))
}
