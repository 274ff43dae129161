//! Messages of the Chat Completions protocol.

use std::collections::HashSet;

use crate::conversation::{
    AssistantMessage, Content, ImageData, ImageDetail, ImageSource, Message, SystemMessage,
    ToolCall, ToolMessage,
};
use crate::error::Result;
use crate::request::content::{self, ImagePolicy, PART_SEPARATOR, Part, Place};
use crate::request::limits;
use crate::request::options::ConversionOptions;
use crate::request::reader::{Field, refusal};
use crate::special_tokens::SpecialToken;

/// Most ids that a refusal lists.
const MAX_SHOWN_IDS: usize = 5;

#[derive(Debug, Clone)]
pub(super) enum ChatMessage {
    System {
        parts: Vec<ChatPart>,
        is_developer: bool,
    },
    User {
        parts: Vec<ChatPart>,
    },
    Assistant(ChatAssistant),
    Tool {
        parts: Vec<ChatPart>,
        tool_call_id: String,
    },
    LatestReminder {
        text: String,
    },
}

#[derive(Debug, Clone)]
pub(super) struct ChatAssistant {
    parts: Option<Vec<ChatPart>>,
    reasoning_content: Option<String>,
    tool_calls: Option<Vec<ToolCall>>,
    prefix: bool,
}

#[derive(Debug, Clone)]
pub(super) enum ChatPart {
    Text(String),
    ImageUrl {
        url: String,
        detail: ImageDetail,
        path: String,
    },
    File {
        file_id: Option<String>,
        file_data: Option<String>,
        is_nested: bool,
        path: String,
    },
}

#[derive(Clone, Copy)]
enum Role {
    System,
    Developer,
    User,
    Assistant,
    Tool,
    LatestReminder,
}

const ROLES: [(&str, Role); 6] = [
    ("system", Role::System),
    ("user", Role::User),
    ("assistant", Role::Assistant),
    ("tool", Role::Tool),
    ("latest_reminder", Role::LatestReminder),
    ("developer", Role::Developer),
];

pub(super) fn read(message: &Field<'_, '_>) -> Result<ChatMessage> {
    let role = message.required("role")?.choice(&ROLES)?;
    if !matches!(role, Role::Tool | Role::LatestReminder) {
        message.optional_string("name")?;
    }
    Ok(match role {
        Role::System | Role::Developer => ChatMessage::System {
            parts: read_parts(&message.required("content")?)?,
            is_developer: matches!(role, Role::Developer),
        },
        Role::User => ChatMessage::User {
            parts: read_parts(&message.required("content")?)?,
        },
        Role::Tool => ChatMessage::Tool {
            parts: read_parts(&message.required("content")?)?,
            tool_call_id: message.required("tool_call_id")?.string()?.to_owned(),
        },
        Role::LatestReminder => ChatMessage::LatestReminder {
            text: message.required("content")?.string()?.to_owned(),
        },
        Role::Assistant => {
            let calls = message.optional("tool_calls")?;
            ChatMessage::Assistant(ChatAssistant {
                parts: message
                    .optional("content")?
                    .map(|content| read_parts(&content))
                    .transpose()?,
                reasoning_content: message
                    .optional_string("reasoning_content")?
                    .map(str::to_owned),
                tool_calls: calls
                    .map(|calls| {
                        calls
                            .items()?
                            .map(|call| read_call(&call))
                            .collect::<Result<Vec<_>>>()
                    })
                    .transpose()?,
                prefix: message.optional_bool("prefix")?.unwrap_or(false),
            })
        }
    })
}

fn read_call(call: &Field<'_, '_>) -> Result<ToolCall> {
    call.required("type")?.choice(&[("function", ())])?;
    let function = call.required("function")?;
    Ok(ToolCall {
        id: call.required("id")?.string()?.to_owned(),
        name: function.required("name")?.string()?.to_owned(),
        arguments: function.required("arguments")?.string()?.to_owned(),
    })
}

fn read_parts(content: &Field<'_, '_>) -> Result<Vec<ChatPart>> {
    if let Some(text) = content.value.as_str() {
        return Ok(vec![ChatPart::Text(text.to_owned())]);
    }
    if !content.value.is_array() {
        return Err(content.refuse("expected a string or a list of parts"));
    }
    content.items()?.map(|part| read_part(&part)).collect()
}

#[derive(Clone, Copy)]
enum PartType {
    Text,
    ImageUrl,
    File,
}

fn read_part(part: &Field<'_, '_>) -> Result<ChatPart> {
    let types = [
        ("text", PartType::Text),
        ("image_url", PartType::ImageUrl),
        ("file", PartType::File),
    ];
    Ok(match part.required("type")?.choice(&types)? {
        PartType::Text => ChatPart::Text(part.required("text")?.string()?.to_owned()),
        PartType::ImageUrl => {
            let image = part.required("image_url")?;
            ChatPart::ImageUrl {
                url: image.required("url")?.string()?.to_owned(),
                detail: image
                    .optional_choice("detail", &ImageDetail::NAMES)?
                    .unwrap_or_default(),
                path: part.path(),
            }
        }
        PartType::File => {
            let nested = part.optional("file")?.filter(|file| file.value.is_object());
            let is_nested = nested.is_some();
            let file = nested.unwrap_or(*part);
            ChatPart::File {
                file_id: file.optional_string("file_id")?.map(str::to_owned),
                file_data: file.optional_string("file_data")?.map(str::to_owned),
                is_nested,
                path: part.path(),
            }
        }
    })
}

/// Whether a message speaks of JSON.
pub(super) fn mention_json(messages: &[ChatMessage]) -> bool {
    let mentions = |text: &str| text.to_lowercase().contains("json");
    let in_parts = |parts: &[ChatPart]| {
        parts
            .iter()
            .any(|part| matches!(part, ChatPart::Text(text) if mentions(text)))
    };
    messages.iter().any(|message| match message {
        ChatMessage::System { parts, .. }
        | ChatMessage::User { parts }
        | ChatMessage::Tool { parts, .. } => in_parts(parts),
        ChatMessage::Assistant(message) => message.parts.as_deref().is_some_and(in_parts),
        ChatMessage::LatestReminder { text } => mentions(text),
    })
}

/// Refuses a continued message that is not the last one, or that stands beside tools.
pub(super) fn check_prefix(messages: &[ChatMessage], has_tools: bool) -> Result<()> {
    let has_calls = messages.iter().any(|message| {
        matches!(message, ChatMessage::Assistant(assistant) if assistant.tool_calls.is_some())
    });
    for (index, message) in messages.iter().enumerate() {
        if !matches!(message, ChatMessage::Assistant(assistant) if assistant.prefix) {
            continue;
        }
        let param = format!("messages[{index}].prefix");
        if index + 1 != messages.len() {
            return Err(refusal(
                &param,
                format!("{param}: only the last message can be continued"),
            ));
        }
        if has_tools || has_calls {
            return Err(refusal(
                &param,
                format!("{param}: a continued message excludes tools"),
            ));
        }
    }
    Ok(())
}

/// Refuses a continued message beside the field of this name.
pub(super) fn check_no_prefix(messages: &[ChatMessage], field: &str) -> Result<()> {
    match messages.last() {
        Some(ChatMessage::Assistant(message)) if message.prefix => Err(refusal(
            field,
            format!("{field}: json_object excludes a continued message (prefix)"),
        )),
        _ => Ok(()),
    }
}

/// Refuses calls without results and results without calls.
pub(super) fn check_calls(messages: &[ChatMessage]) -> Result<()> {
    let mut index = 0;
    while index < messages.len() {
        let path = format!("messages[{index}]");
        match &messages[index] {
            ChatMessage::Tool { .. } => {
                return Err(refusal(
                    &path,
                    format!(
                        "{path}: a message of role 'tool' must follow an assistant message with tool_calls"
                    ),
                ));
            }
            ChatMessage::Assistant(ChatAssistant {
                tool_calls: Some(calls),
                ..
            }) => {
                let results = messages[index + 1..]
                    .iter()
                    .map_while(|message| match message {
                        ChatMessage::Tool { tool_call_id, .. } => Some(tool_call_id.as_str()),
                        _ => None,
                    });
                check_results(index, calls, &results.take(calls.len()).collect::<Vec<_>>())?;
                index += calls.len();
            }
            _ => {}
        }
        index += 1;
    }
    Ok(())
}

fn check_results(index: usize, calls: &[ToolCall], results: &[&str]) -> Result<()> {
    let path = format!("messages[{index}].tool_calls");
    if calls.is_empty() {
        return Err(refusal(
            &path,
            format!("{path}: the list is empty; leave it out"),
        ));
    }
    let mut ids = HashSet::with_capacity(calls.len());
    for (position, call) in calls.iter().enumerate() {
        if !ids.insert(call.id.as_str()) {
            return Err(refusal(
                format!("{path}[{position}].id"),
                format!(
                    "{path}: tool_call_id {:?} occurs twice in message[{index}]; ids must differ",
                    call.id
                ),
            ));
        }
    }
    let answered: HashSet<&str> = results.iter().copied().collect();
    let missing: Vec<_> = ids.difference(&answered).take(MAX_SHOWN_IDS).collect();
    if results.len() < calls.len() || !missing.is_empty() {
        let others: Vec<_> = answered.difference(&ids).take(MAX_SHOWN_IDS).collect();
        return Err(refusal(
            &path,
            format!(
                "{path}: each call needs a tool message with its tool_call_id right after it; \
                 missing: {missing:?}, unexpected: {others:?}"
            ),
        ));
    }
    Ok(())
}

/// Appends the converted messages, with the index that each comes from.
///
/// System messages without content are left out.
pub(super) fn convert(
    input: Vec<ChatMessage>,
    images: ImagePolicy,
    options: &ConversionOptions,
) -> Result<(Vec<Message>, Vec<usize>)> {
    let mut messages = Vec::with_capacity(input.len());
    let mut origins = Vec::with_capacity(input.len());
    let image_token = options.special_tokens.token(SpecialToken::Image);
    for (index, message) in input.into_iter().enumerate() {
        let content = |parts| convert_parts(parts, index, images, image_token, options.compat);
        let converted = match message {
            ChatMessage::System {
                is_developer: true, ..
            } if options.compat => {
                let param = format!("messages[{index}].role");
                let names = "\"system\", \"user\", \"assistant\", \"tool\" or \"latest_reminder\"";
                return Err(refusal(
                    &param,
                    format!("{param}: expected {names}, got \"developer\""),
                ));
            }
            ChatMessage::System { parts, .. } => {
                let content = content(parts)?;
                if content.text().is_empty() {
                    continue;
                }
                Message::System(SystemMessage {
                    content,
                    tools: None,
                })
            }
            ChatMessage::User { parts } => Message::User(content(parts)?),
            ChatMessage::Tool {
                parts,
                tool_call_id,
            } => Message::Tool(ToolMessage {
                content: content(parts)?,
                tool_call_id: Some(tool_call_id),
            }),
            ChatMessage::LatestReminder { text } => Message::LatestReminder(text),
            ChatMessage::Assistant(message) => {
                Message::Assistant(convert_assistant(message, index)?)
            }
        };
        messages.push(converted);
        origins.push(index);
    }
    Ok((messages, origins))
}

fn convert_assistant(message: ChatAssistant, index: usize) -> Result<AssistantMessage> {
    let path = format!("messages[{index}]");
    if message.parts.is_none() && message.tool_calls.is_none() {
        return Err(refusal(
            format!("{path}.content"),
            format!("{path}.content: an assistant message needs content or tool_calls"),
        ));
    }
    let mut texts = Vec::new();
    for part in message.parts.unwrap_or_default() {
        match part {
            ChatPart::Text(text) => texts.push(text),
            ChatPart::ImageUrl { path, .. } | ChatPart::File { path, .. } => {
                return Err(refusal(
                    &path,
                    format!("{path}: an assistant message cannot hold images"),
                ));
            }
        }
    }
    Ok(AssistantMessage {
        content: texts.join(PART_SEPARATOR),
        reasoning_content: message.reasoning_content,
        tool_calls: message.tool_calls,
        prefix: message.prefix,
    })
}

fn convert_parts(
    parts: Vec<ChatPart>,
    index: usize,
    images: ImagePolicy,
    image_token: &str,
    compat: bool,
) -> Result<Content> {
    let said = format!(".messages[{index}]");
    let mut converted = Vec::with_capacity(parts.len());
    for (position, part) in parts.into_iter().enumerate() {
        converted.push(match part {
            ChatPart::Text(text) => Part::Text(text),
            ChatPart::ImageUrl { url, detail, path } => {
                let param = format!("{path}.image_url.url");
                let place = Place {
                    said: &said,
                    param: &param,
                };
                match images.substitute(place)? {
                    Some(substitute) => substitute,
                    None => Part::Image(image_from_url(&url, detail, place, position)?),
                }
            }
            ChatPart::File {
                file_id,
                file_data,
                is_nested,
                path,
            } => {
                let place = Place {
                    said: &said,
                    param: &path,
                };
                match images.substitute(place)? {
                    Some(substitute) => substitute,
                    None => {
                        Part::Image(file_image(file_id, file_data, is_nested && compat, place)?)
                    }
                }
            }
        });
    }
    Ok(content::join(converted, image_token))
}

/// An image from a URL; a URL that is too long is named in full.
fn image_from_url(
    url: &str,
    detail: ImageDetail,
    place: Place<'_>,
    position: usize,
) -> Result<ImageSource> {
    let is_long = url.len() > limits::MAX_URL_BYTES && !url.starts_with("data:");
    if !is_long {
        return content::image_from_url(url, detail, place);
    }
    let said = format!("{}.image_url.url[{position}]", place.said);
    content::image_from_url(
        url,
        detail,
        Place {
            said: &said,
            ..place
        },
    )
}

fn file_image(
    file_id: Option<String>,
    file_data: Option<String>,
    is_hidden: bool,
    place: Place<'_>,
) -> Result<ImageSource> {
    match (file_id, file_data) {
        (Some(_), Some(_)) if !is_hidden => {
            Err(place.refuse("file_id and file_data exclude each other"))
        }
        (Some(_), None) if !is_hidden => Err(place
            .refuse("file_id is not supported; send the image as file_data, a base64 data URL")),
        (None, Some(data)) if !is_hidden => {
            content::check_data_url(&data, place)?;
            Ok(ImageSource {
                data: ImageData::DataUrl(data),
                detail: ImageDetail::High,
                path: place.said.to_owned(),
            })
        }
        _ => Err(place.refuse("a file part needs file_id or file_data")),
    }
}
