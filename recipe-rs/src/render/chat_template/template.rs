//! A compiled chat template, with the functions and filters that such templates use.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Value};
use minijinja::{Environment, ErrorKind, Output, State};

use super::python_json::Style;
use crate::{Error, Result};

const NAME: &str = "chat_template";

/// A compiled template; clones share it.
#[derive(Clone)]
pub(super) struct Template {
    environment: Arc<Environment<'static>>,
    source: Arc<str>,
}

impl Template {
    /// Compiles `source`.
    ///
    /// # Errors
    /// [`Error::Render`] when it is no valid template.
    pub(super) fn compile(source: &str) -> Result<Self> {
        let syntax = SyntaxConfig::builder()
            .trim_blocks(true)
            .lstrip_blocks(true)
            .build()
            .map_err(|error| failure("the chat template syntax cannot be set up", &error))?;
        let mut environment = Environment::new();
        environment.set_syntax(syntax);
        environment.set_formatter(format_like_python);
        environment
            .set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_function("raise_exception", raise_exception);
        environment.add_function("strftime_now", strftime_now);
        environment.add_filter("tojson", to_json);
        environment
            .add_template_owned(NAME, plain_generation_blocks(source))
            .map_err(|error| failure("the chat template cannot be read", &error))?;
        Ok(Self {
            environment: Arc::new(environment),
            source: source.into(),
        })
    }

    /// The text of the template.
    pub(super) fn source(&self) -> &str {
        &self.source
    }

    /// Renders the template with the given variables.
    ///
    /// # Errors
    /// [`Error::Render`] when the template raises an exception or fails.
    pub(super) fn render(&self, context: BTreeMap<&str, Value>) -> Result<String> {
        self.environment
            .get_template(NAME)
            .and_then(|template| template.render(context))
            .map_err(|error| failure("the chat template refuses this conversation", &error))
    }
}

impl fmt::Debug for Template {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Template")
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}

fn failure(what: &str, error: &minijinja::Error) -> Error {
    let detail = error
        .detail()
        .map_or_else(|| error.kind().to_string(), str::to_owned);
    let line = error
        .line()
        .map(|line| format!(" (line {line} of the template)"))
        .unwrap_or_default();
    Error::Render {
        message: format!("{what}: {detail}{line}"),
        message_index: None,
    }
}

/// Turns `generation` blocks, which only mark text for training, into blocks without effect.
fn plain_generation_blocks(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(at) = rest.find("{%") {
        let (before, tag) = rest.split_at(at + 2);
        out.push_str(before);
        let inner = tag.trim_start_matches(['-', '+']);
        let lead = &tag[..tag.len() - inner.trim_start().len()];
        let word_end = inner
            .trim_start()
            .find(|c: char| !c.is_alphanumeric())
            .unwrap_or(0);
        let (word, after) = inner.trim_start().split_at(word_end);
        let closes = after
            .trim_start()
            .trim_start_matches(['-', '+'])
            .starts_with("%}");
        out.push_str(lead);
        out.push_str(match word {
            "generation" if closes => "if true",
            "endgeneration" if closes => "endif",
            _ => word,
        });
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Prints truth values and none as Python does.
fn format_like_python(
    out: &mut Output<'_>,
    state: &mut State<'_, '_>,
    value: &Value,
) -> std::result::Result<(), minijinja::Error> {
    use minijinja::value::ValueKind;
    let text = match value.kind() {
        ValueKind::None => "None",
        ValueKind::Bool if value.is_true() => "True",
        ValueKind::Bool => "False",
        _ => return minijinja::escape_formatter(out, state, value),
    };
    out.write_str(text).map_err(minijinja::Error::from)
}

fn raise_exception(message: &str) -> std::result::Result<String, minijinja::Error> {
    Err(invalid(message.to_owned()))
}

fn strftime_now(format: &str) -> std::result::Result<String, minijinja::Error> {
    jiff::fmt::strtime::format(format, &jiff::Zoned::now())
        .map_err(|error| invalid(format!("strftime_now cannot use {format:?}: {error}")))
}

fn invalid(message: String) -> minijinja::Error {
    minijinja::Error::new(ErrorKind::InvalidOperation, message)
}

/// JSON as Python's `json.dumps(value, ensure_ascii=False)` prints it, with its arguments.
#[expect(
    clippy::needless_pass_by_value,
    reason = "filters take their arguments by value"
)]
fn to_json(value: &Value, arguments: Kwargs) -> std::result::Result<Value, minijinja::Error> {
    let ensure_ascii: bool = arguments
        .get::<Option<bool>>("ensure_ascii")?
        .unwrap_or(false);
    let sort_keys: bool = arguments.get::<Option<bool>>("sort_keys")?.unwrap_or(false);
    let indent: Option<usize> = arguments.get("indent")?;
    let separators: Option<Vec<String>> = arguments.get("separators")?;
    arguments.assert_all_used()?;
    let mut json =
        serde_json::to_value(value).map_err(|error| invalid(format!("tojson: {error}")))?;
    if sort_keys {
        json.sort_all_objects();
    }
    let style = match (indent, separators.as_deref()) {
        (None, None) => Style::default(),
        (Some(indent), None) => Style::indented(indent),
        (indent, Some([item, key])) => Style {
            indent,
            item,
            key,
            ensure_ascii: false,
        },
        (_, Some(_)) => {
            return Err(invalid(
                "tojson: separators must be a pair of strings".to_owned(),
            ));
        }
    };
    Ok(Value::from_safe_string(
        Style {
            ensure_ascii,
            ..style
        }
        .print(&json),
    ))
}
