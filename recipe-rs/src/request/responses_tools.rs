//! Tools of the Responses protocol: functions, custom tools, namespaces and tool search.

use serde_json::json;

use crate::conversation::ToolDefinition;
use crate::error::{Error, Result};
use crate::json::Value;
use crate::request::options::{ConversionOptions, ModelVersion, ServedModel, WebSearchBehavior};
use crate::request::reader::{Field, refusal};
use crate::request::reporting::ToolKinds;
use crate::request::tools::{self, RequestedTool};
use crate::wire_constants::WIRE;

/// The only custom tool that the official codec knows.
pub(super) const APPLY_PATCH: &str = "apply_patch";
/// Name of the function that searches for tools.
pub(super) const TOOL_SEARCH: &str = "tool_search";
/// What `apply_patch` does, in our words.
const APPLY_PATCH_DESCRIPTION: &str = "Edit files by a patch. The input starts with the line `*** Begin Patch`, ends with the line `*** End Patch`, and holds one section for each file: `*** Add File: PATH` with every line of the new file after a `+`; `*** Delete File: PATH`; or `*** Update File: PATH`, optionally `*** Move to: PATH`, with hunks that start at a line `@@` and mark kept lines by a blank, removed ones by `-` and new ones by `+`. Paths are relative.\n";

/// A tool as the request declares it.
#[derive(Debug, Clone)]
pub(super) enum DeclaredTool {
    Function(FunctionTool),
    Custom {
        name: String,
        description: Option<String>,
    },
    Namespace {
        name: String,
        description: Option<String>,
        tools: Vec<DeclaredTool>,
    },
    ToolSearch {
        is_client: Option<bool>,
        description: Option<String>,
        parameters: Option<Value>,
    },
    WebSearch {
        value: Value,
    },
    /// A type that the codec does not know; left out.
    Unknown,
}

/// A function tool.
#[derive(Debug, Clone)]
pub(super) struct FunctionTool {
    pub(super) name: String,
    pub(super) description: Option<String>,
    pub(super) parameters: Option<Value>,
    pub(super) strict: Option<bool>,
}

/// What conversion of tools depends on.
#[derive(Clone, Copy)]
pub(super) struct ToolContext<'a> {
    pub(super) model: ServedModel,
    pub(super) options: &'a ConversionOptions,
    /// Whether the request forbids calls, so that only the names of its tools are checked.
    pub(super) forbids_calls: bool,
}

/// Names that tools have in the prompt.
#[derive(Debug, Default)]
pub(super) struct ToolNames {
    taken: std::collections::HashSet<String>,
    kinds: ToolKinds,
}

impl ToolNames {
    /// A free name for a tool of a namespace.
    fn add_namespaced(&mut self, namespace: &str, separator: &str, name: &str) -> String {
        let base = format!("{namespace}{separator}{name}");
        let mut free = base.clone();
        let mut suffix = 0_usize;
        while !self.taken.insert(free.clone()) {
            suffix += 1;
            free = format!("{base}_{suffix}");
        }
        let own = (namespace.to_owned(), name.to_owned());
        self.kinds.namespaced.insert(free.clone(), own);
        free
    }

    /// Whether the tools so far hold the search for tools.
    pub(super) fn has_tool_search(&self) -> bool {
        self.kinds.has_tool_search
    }

    /// The tools whose calls are not reported as those of functions.
    pub(super) fn into_kinds(self) -> ToolKinds {
        self.kinds
    }
}

impl DeclaredTool {
    /// Whether the model gets to see a function for this tool.
    pub(super) fn is_offered(&self, model: ServedModel) -> bool {
        match self {
            Self::Function(_) | Self::Custom { .. } => true,
            Self::Namespace { tools, .. } => !tools.is_empty(),
            Self::ToolSearch { is_client, .. } => {
                *is_client == Some(true) && model.loads_tools_later()
            }
            Self::WebSearch { .. } | Self::Unknown => false,
        }
    }
}

/// Reads a list of tools.
pub(super) fn read(tools: &Field<'_, '_>) -> Result<Vec<DeclaredTool>> {
    tools.items()?.map(|tool| read_tool(&tool)).collect()
}

/// Whether a search for tools runs at the client, if the item says where.
pub(super) fn read_execution(item: &Field<'_, '_>) -> Result<Option<bool>> {
    item.optional_choice("execution", &[("client", true), ("server", false)])
}

fn read_tool(tool: &Field<'_, '_>) -> Result<DeclaredTool> {
    let kind = tool.required("type")?.string()?;
    let description = || Ok::<_, Error>(tool.optional_string("description")?.map(str::to_owned));
    Ok(match kind {
        "function" => DeclaredTool::Function(FunctionTool {
            name: tool.required("name")?.string()?.to_owned(),
            description: description()?,
            parameters: tool
                .optional("parameters")?
                .map(|parameters| parameters.value.clone()),
            strict: tool.optional_bool("strict")?,
        }),
        "custom" => DeclaredTool::Custom {
            name: tool.required("name")?.string()?.to_owned(),
            description: tool
                .value
                .get("description")
                .and_then(Value::as_str)
                .map(str::to_owned),
        },
        "namespace" => DeclaredTool::Namespace {
            name: tool.required("name")?.string()?.to_owned(),
            description: description()?,
            tools: tool
                .required("tools")?
                .items()?
                .map(|inner| {
                    inner
                        .required("type")?
                        .choice(&[("function", ()), ("custom", ())])?;
                    read_tool(&inner)
                })
                .collect::<Result<_>>()?,
        },
        "tool_search" => DeclaredTool::ToolSearch {
            is_client: read_execution(tool)?,
            description: description()?,
            parameters: tool
                .optional("parameters")?
                .map(|parameters| parameters.value.clone()),
        },
        "web_search" | "web_search_2025_08_26" => {
            tool.optional_choice(
                "search_context_size",
                &[("low", ()), ("medium", ()), ("high", ())],
            )?;
            if let Some(location) = tool.optional("user_location")? {
                for part in ["city", "country", "region", "timezone"] {
                    location.optional_string(part)?;
                }
            }
            DeclaredTool::WebSearch {
                value: tool.value.clone(),
            }
        }
        _ => DeclaredTool::Unknown,
    })
}

/// Refuses web search tools where the options say so.
pub(super) fn check_web_search(
    declared: &[DeclaredTool],
    path: &str,
    options: &ConversionOptions,
) -> Result<()> {
    if options.responses_web_search == WebSearchBehavior::Drop {
        return Ok(());
    }
    let is_search = |tool: &DeclaredTool| matches!(tool, DeclaredTool::WebSearch { .. });
    match declared.iter().position(is_search) {
        Some(index) => {
            let path = format!("{path}[{index}]");
            Err(refusal(
                &path,
                format!("{path}: web search tools are not supported here"),
            ))
        }
        None => Ok(()),
    }
}

/// Names the tools of namespaces without checking anything.
pub(super) fn name_unchecked(declared: &[DeclaredTool], model: ServedModel, names: &mut ToolNames) {
    for tool in declared {
        if let DeclaredTool::Namespace { name, tools, .. } = tool {
            for inner in tools {
                if let DeclaredTool::Function(function) = inner {
                    names.add_namespaced(name, model.namespace_separator(), &function.name);
                }
            }
        }
    }
}

/// Turns declared tools into functions; `path` is where they stand.
pub(super) fn definitions(
    declared: Vec<DeclaredTool>,
    path: &str,
    context: ToolContext<'_>,
    names: &mut ToolNames,
) -> Result<Vec<ToolDefinition>> {
    let mut out = Vec::with_capacity(declared.len());
    for (index, tool) in declared.into_iter().enumerate() {
        let path = format!("{path}[{index}]");
        match tool {
            DeclaredTool::Function(function) => {
                let definition = function_definition(function, &path, context)?;
                names.taken.insert(definition.name.clone());
                out.push(definition);
            }
            DeclaredTool::Custom { name, description } => {
                names.kinds.custom.insert(name.clone());
                out.push(custom_definition(name, description, &path, context)?);
            }
            DeclaredTool::Namespace {
                name,
                description,
                tools,
            } => {
                let description = description.as_deref().filter(|text| {
                    !text.is_empty() && context.model.version != ModelVersion::DeepseekV4Pro
                });
                let separator = context.model.namespace_separator();
                for (own, function) in namespace_functions(&name, tools, &path, context)? {
                    let mut definition = function_definition(function, &own, context)?;
                    definition.name = names.add_namespaced(&name, separator, &definition.name);
                    definition.description = match (description, definition.description) {
                        (Some(outer), own) => Some(format!("{outer}\n{}", own.unwrap_or_default())),
                        (None, own) => own,
                    };
                    out.push(definition);
                }
            }
            DeclaredTool::ToolSearch {
                is_client: Some(true),
                description,
                parameters,
            } if context.model.loads_tools_later() => {
                let function = FunctionTool {
                    name: TOOL_SEARCH.to_owned(),
                    description,
                    parameters,
                    strict: None,
                };
                names.kinds.has_tool_search = true;
                out.push(function_definition(function, &path, context)?);
            }
            DeclaredTool::WebSearch { .. }
            | DeclaredTool::ToolSearch { .. }
            | DeclaredTool::Unknown => {}
        }
    }
    Ok(out)
}

fn function_definition(
    function: FunctionTool,
    path: &str,
    context: ToolContext<'_>,
) -> Result<ToolDefinition> {
    let requested = RequestedTool {
        name: function.name,
        description: function.description,
        parameters: function.parameters,
        strict: function.strict,
        defer_loading: false,
        name_path: format!("{path}.name"),
        parameters_path: format!("{path}.parameters"),
    };
    if context.forbids_calls {
        return tools::named_only(&requested);
    }
    tools::definition(requested, context.options.compat)
}

fn custom_definition(
    name: String,
    description: Option<String>,
    path: &str,
    context: ToolContext<'_>,
) -> Result<ToolDefinition> {
    let (description, parameters) = if name == APPLY_PATCH {
        let text = context.options.apply_patch_description.clone();
        let schema = serde_json::from_str(&WIRE.apply_patch_schema).unwrap_or_default();
        (
            Some(text.unwrap_or_else(|| APPLY_PATCH_DESCRIPTION.to_owned())),
            schema,
        )
    } else if context.options.compat {
        return Err(refusal(
            format!("{path}.name"),
            format!("{path}: custom tool '{name}' is not supported; only '{APPLY_PATCH}' is"),
        ));
    } else {
        tools::check_name(&name, &format!("{path}.name"))?;
        let schema = json!({
            "type": "object", "additionalProperties": false,
            "properties": {"input": {"type": "string"}}, "required": ["input"],
        });
        (description, schema)
    };
    Ok(ToolDefinition {
        name,
        description,
        parameters,
        strict: None,
        defer_loading: false,
    })
}

/// The functions of a namespace, each with its path.
fn namespace_functions(
    namespace: &str,
    declared: Vec<DeclaredTool>,
    path: &str,
    context: ToolContext<'_>,
) -> Result<Vec<(String, FunctionTool)>> {
    tools::check_name(namespace, &format!("{path}.name"))?;
    let mut seen = std::collections::HashSet::with_capacity(declared.len());
    let mut functions = Vec::with_capacity(declared.len());
    for (index, tool) in declared.into_iter().enumerate() {
        let path = format!("{path}.tools[{index}]");
        match tool {
            DeclaredTool::Function(function) => {
                if !seen.insert(function.name.clone()) && !context.forbids_calls {
                    let name = &function.name;
                    return Err(refusal(
                        "tools",
                        format!("tools: {name:?} is declared twice in namespace {namespace:?}"),
                    ));
                }
                functions.push((path, function));
            }
            DeclaredTool::Custom { name, .. } => {
                return Err(refusal(
                    &path,
                    format!("{path}: custom tool '{name}' cannot stand in a namespace"),
                ));
            }
            _ => {}
        }
    }
    Ok(functions)
}
