//! Declared tools as JSON: as a response repeats them, and as the model sees those that a search found.

use serde_json::json;

use crate::error::Result;
use crate::json::{Map, Value};
use crate::request::reader::refusal;
use crate::request::responses_tools::{DeclaredTool, FunctionTool};

/// The tools as a response repeats them; unknown types are left out.
pub(super) fn echoed(declared: &[DeclaredTool]) -> Value {
    declared.iter().filter_map(echoed_tool).collect()
}

fn echoed_tool(tool: &DeclaredTool) -> Option<Value> {
    Some(match tool {
        DeclaredTool::Function(function) => Value::Object(function_entry(function)),
        DeclaredTool::Custom { name, .. } => custom_entry(name),
        DeclaredTool::Namespace {
            name,
            description,
            tools,
        } => json!({
            "type": "namespace", "name": name, "description": description, "tools": echoed(tools),
        }),
        DeclaredTool::ToolSearch {
            is_client,
            description,
            parameters,
        } => tool_search_entry(*is_client, description.as_deref(), parameters.as_ref()),
        DeclaredTool::WebSearch { value } => web_search_entry(value),
        DeclaredTool::Unknown => return None,
    })
}

/// The tools that a search found as compact JSON, those of namespaces one by one; `path` is where they stand.
pub(super) fn found(declared: &[DeclaredTool], path: &str) -> Result<String> {
    let mut list = Vec::new();
    for (index, tool) in declared.iter().enumerate() {
        if let DeclaredTool::Namespace {
            name,
            description,
            tools,
        } = tool
        {
            for inner in tools {
                if let DeclaredTool::Function(function) = inner {
                    let mut entry = function_entry(function);
                    let description = description.as_deref().unwrap_or_default();
                    let namespace = json!({"name": name, "description": description});
                    entry.insert("namespace".to_owned(), namespace);
                    list.push(Value::Object(entry));
                }
            }
            continue;
        }
        let entry = echoed_tool(tool).ok_or_else(|| {
            let path = format!("{path}[{index}]");
            let message = format!("{path}: tools of this type cannot be found by a search");
            refusal(&path, message)
        })?;
        list.push(entry);
    }
    Ok(Value::Array(list).to_string())
}

fn custom_entry(name: &str) -> Value {
    json!({"type": "custom", "name": name})
}

fn tool_search_entry(
    is_client: Option<bool>,
    description: Option<&str>,
    parameters: Option<&Value>,
) -> Value {
    json!({
        "type": "tool_search",
        "execution": is_client.map(|is_client| if is_client { "client" } else { "server" }),
        "description": description,
        "parameters": parameters,
    })
}

fn web_search_entry(tool: &Value) -> Value {
    let member = |name: &str| tool.get(name).cloned().unwrap_or_default();
    let location = match tool.get("user_location") {
        Some(Value::Object(given)) => {
            let part = |name: &str| given.get(name).cloned().unwrap_or_default();
            json!({
                "city": part("city"), "country": part("country"),
                "region": part("region"), "timezone": part("timezone"),
            })
        }
        _ => Value::Null,
    };
    json!({
        "type": member("type"),
        "search_context_size": member("search_context_size"),
        "user_location": location,
    })
}

fn function_entry(function: &FunctionTool) -> Map<String, Value> {
    let mut entry = Map::new();
    entry.insert("type".to_owned(), Value::from("function"));
    entry.insert("name".to_owned(), Value::from(function.name.as_str()));
    entry.insert(
        "description".to_owned(),
        Value::from(function.description.clone()),
    );
    entry.insert(
        "parameters".to_owned(),
        function.parameters.clone().unwrap_or_default(),
    );
    entry.insert("strict".to_owned(), Value::from(function.strict));
    entry
}
