//! Typed reading of a request body; every refusal names the path of the field at fault.

use std::fmt;

use crate::error::{Error, Result};
use crate::json::{Map, Value};

/// Longest piece of a value that an error message shows.
const SHOWN_CHARACTERS: usize = 40;

/// Place of a value in the body, linked to the place of its container.
#[derive(Clone, Copy)]
pub(super) struct Path<'p> {
    parent: Option<&'p Path<'p>>,
    step: Step<'p>,
}

#[derive(Clone, Copy)]
enum Step<'p> {
    Root,
    Key(&'p str),
    Index(usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(parent) = self.parent else {
            return Ok(());
        };
        parent.fmt(formatter)?;
        match self.step {
            Step::Root => Ok(()),
            Step::Index(index) => write!(formatter, "[{index}]"),
            Step::Key(key) if parent.parent.is_none() => formatter.write_str(key),
            Step::Key(key) => write!(formatter, ".{key}"),
        }
    }
}

/// A refusal with status 400: `param` is the path, `message` says what is wrong.
pub(super) fn refusal(param: impl Into<String>, message: impl Into<String>) -> Error {
    Error::Conversion {
        message: message.into(),
        param: Some(param.into()),
        status_code: 400,
    }
}

/// A value of the body and its place.
#[derive(Clone, Copy)]
pub(super) struct Field<'v, 'p> {
    pub(super) value: &'v Value,
    path: Path<'p>,
}

impl<'v> Field<'v, '_> {
    /// The whole body.
    pub(super) fn root(value: &'v Value) -> Self {
        let path = Path {
            parent: None,
            step: Step::Root,
        };
        Self { value, path }
    }
}

impl<'v, 'p> Field<'v, 'p> {
    /// Path as text, like `messages[2].content`.
    pub(super) fn path(&self) -> String {
        self.path.to_string()
    }

    /// A refusal of this value.
    pub(super) fn refuse(&self, problem: impl fmt::Display) -> Error {
        let path = self.path();
        let place = if path.is_empty() {
            "request body"
        } else {
            path.as_str()
        };
        refusal(path.clone(), format!("{place}: {problem}"))
    }

    fn expected(&self, what: &str) -> Error {
        self.refuse(format_args!("expected {what}, got {}", shown(self.value)))
    }

    /// The object's members.
    pub(super) fn object(&self) -> Result<&'v Map<String, Value>> {
        self.value
            .as_object()
            .ok_or_else(|| self.expected("an object"))
    }

    /// A member that is there and not null.
    pub(super) fn optional<'s>(&'s self, key: &'s str) -> Result<Option<Field<'v, 's>>> {
        let member = self.object()?.get(key).filter(|member| !member.is_null());
        Ok(member.map(|value| self.child(value, key)))
    }

    /// A member that must be there; null counts as absent.
    pub(super) fn required<'s>(&'s self, key: &'s str) -> Result<Field<'v, 's>> {
        self.optional(key)?.ok_or_else(|| {
            self.child(&Value::Null, key)
                .refuse(if self.value.get(key).is_some() {
                    "must not be null"
                } else {
                    "is missing"
                })
        })
    }

    /// A member that must be there, null included.
    pub(super) fn present<'s>(&'s self, key: &'s str) -> Result<Field<'v, 's>> {
        match self.object()?.get(key) {
            Some(value) => Ok(self.child(value, key)),
            None => Err(self.child(&Value::Null, key).refuse("is missing")),
        }
    }

    fn child<'s>(&'s self, value: &'v Value, key: &'s str) -> Field<'v, 's> {
        let path = Path {
            parent: Some(&self.path),
            step: Step::Key(key),
        };
        Field { value, path }
    }

    /// The items of an array.
    pub(super) fn items<'s>(
        &'s self,
    ) -> Result<impl Iterator<Item = Field<'v, 's>> + use<'s, 'v, 'p>> {
        let items = self
            .value
            .as_array()
            .ok_or_else(|| self.expected("a list"))?;
        let parent = &self.path;
        Ok(items.iter().enumerate().map(move |(index, value)| {
            let path = Path {
                parent: Some(parent),
                step: Step::Index(index),
            };
            Field { value, path }
        }))
    }

    pub(super) fn string(&self) -> Result<&'v str> {
        self.value.as_str().ok_or_else(|| self.expected("a string"))
    }

    pub(super) fn boolean(&self) -> Result<bool> {
        self.value
            .as_bool()
            .ok_or_else(|| self.expected("true or false"))
    }

    /// An integer from 0 to `limit`.
    pub(super) fn unsigned(&self, limit: u64) -> Result<u64> {
        self.value
            .as_u64()
            .filter(|number| *number <= limit)
            .ok_or_else(|| self.expected(&format!("an integer from 0 to {limit}")))
    }

    /// An integer of 64 bits.
    pub(super) fn integer(&self) -> Result<i64> {
        self.value
            .as_i64()
            .ok_or_else(|| self.expected("an integer"))
    }

    /// A number of single precision.
    pub(super) fn float(&self) -> Result<f32> {
        let number = self
            .value
            .as_f64()
            .ok_or_else(|| self.expected("a number"))?;
        Ok(number as f32)
    }

    /// One of some names.
    pub(super) fn choice<T: Copy>(&self, names: &[(&str, T)]) -> Result<T> {
        let name = self.value.as_str();
        names
            .iter()
            .find_map(|(known, value)| (Some(*known) == name).then_some(*value))
            .ok_or_else(|| self.expected(&alternatives(names.iter().map(|(known, _)| *known))))
    }

    pub(super) fn optional_string(&self, key: &str) -> Result<Option<&'v str>> {
        self.optional(key)?.map(|field| field.string()).transpose()
    }

    pub(super) fn optional_bool(&self, key: &str) -> Result<Option<bool>> {
        self.optional(key)?.map(|field| field.boolean()).transpose()
    }

    pub(super) fn optional_float(&self, key: &str) -> Result<Option<f32>> {
        self.optional(key)?.map(|field| field.float()).transpose()
    }

    pub(super) fn optional_unsigned(&self, key: &str, limit: u64) -> Result<Option<u64>> {
        self.optional(key)?
            .map(|field| field.unsigned(limit))
            .transpose()
    }

    pub(super) fn optional_choice<T: Copy>(
        &self,
        key: &str,
        names: &[(&str, T)],
    ) -> Result<Option<T>> {
        self.optional(key)?
            .map(|field| field.choice(names))
            .transpose()
    }
}

/// Lists names as `"a", "b" or "c"`.
pub(super) fn alternatives<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let quoted: Vec<String> = names.map(|name| format!("{name:?}")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}

/// A short text of a value.
fn shown(value: &Value) -> String {
    match value {
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::String(text) => {
            let start: String = text.chars().take(SHOWN_CHARACTERS).collect();
            let ellipsis = if start.len() < text.len() { "..." } else { "" };
            format!("{start:?}{ellipsis}")
        }
        other => other.to_string(),
    }
}

/// Parses the bytes of a body.
///
/// # Errors
/// [`Error::Conversion`] with line and column if the text is no JSON, and for a body that is no
/// object.
pub(crate) fn parse_body(body: &[u8]) -> Result<Value> {
    let value: Value = serde_json::from_slice(body).map_err(|error| Error::Conversion {
        message: format!("request body is not valid JSON: {error}"),
        param: None,
        status_code: 400,
    })?;
    check_body(value)
}

/// Refuses a body that is too long, before it is parsed.
#[cfg(feature = "python")]
pub(crate) fn check_size(num_bytes: u64, max_bytes: Option<u64>) -> Result<()> {
    match max_bytes {
        Some(max_bytes) if num_bytes > max_bytes => Err(Error::Conversion {
            message: format!(
                "request body has {num_bytes} bytes; at most {max_bytes} are allowed, send a shorter one"
            ),
            param: None,
            status_code: 413,
        }),
        _ => Ok(()),
    }
}

/// Refuses a body that is no object.
pub(crate) fn check_body(value: Value) -> Result<Value> {
    Field::root(&value).object()?;
    Ok(value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message_of(error: &Error) -> String {
        error.to_string()
    }

    #[test]
    fn refusals_name_the_whole_path() {
        let body = json!({"messages": [{"content": [{"text": 3}]}]});
        let root = Field::root(&body);
        let messages = root.required("messages").unwrap();
        let message = messages.items().unwrap().next().unwrap();
        let content = message.required("content").unwrap();
        let part = content.items().unwrap().next().unwrap();
        let text = part.required("text").unwrap();
        assert_eq!(
            message_of(&text.string().unwrap_err()),
            "messages[0].content[0].text: expected a string, got 3"
        );
        assert_eq!(
            message_of(&part.required("type").map(|_| ()).unwrap_err()),
            "messages[0].content[0].type: is missing"
        );
    }

    #[test]
    fn syntax_errors_tell_line_and_column() {
        let error = parse_body(b"{\"a\":\n 1").unwrap_err();
        assert!(message_of(&error).contains("line 2 column 2"));
        assert!(parse_body(b"[]").is_err() && parse_body(b"{} x").is_err());
    }

    #[test]
    fn integers_are_not_rounded_from_floats() {
        let body = json!({"a": 1.0, "b": -1, "c": 7});
        let root = Field::root(&body);
        assert!(root.optional_unsigned("a", 10).is_err());
        assert!(root.optional_unsigned("b", 10).is_err());
        assert_eq!(root.optional_unsigned("c", 10).unwrap(), Some(7));
        assert!(root.optional_unsigned("c", 6).is_err());
    }
}
