//! Tools of a request, the choice between them, and the constraints that follow.

use std::collections::BTreeMap;

use crate::conversation::{ToolChoice, ToolDefinition};
use crate::error::{Error, Result};
use crate::json::{self, Map, Value};
use crate::request::OutputConstraint;
use crate::request::reader::{Field, refusal};
use crate::request::schema::{self, StrictRules};

/// Longest name of a tool.
const MAX_NAME_LENGTH: usize = 128;

/// A tool as the request declares it.
#[derive(Debug, Clone)]
pub(super) struct RequestedTool {
    pub(super) name: String,
    pub(super) description: Option<String>,
    pub(super) parameters: Option<Value>,
    pub(super) strict: Option<bool>,
    pub(super) defer_loading: bool,
    /// Path of the name, as the official codec spells it.
    pub(super) name_path: String,
    /// Path of the parameters.
    pub(super) parameters_path: String,
}

/// What the request says about calling tools.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum RequestedChoice {
    #[default]
    Auto,
    None,
    Required,
    /// Required, and only this tool.
    Named(String),
    /// Only these tools may be called; all stay in the prompt.
    Allowed {
        required: bool,
        names: Vec<String>,
    },
}

/// The tools of a conversation and which of them may be called.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ToolSet {
    pub(super) tools: Vec<ToolDefinition>,
    pub(super) choice: ToolChoice,
    /// Names that the choice is limited to.
    allowed: Option<Vec<String>>,
}

/// Refuses a name with other characters than letters, digits, `_` and `-`, or of a wrong length.
pub(super) fn check_name(name: &str, path: &str) -> Result<()> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if name.is_empty() || name.len() > MAX_NAME_LENGTH || !name.bytes().all(is_allowed) {
        return Err(refusal(
            path,
            format!(
                "{path}: {:?} is no tool name; use 1 to {MAX_NAME_LENGTH} letters, digits, underscores and hyphens",
                name.chars().take(MAX_NAME_LENGTH).collect::<String>()
            ),
        ));
    }
    Ok(())
}

/// A choice given as a word.
pub(super) fn choice_word(choice: &Field<'_, '_>) -> Result<RequestedChoice> {
    let words = [("none", 0_u8), ("auto", 1), ("required", 2)];
    Ok(match choice.choice(&words)? {
        0 => RequestedChoice::None,
        1 => RequestedChoice::Auto,
        _ => RequestedChoice::Required,
    })
}

/// A tool of a request that forbids calls: only its name is checked.
pub(super) fn named_only(tool: &RequestedTool) -> Result<ToolDefinition> {
    check_name(&tool.name, &tool.name_path)?;
    Ok(ToolDefinition {
        name: tool.name.clone(),
        description: tool.description.clone(),
        parameters: tool
            .parameters
            .clone()
            .unwrap_or_else(|| Value::Object(Map::new())),
        strict: tool.strict,
        defer_loading: tool.defer_loading,
    })
}

/// Checks all tools; if the choice drops them, only their names.
pub(super) fn definitions(
    tools: Vec<RequestedTool>,
    choice: &RequestedChoice,
    compat: bool,
) -> Result<Vec<ToolDefinition>> {
    if *choice == RequestedChoice::None {
        tools
            .iter()
            .try_for_each(|tool| named_only(tool).map(|_| ()))?;
        return Ok(Vec::new());
    }
    let definitions = tools
        .into_iter()
        .map(|tool| definition(tool, compat))
        .collect::<Result<Vec<_>>>()?;
    check_unique(&definitions)?;
    Ok(definitions)
}

/// Checks one tool and makes it ready for the prompt.
pub(super) fn definition(tool: RequestedTool, compat: bool) -> Result<ToolDefinition> {
    check_name(&tool.name, &tool.name_path)?;
    let parameters = match tool.parameters {
        None if tool.strict == Some(true) => {
            let empty = serde_json::json!({"type": "object"});
            strict_parameters(&tool.name, &empty, &tool.parameters_path, compat)?
        }
        None => Value::Object(Map::new()),
        Some(parameters) if tool.strict == Some(true) => {
            strict_parameters(&tool.name, &parameters, &tool.parameters_path, compat)?
        }
        Some(parameters) => check_parameters(&tool.name, parameters, &tool.parameters_path)?,
    };
    Ok(ToolDefinition {
        name: tool.name,
        description: tool.description,
        parameters,
        strict: tool.strict,
        defer_loading: tool.defer_loading,
    })
}

fn strict_parameters(name: &str, parameters: &Value, path: &str, compat: bool) -> Result<Value> {
    let rules = StrictRules {
        keeps_definitions: !compat,
        allows_empty_root: true,
    };
    schema::normalise_strict(parameters, rules).map_err(|problem| {
        let message = format!("tool parameters of function {name:?} ({path}): {problem}");
        refusal(path, message)
    })
}

fn check_parameters(name: &str, parameters: Value, path: &str) -> Result<Value> {
    let refuse = |problem: &str| {
        refusal(
            path,
            format!("schema of function '{name}' ({path}): {problem}"),
        )
    };
    schema::check(&parameters).map_err(|problem| refuse(&problem))?;
    if parameters.get("type").and_then(Value::as_str) != Some("object") {
        return Err(refuse("the top level must have \"type\": \"object\""));
    }
    Ok(parameters)
}

/// The refusal of a choice that names no declared tool.
pub(super) fn undeclared(name: &str) -> Error {
    refusal(
        "tool_choice",
        format!("tool_choice: no tool {name:?} is declared; name one of the tools"),
    )
}

/// Refuses two tools of one name.
pub(super) fn check_unique(tools: &[ToolDefinition]) -> Result<()> {
    let mut seen = std::collections::HashSet::with_capacity(tools.len());
    for tool in tools {
        if !seen.insert(tool.name.as_str()) {
            return Err(refusal(
                "tools",
                format!(
                    "tools: {:?} is declared twice; names must differ",
                    tool.name
                ),
            ));
        }
    }
    Ok(())
}

/// Refuses strict beside other tools, which only the official codec does.
fn check_strict_is_uniform(tools: &[ToolDefinition]) -> Result<()> {
    let strict = tools
        .iter()
        .filter(|tool| tool.strict == Some(true))
        .count();
    if strict == 0 || strict == tools.len() {
        return Ok(());
    }
    Err(refusal(
        "tools",
        "tools: strict and other tools exclude each other; set strict on all or on none",
    ))
}

/// Applies the choice to the tools.
pub(super) fn choose(
    mut tools: Vec<ToolDefinition>,
    choice: RequestedChoice,
    thinking_mode: bool,
    compat: bool,
) -> Result<ToolSet> {
    if choice == RequestedChoice::None {
        return Ok(ToolSet {
            choice: ToolChoice::None,
            ..ToolSet::default()
        });
    }
    if tools.is_empty() {
        return Ok(ToolSet::default());
    }
    let (choice, allowed) = match choice {
        RequestedChoice::Auto | RequestedChoice::None => (ToolChoice::Auto, None),
        RequestedChoice::Required => (ToolChoice::Required, None),
        RequestedChoice::Named(name) => {
            tools.retain(|tool| tool.name == name);
            if tools.is_empty() {
                return Err(undeclared(&name));
            }
            (ToolChoice::Required, None)
        }
        RequestedChoice::Allowed { required, names } => {
            for name in &names {
                if !tools.iter().any(|tool| tool.name == *name) {
                    return Err(undeclared(name));
                }
            }
            (
                if required {
                    ToolChoice::Required
                } else {
                    ToolChoice::Auto
                },
                Some(names),
            )
        }
    };
    if choice == ToolChoice::Required && thinking_mode && compat {
        return Err(refusal(
            "tool_choice",
            "tool_choice: a forced call excludes thinking mode; use \"auto\" or turn thinking off",
        ));
    }
    if compat {
        check_strict_is_uniform(&tools)?;
    }
    Ok(ToolSet {
        tools,
        choice,
        allowed,
    })
}

impl ToolSet {
    /// Whether the prompt offers tools.
    pub(super) fn is_active(&self) -> bool {
        !self.tools.is_empty() && self.choice != ToolChoice::None
    }

    /// The constraint on calls, if tools are offered.
    pub(super) fn constraint(&self) -> Option<OutputConstraint> {
        if !self.is_active() {
            return None;
        }
        let list = Value::Array(self.callable().map(function_value).collect());
        let list = json::compact(&list);
        Some(match self.choice {
            ToolChoice::Required => OutputConstraint::ToolCallRequired(list),
            ToolChoice::Auto | ToolChoice::None => OutputConstraint::ToolCall(list),
        })
    }

    fn callable(&self) -> impl Iterator<Item = &ToolDefinition> {
        self.tools.iter().filter(|tool| match &self.allowed {
            Some(names) => names.contains(&tool.name),
            None => true,
        })
    }

    /// Parameter names of each tool.
    pub(super) fn parameter_names(&self) -> BTreeMap<String, Vec<String>> {
        let names = |tool: &ToolDefinition| {
            let properties = tool.parameters.get("properties").and_then(Value::as_object);
            properties
                .map(|properties| properties.keys().cloned().collect())
                .unwrap_or_default()
        };
        self.tools
            .iter()
            .map(|tool| (tool.name.clone(), names(tool)))
            .collect()
    }
}

fn function_value(tool: &ToolDefinition) -> Value {
    let mut function = Map::new();
    function.insert("name".to_owned(), Value::from(tool.name.as_str()));
    function.insert(
        "description".to_owned(),
        Value::from(tool.description.clone()),
    );
    function.insert("parameters".to_owned(), tool.parameters.clone());
    function.insert("strict".to_owned(), Value::from(tool.strict));
    let mut entry = Map::new();
    entry.insert("type".to_owned(), Value::from("function"));
    entry.insert("function".to_owned(), Value::Object(function));
    if tool.defer_loading {
        entry.insert("defer_loading".to_owned(), Value::Bool(true));
    }
    Value::Object(entry)
}
