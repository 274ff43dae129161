//! The settings of a Responses request that its responses repeat.

use serde_json::json;

use crate::error::Result;
use crate::json::Value;
use crate::request::reader::Field;
use crate::response::ResponsesEcho;

/// Reads the settings of a body; its tools are left empty.
pub(super) fn read(body: &Field<'_, '_>) -> Result<ResponsesEcho> {
    let unset = ResponsesEcho::default();
    let reasoning = body
        .optional("reasoning")?
        .map_or(unset.reasoning, |given| {
            members(given.value, &["effort", "summary"])
        });
    let text = body
        .optional("text")?
        .map_or(unset.text, |given| echoed_text(given.value));
    let tool_choice = body
        .optional("tool_choice")?
        .map_or(unset.tool_choice, |given| echoed_choice(given.value));
    Ok(ResponsesEcho {
        instructions: body.optional_string("instructions")?.map(str::to_owned),
        max_output_tokens: body.optional_unsigned("max_output_tokens", u64::from(u32::MAX))?,
        temperature: body
            .optional_float("temperature")?
            .unwrap_or(unset.temperature),
        top_p: body.optional_float("top_p")?.unwrap_or(unset.top_p),
        top_logprobs: body
            .optional_unsigned("top_logprobs", u64::from(u8::MAX))?
            .unwrap_or(unset.top_logprobs),
        user: body.optional_string("user")?.map(str::to_owned),
        reasoning,
        text,
        tool_choice,
        ..ResponsesEcho::default()
    })
}

fn echoed_text(text: &Value) -> Value {
    let format = text.get("format").map_or_else(
        || json!({"type": "text"}),
        |format| match format.get("type").and_then(Value::as_str) {
            Some("json_schema") => {
                members(format, &["type", "name", "schema", "description", "strict"])
            }
            _ => members(format, &["type"]),
        },
    );
    json!({"format": format, "verbosity": text.get("verbosity")})
}

/// A choice as given, without members that say nothing.
fn echoed_choice(choice: &Value) -> Value {
    match choice.get("type").and_then(Value::as_str) {
        Some("function" | "custom") => members(choice, &["type", "name"]),
        Some("web_search" | "web_search_2025_08_26") => members(choice, &["type"]),
        _ => choice.clone(),
    }
}

/// An object of these members, null where there is none.
fn members(given: &Value, names: &[&str]) -> Value {
    names
        .iter()
        .map(|&name| {
            (
                name.to_owned(),
                given.get(name).cloned().unwrap_or_default(),
            )
        })
        .collect()
}
