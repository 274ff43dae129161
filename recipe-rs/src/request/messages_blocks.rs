//! Content blocks of the Messages protocol, as they are read.

use crate::error::Result;
use crate::json::Value;
use crate::request::reader::Field;
use crate::wire_constants::WIRE;

/// One content block.
#[derive(Debug, Clone)]
pub(super) enum Block {
    Text(String),
    Image(ImageReference),
    /// A document: what is shown in its place, and its text if it has one.
    Document {
        placeholder: String,
        text: Option<String>,
    },
    Thinking(String),
    ToolUse {
        id: String,
        name: String,
        input: Value,
    },
    ToolResult {
        id: String,
        parts: Vec<ResultPart>,
        is_error: bool,
    },
    ServerToolUse,
    WebSearchResult,
    ToolAddition(String),
    /// A block that only compat off knows, with the text that stands for it.
    Extension {
        kind: &'static str,
        text: Option<String>,
    },
}

/// One part of the result of a call.
#[derive(Debug, Clone)]
pub(super) enum ResultPart {
    Text(String),
    Image(ImageReference),
    ToolReference(String),
}

/// How a block refers to its image.
#[derive(Debug, Clone)]
pub(super) enum ImageReference {
    Base64 {
        media_type: &'static str,
        data: String,
    },
    Url(String),
    File,
}

const MEDIA_TYPES: [(&str, &str); 5] = [
    ("image/jpeg", "image/jpeg"),
    ("image/jpg", "image/jpeg"),
    ("image/png", "image/png"),
    ("image/gif", "image/gif"),
    ("image/webp", "image/webp"),
];

#[derive(Clone, Copy)]
enum BlockType {
    Text,
    Image,
    Document,
    Thinking,
    ServerToolUse,
    ToolUse,
    ToolResult,
    WebSearchResult,
    ToolAddition,
    RedactedThinking,
    SearchResult,
}

const BLOCK_TYPES: [(&str, BlockType); 11] = [
    ("text", BlockType::Text),
    ("image", BlockType::Image),
    ("document", BlockType::Document),
    ("thinking", BlockType::Thinking),
    ("server_tool_use", BlockType::ServerToolUse),
    ("tool_use", BlockType::ToolUse),
    ("tool_result", BlockType::ToolResult),
    ("web_search_tool_result", BlockType::WebSearchResult),
    ("tool_addition", BlockType::ToolAddition),
    ("redacted_thinking", BlockType::RedactedThinking),
    ("search_result", BlockType::SearchResult),
];

/// Reads content: a text or a list of blocks.
pub(super) fn read(content: &Field<'_, '_>) -> Result<Vec<Block>> {
    if let Some(text) = content.value.as_str() {
        return Ok(vec![Block::Text(text.to_owned())]);
    }
    if !content.value.is_array() {
        return Err(content.refuse("expected a string or a list of blocks"));
    }
    content.items()?.map(|block| read_block(&block)).collect()
}

fn read_block(block: &Field<'_, '_>) -> Result<Block> {
    let text = |key: &str| Ok::<_, crate::error::Error>(block.required(key)?.string()?.to_owned());
    Ok(match block.required("type")?.choice(&BLOCK_TYPES)? {
        BlockType::Text => Block::Text(text("text")?),
        BlockType::Image => Block::Image(read_image(block)?),
        BlockType::Document => read_document(block)?,
        BlockType::Thinking => {
            block.optional_string("signature")?;
            Block::Thinking(text("thinking")?)
        }
        BlockType::ServerToolUse => Block::ServerToolUse,
        BlockType::WebSearchResult => Block::WebSearchResult,
        BlockType::ToolUse => Block::ToolUse {
            id: text("id")?,
            name: text("name")?,
            input: block.present("input")?.value.clone(),
        },
        BlockType::ToolResult => Block::ToolResult {
            id: text("tool_use_id")?,
            parts: block
                .optional("content")?
                .map_or_else(|| Ok(Vec::new()), |content| read_result(&content))?,
            is_error: block.optional_bool("is_error")?.unwrap_or(false),
        },
        BlockType::ToolAddition => {
            let tool = block.required("tool")?;
            tool.required("type")?.choice(&[("tool_reference", ())])?;
            Block::ToolAddition(tool.required("name")?.string()?.to_owned())
        }
        BlockType::RedactedThinking => Block::Extension {
            kind: "redacted_thinking",
            text: None,
        },
        BlockType::SearchResult => Block::Extension {
            kind: "search_result",
            text: Some(read_search_result(block)?),
        },
    })
}

fn read_image(block: &Field<'_, '_>) -> Result<ImageReference> {
    let source = block.required("source")?;
    let types = [("base64", 0_u8), ("url", 1), ("file", 2)];
    Ok(match source.required("type")?.choice(&types)? {
        0 => ImageReference::Base64 {
            media_type: source.required("media_type")?.choice(&MEDIA_TYPES)?,
            data: source.required("data")?.string()?.to_owned(),
        },
        1 => ImageReference::Url(source.required("url")?.string()?.to_owned()),
        _ => ImageReference::File,
    })
}

fn read_document(block: &Field<'_, '_>) -> Result<Block> {
    let source = block.required("source")?;
    let media_type = source.optional_string("media_type")?.unwrap_or("unknown");
    let head = &WIRE.unsupported_document_type_head;
    let tail = &WIRE.unsupported_document_type_tail;
    let kind = source.value.get("type").and_then(Value::as_str);
    let text = match kind {
        Some("text") => source
            .value
            .get("data")
            .and_then(Value::as_str)
            .map(str::to_owned),
        Some("content") => source.value.get("content").and_then(text_of),
        _ => None,
    };
    Ok(Block::Document {
        placeholder: format!("{head}{media_type}{tail}"),
        text,
    })
}

/// The text of a string or of a list of text blocks.
fn text_of(content: &Value) -> Option<String> {
    match content {
        Value::String(text) => Some(text.clone()),
        Value::Array(blocks) => {
            let texts: Vec<&str> = blocks
                .iter()
                .filter_map(|block| block.get("text")?.as_str())
                .collect();
            Some(texts.join("\n\n"))
        }
        _ => None,
    }
}

fn read_search_result(block: &Field<'_, '_>) -> Result<String> {
    let title = block.optional_string("title")?.unwrap_or_default();
    let source = block.optional_string("source")?.unwrap_or_default();
    let content = block
        .optional("content")?
        .and_then(|content| text_of(content.value))
        .unwrap_or_default();
    Ok([title, source, content.as_str()]
        .into_iter()
        .filter(|text| !text.is_empty())
        .collect::<Vec<_>>()
        .join("\n"))
}

fn read_result(content: &Field<'_, '_>) -> Result<Vec<ResultPart>> {
    if let Some(text) = content.value.as_str() {
        return Ok(vec![ResultPart::Text(text.to_owned())]);
    }
    if !content.value.is_array() {
        return Err(content.refuse("expected a string or a list of blocks"));
    }
    let types = [("text", 0_u8), ("image", 1), ("tool_reference", 2)];
    content
        .items()?
        .map(|part| {
            Ok(match part.required("type")?.choice(&types)? {
                0 => ResultPart::Text(part.required("text")?.string()?.to_owned()),
                1 => ResultPart::Image(read_image(&part)?),
                _ => ResultPart::ToolReference(part.required("tool_name")?.string()?.to_owned()),
            })
        })
        .collect()
}
