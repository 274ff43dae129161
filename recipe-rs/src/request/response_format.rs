//! The form that a request demands of the answer.

use crate::conversation::{ResponseFormat, ToolDefinition};
use crate::error::Result;
use crate::json::{self, Value};
use crate::request::OutputConstraint;
use crate::request::reader::{Field, refusal};
use crate::request::schema::{self, StrictRules};

/// The demand as the request spells it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) enum RequestedFormat {
    #[default]
    Text,
    JsonObject,
    JsonSchema {
        schema: Value,
        strict: bool,
    },
    Regex(String),
}

impl RequestedFormat {
    /// Reads the member `schema` and `strict` of a demand for a schema.
    pub(super) fn read_schema(holder: &Field<'_, '_>) -> Result<Self> {
        holder.optional_string("description")?;
        Ok(Self::JsonSchema {
            schema: holder.present("schema")?.value.clone(),
            strict: holder.optional_bool("strict")?.unwrap_or(false),
        })
    }

    /// Checks the demand; `field` is its path.
    ///
    /// # Errors
    /// A refusal of a broken schema, and, in compat mode, of a demand for JSON beside strict tools.
    pub(super) fn resolve(
        format: Option<Self>,
        field: &str,
        tools: &[ToolDefinition],
        compat: bool,
    ) -> Result<(ResponseFormat, Option<OutputConstraint>)> {
        let has_strict_tool = tools.iter().any(|tool| tool.strict == Some(true));
        if compat && has_strict_tool && format.is_some() {
            return Err(refusal(
                field,
                format!(
                    "{field}: response_format excludes strict tools; drop strict from the tools"
                ),
            ));
        }
        Ok(match format.unwrap_or_default() {
            Self::Text => (ResponseFormat::Text, None),
            Self::JsonObject => (
                ResponseFormat::JsonObject,
                Some(OutputConstraint::Json(String::new())),
            ),
            Self::Regex(regex) => {
                let constraint = OutputConstraint::Regex(regex.clone());
                (ResponseFormat::Regex(regex), Some(constraint))
            }
            Self::JsonSchema { schema, strict } => {
                let constraint =
                    OutputConstraint::Json(constraint_schema(&schema, strict, field, compat)?);
                (ResponseFormat::JsonSchema(schema), Some(constraint))
            }
        })
    }
}

fn constraint_schema(schema: &Value, strict: bool, field: &str, compat: bool) -> Result<String> {
    let refuse = |problem: &str| refusal(field, format!("{field}: schema: {problem}"));
    if strict {
        let rules = StrictRules {
            keeps_definitions: !compat,
            allows_empty_root: !compat,
        };
        let normalised =
            schema::normalise_strict(schema, rules).map_err(|problem| refuse(&problem))?;
        return Ok(json::compact(&normalised));
    }
    schema::check(schema).map_err(|problem| refuse(&problem))?;
    Ok(json::compact(schema))
}
