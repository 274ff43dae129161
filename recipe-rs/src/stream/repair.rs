//! Mending of what a model writes in place of well-formed arguments.
//!
//! The rule behind all of it: a finished call carries one valid JSON object, nothing that the model
//! wrote turns into an empty object, and bytes that were sent are never contradicted.

use serde_json::{Map, Value};

use super::json_escape::quoted;
use super::json_scan::{JsonShape, shape_of};

/// Parameter that carries text which could not be read as parameters.
///
/// The renderer writes broken arguments of the history under the same name.
pub(crate) const UNREADABLE_PARAMETER: &str = "arguments";

/// Parameters under which models wrap a whole object.
const WRAPPERS: [&str; 2] = ["arguments", "input"];

/// A value that should be JSON: as it is if it is valid, else as a string.
///
/// The flag tells whether it had to be mended.
pub(crate) fn json_value(text: &str) -> (String, bool) {
    match shape_of(text) {
        JsonShape::Value => (text.to_owned(), false),
        JsonShape::Prefix | JsonShape::Invalid => (quoted(text), true),
    }
}

/// The arguments of a call whose body holds text in place of parameters.
pub(crate) fn body_arguments(body: &str) -> String {
    let body = body.trim();
    if body.starts_with('{') && shape_of(body) == JsonShape::Value {
        body.to_owned()
    } else {
        format!("{{{}: {}}}", quoted(UNREADABLE_PARAMETER), quoted(body))
    }
}

/// Whether `name` is a wrapper and no parameter of the tool.
pub(crate) fn is_wrapper(name: &str, declared: &[String]) -> bool {
    WRAPPERS.contains(&name) && !declared.iter().any(|known| known == name)
}

/// The members inside a wrapped object, without braces, if all of them are parameters of the tool.
///
/// A string may hold the object as it is or escaped once more.
pub(crate) fn unwrapped_members(
    value: &str,
    is_string: bool,
    declared: &[String],
) -> Option<String> {
    let as_it_is = members_of(value, declared);
    if as_it_is.is_some() || !is_string {
        return as_it_is;
    }
    let unescaped: String = serde_json::from_str(&format!("\"{value}\"")).ok()?;
    members_of(&unescaped, declared)
}

fn members_of(text: &str, declared: &[String]) -> Option<String> {
    let object: Map<String, Value> = serde_json::from_str(text).ok()?;
    let are_declared = object.keys().all(|key| declared.contains(key));
    let inner = text.trim().strip_prefix('{')?.strip_suffix('}')?.trim();
    are_declared.then(|| inner.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn declared(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    proptest! {
        #[test]
        fn mended_values_are_json(text in any::<String>()) {
            let (value, mended) = json_value(&text);
            let parsed: Value = serde_json::from_str(&value).unwrap();
            if mended {
                prop_assert_eq!(parsed, Value::String(text));
            }
        }

        #[test]
        fn bodies_become_objects_that_keep_the_text(body in any::<String>()) {
            let parsed: Map<String, Value> = serde_json::from_str(&body_arguments(&body)).unwrap();
            let is_object = body.trim().starts_with('{');
            prop_assert!(is_object || !parsed.is_empty());
        }
    }

    #[test]
    fn only_objects_of_declared_keys_are_unwrapped() {
        let tool = declared(&["city"]);
        assert!(is_wrapper("arguments", &tool) && is_wrapper("input", &tool));
        assert!(!is_wrapper("arguments", &declared(&["arguments"])));
        assert!(!is_wrapper("city", &tool));
        let unwrap = |value, is_string| unwrapped_members(value, is_string, &tool);
        assert_eq!(
            unwrap("{\"city\":\"Rome\"}", false).unwrap(),
            "\"city\":\"Rome\""
        );
        assert_eq!(
            unwrap("{\\\"city\\\":\\\"Rome\\\"}", true).unwrap(),
            "\"city\":\"Rome\""
        );
        assert_eq!(unwrap(" {} ", false).unwrap(), "");
        assert_eq!(unwrap("{\"town\":\"Rome\"}", false), None);
        assert_eq!(unwrap("Rome", true), None);
    }
}
