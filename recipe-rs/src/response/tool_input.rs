//! The arguments of a call as an object, for protocols that carry no JSON text.

use serde_json::{Map, Value};

use crate::stream::{JsonShape, UNREADABLE_PARAMETER, shape_of};

/// The object that `text` spells; empty where the end of the output cut it.
///
/// JSON that cannot be held (nested deeper than 127 levels, numbers beyond `f64`, lone surrogates) stays as text
/// under the name that the renderer uses for it: a finished call never turns into one without arguments.
pub(super) fn object_of(text: &str) -> Map<String, Value> {
    serde_json::from_str(text).unwrap_or_else(|_| match shape_of(text) {
        JsonShape::Value => Map::from_iter([(UNREADABLE_PARAMETER.to_owned(), Value::from(text))]),
        JsonShape::Prefix | JsonShape::Invalid => Map::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_objects_are_kept_whatever_they_hold() {
        assert_eq!(
            object_of("{\"a\": 1}"),
            Map::from_iter([("a".to_owned(), 1.into())])
        );
        assert_eq!(object_of("{}"), Map::new());
        let deep = format!("{{\"a\": {}{}}}", "[".repeat(200), "]".repeat(200));
        for text in [&deep, "{\"a\": 1e400}", "{\"a\": \"\\ud800\"}"] {
            let kept = object_of(text);
            assert_eq!(kept[UNREADABLE_PARAMETER], Value::from(text));
        }
        for cut in ["", "{\"a\": ", "{\"a\": \"x"] {
            assert_eq!(object_of(cut), Map::new());
        }
    }
}
