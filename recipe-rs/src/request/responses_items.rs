//! Input items of the Responses protocol, as they are read.

use crate::carried_reasoning;
use crate::conversation::{ImageDetail, ToolCall};
use crate::error::Result;
use crate::json;
use crate::request::reader::Field;
use crate::request::responses_tools::{self, DeclaredTool, TOOL_SEARCH};
use crate::wire_constants::WIRE;

/// One item, with its place in the list.
#[derive(Debug, Clone)]
pub(super) struct Item {
    pub(super) index: usize,
    pub(super) kind: ItemKind,
}

#[derive(Debug, Clone)]
pub(super) enum ItemKind {
    /// An item of a type that the codec does not know.
    Unknown,
    /// A search that the server ran; it ends a turn with calls.
    WebSearchCall,
    Message {
        role: Role,
        parts: Vec<InputPart>,
    },
    Reasoning {
        text: Option<String>,
        is_encrypted: bool,
        /// Reasoning that an earlier response packed into the encrypted content.
        carried: Option<String>,
    },
    Call {
        call: ToolCall,
        namespace: Option<String>,
    },
    /// A call of the search for tools.
    SearchCall(ToolCall),
    Output {
        call_id: String,
        parts: Vec<InputPart>,
    },
    SearchOutput {
        call_id: String,
        tools: Vec<DeclaredTool>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    User,
    Assistant,
    System,
    Developer,
}

#[derive(Debug, Clone)]
pub(super) enum InputPart {
    Text(String),
    Image {
        image_url: Option<String>,
        file_id: Option<String>,
        detail: ImageDetail,
        position: usize,
    },
}

const ROLES: [(&str, Role); 4] = [
    ("user", Role::User),
    ("assistant", Role::Assistant),
    ("system", Role::System),
    ("developer", Role::Developer),
];

/// Reads the input: a text or a list of items; items of unknown types are left out.
pub(super) fn read(input: &Field<'_, '_>) -> Result<Vec<Item>> {
    if let Some(text) = input.value.as_str() {
        let kind = ItemKind::Message {
            role: Role::User,
            parts: vec![InputPart::Text(text.to_owned())],
        };
        return Ok(vec![Item { index: 0, kind }]);
    }
    if !input.value.is_array() {
        return Err(input.refuse("expected a string or a list of items"));
    }
    let mut items = Vec::new();
    for (index, item) in input.items()?.enumerate() {
        let kind = read_item(&item)?;
        items.push(Item { index, kind });
    }
    Ok(items)
}

fn read_item(item: &Field<'_, '_>) -> Result<ItemKind> {
    let members = item.object()?;
    let kind = match members.get("type") {
        None if members.contains_key("role") => "message",
        None => return Err(item.refuse("an item needs a type or a role")),
        Some(_) => item.present("type")?.string()?,
    };
    let text = |key: &str| Ok::<_, crate::error::Error>(item.required(key)?.string()?.to_owned());
    Ok(match kind {
        "message" => ItemKind::Message {
            role: item.required("role")?.choice(&ROLES)?,
            parts: read_parts(&item.required("content")?, &MESSAGE_PARTS)?,
        },
        "reasoning" => ItemKind::Reasoning {
            text: item
                .optional("content")?
                .map(|content| read_reasoning(&content))
                .transpose()?
                .flatten(),
            is_encrypted: item.optional_string("encrypted_content")?.is_some(),
            carried: item
                .optional_string("encrypted_content")?
                .and_then(carried_reasoning::unpack),
        },
        "function_call" => ItemKind::Call {
            namespace: item.optional_string("namespace")?.map(str::to_owned),
            call: ToolCall {
                id: text("call_id")?,
                name: text("name")?,
                arguments: text("arguments")?,
            },
        },
        "custom_tool_call" => {
            let input = serde_json::json!({"input": text("input")?});
            let arguments = json::compact(&input);
            ItemKind::Call {
                namespace: None,
                call: ToolCall {
                    id: text("call_id")?,
                    name: text("name")?,
                    arguments,
                },
            }
        }
        "tool_search_call" => {
            let arguments = item.required("arguments")?;
            arguments.object()?;
            responses_tools::read_execution(item)?;
            let arguments = json::compact(arguments.value);
            ItemKind::SearchCall(ToolCall {
                id: text("call_id")?,
                name: TOOL_SEARCH.to_owned(),
                arguments,
            })
        }
        "custom_tool_call_output" => ItemKind::Output {
            call_id: text("call_id")?,
            parts: match item.optional("output")? {
                Some(output) => read_parts(&output, &OUTPUT_PARTS)?,
                None => Vec::new(),
            },
        },
        "function_call_output" => ItemKind::Output {
            call_id: text("call_id")?,
            parts: read_parts(&item.required("output")?, &OUTPUT_PARTS)?,
        },
        "tool_search_output" => {
            responses_tools::read_execution(item)?;
            ItemKind::SearchOutput {
                call_id: text("call_id")?,
                tools: responses_tools::read(&item.required("tools")?)?,
            }
        }
        "web_search_call" => ItemKind::WebSearchCall,
        _ => ItemKind::Unknown,
    })
}

/// The texts of a reasoning item, one a line; `None` if there is nothing.
fn read_reasoning(content: &Field<'_, '_>) -> Result<Option<String>> {
    let texts = content
        .items()?
        .map(|part| part.required("text")?.string())
        .collect::<Result<Vec<_>>>()?;
    Ok(Some(texts.join("\n")).filter(|text| !text.is_empty()))
}

#[derive(Clone, Copy)]
enum PartType {
    Text,
    Image,
    File,
}

const MESSAGE_PARTS: [(&str, PartType); 4] = [
    ("input_text", PartType::Text),
    ("output_text", PartType::Text),
    ("input_image", PartType::Image),
    ("input_file", PartType::File),
];

const OUTPUT_PARTS: [(&str, PartType); 3] = [
    ("input_text", PartType::Text),
    ("input_image", PartType::Image),
    ("input_file", PartType::File),
];

fn read_parts(content: &Field<'_, '_>, types: &[(&str, PartType)]) -> Result<Vec<InputPart>> {
    if let Some(text) = content.value.as_str() {
        return Ok(vec![InputPart::Text(text.to_owned())]);
    }
    if !content.value.is_array() {
        return Err(content.refuse("expected a string or a list of parts"));
    }
    content
        .items()?
        .enumerate()
        .map(|(position, part)| {
            Ok(match part.required("type")?.choice(types)? {
                PartType::Text => InputPart::Text(part.required("text")?.string()?.to_owned()),
                PartType::File => InputPart::Text(WIRE.unsupported_document.clone()),
                PartType::Image => InputPart::Image {
                    image_url: part.optional_string("image_url")?.map(str::to_owned),
                    file_id: part.optional_string("file_id")?.map(str::to_owned),
                    detail: part
                        .optional_choice("detail", &ImageDetail::NAMES)?
                        .unwrap_or_default(),
                    position,
                },
            })
        })
        .collect()
}
