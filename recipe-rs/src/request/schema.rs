//! Checks that a value is a JSON Schema.

use crate::json::{Map, Value};

/// Says why a value is no JSON Schema (draft 2020-12, or the draft that `$schema` names).
///
/// Patterns must be regular expressions and references must stay inside the schema.
///
/// # Errors
/// One clause without a final period.
pub(super) fn check(schema: &Value) -> Result<(), String> {
    jsonschema::meta::validate(schema).map_err(|error| error.to_string())?;
    jsonschema::options()
        .should_validate_formats(true)
        .build(schema)
        .map(|_| ())
        .map_err(|error| error.to_string())
}

/// Formats that a strict schema may name.
const STRICT_FORMATS: [&str; 5] = ["email", "hostname", "ipv4", "ipv6", "uuid"];

/// Types without inner schemas.
const SCALAR_TYPES: [&str; 5] = ["string", "number", "integer", "boolean", "null"];

/// Keywords that stay on a number, in the order of the result.
const NUMBER_KEYWORDS: [&str; 6] = [
    "default",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
];

/// How strict schemas are normalised.
#[derive(Debug, Clone, Copy)]
pub(super) struct StrictRules {
    /// Whether `$defs` and `definitions` stay.
    pub(super) keeps_definitions: bool,
    /// Whether the top level may be an object without properties.
    pub(super) allows_empty_root: bool,
}

/// Rewrites a schema so that objects are closed and all their properties required.
///
/// # Errors
/// One clause without a final period that names the place.
pub(super) fn normalise_strict(schema: &Value, rules: StrictRules) -> Result<Value, String> {
    let normalised = Normaliser { rules }.node(schema, "", rules.allows_empty_root)?;
    let is_object = normalised.get("type").and_then(Value::as_str) == Some("object");
    if !is_object {
        return Err("a strict schema must have type \"object\" at its top level".to_owned());
    }
    Ok(normalised)
}

struct Normaliser {
    rules: StrictRules,
}

impl Normaliser {
    fn node(&self, schema: &Value, place: &str, may_be_empty: bool) -> Result<Value, String> {
        let empty = Map::new();
        let members = schema.as_object().unwrap_or(&empty);
        let mut out = match (
            members.get("type"),
            members.get("anyOf"),
            members.get("$ref"),
        ) {
            (Some(Value::String(name)), _, _) => self.typed(name, members, place, may_be_empty)?,
            (Some(Value::Array(names)), _, _) => scalar_list(names, members, place)?,
            (None, Some(Value::Array(options)), _) => self.any_of(options, members, place)?,
            (None, None, Some(Value::String(reference))) => {
                Map::from_iter([("$ref".to_owned(), Value::from(reference.as_str()))])
            }
            _ => {
                return Err(format!(
                    "a strict schema needs one of type, anyOf and $ref {}",
                    shown_place(place)
                ));
            }
        };
        if self.rules.keeps_definitions {
            for keyword in ["$defs", "definitions"] {
                if let Some(Value::Object(definitions)) = members.get(keyword) {
                    let mut kept = Map::with_capacity(definitions.len());
                    for (name, definition) in definitions {
                        let inner = format!("{place}.{keyword}.{name}");
                        kept.insert(name.clone(), self.node(definition, &inner, false)?);
                    }
                    out.insert(keyword.to_owned(), Value::Object(kept));
                }
            }
        }
        Ok(Value::Object(out))
    }

    fn typed(
        &self,
        name: &str,
        members: &Map<String, Value>,
        place: &str,
        may_be_empty: bool,
    ) -> Result<Map<String, Value>, String> {
        match name {
            "object" => self.object(members, place, may_be_empty),
            "array" => self.array(members, place),
            "string" => string(members, place),
            "number" | "integer" => number(name, members, place),
            "boolean" | "null" => {
                let mut out = with_type(name);
                copy_description(members, place, &mut out)?;
                Ok(out)
            }
            _ => Err(format!("type {name:?} is not known {}", shown_place(place))),
        }
    }

    fn object(
        &self,
        members: &Map<String, Value>,
        place: &str,
        may_be_empty: bool,
    ) -> Result<Map<String, Value>, String> {
        match members.get("additionalProperties") {
            None | Some(Value::Bool(false) | Value::Null) => {}
            Some(_) => {
                return Err(format!(
                    "additionalProperties must be false {}",
                    shown_place(place)
                ));
            }
        }
        let empty = Map::new();
        let properties = match members.get("properties") {
            None | Some(Value::Null) => &empty,
            Some(Value::Object(properties)) => properties,
            Some(_) => {
                return Err(format!(
                    "properties must be an object {}",
                    shown_place(place)
                ));
            }
        };
        if properties.is_empty() && !may_be_empty {
            return Err(format!(
                "an object without properties is not allowed {}",
                shown_place(place)
            ));
        }
        check_required(members.get("required"), properties, place)?;
        let mut inner = Map::with_capacity(properties.len());
        for (name, property) in properties {
            let place = format!("{place}.properties.{name}");
            inner.insert(name.clone(), self.node(property, &place, false)?);
        }
        let required = properties.keys().cloned().map(Value::String).collect();
        let mut out = with_type("object");
        out.insert("properties".to_owned(), Value::Object(inner));
        out.insert("additionalProperties".to_owned(), Value::Bool(false));
        out.insert("required".to_owned(), Value::Array(required));
        copy_description(members, place, &mut out)?;
        Ok(out)
    }

    fn array(
        &self,
        members: &Map<String, Value>,
        place: &str,
    ) -> Result<Map<String, Value>, String> {
        let Some(items) = members.get("items") else {
            return Err(format!("an array needs items {}", shown_place(place)));
        };
        let mut out = with_type("array");
        let inner = self.node(items, &format!("{place}.items"), false)?;
        out.insert("items".to_owned(), inner);
        copy_description(members, place, &mut out)?;
        Ok(out)
    }

    fn any_of(
        &self,
        options: &[Value],
        members: &Map<String, Value>,
        place: &str,
    ) -> Result<Map<String, Value>, String> {
        let mut inner = Vec::with_capacity(options.len());
        for (index, option) in options.iter().enumerate() {
            inner.push(self.node(option, &format!("{place}.anyOf[{index}]"), false)?);
        }
        let mut out = Map::from_iter([("anyOf".to_owned(), Value::Array(inner))]);
        copy_description(members, place, &mut out)?;
        Ok(out)
    }
}

fn with_type(name: &str) -> Map<String, Value> {
    Map::from_iter([("type".to_owned(), Value::from(name))])
}

/// Copies a keyword if it is there and not null; its value must pass the test.
fn copy_checked(
    members: &Map<String, Value>,
    keyword: &str,
    is_right: impl Fn(&Value) -> bool,
    place: &str,
    out: &mut Map<String, Value>,
) -> Result<(), String> {
    if let Some(value) = members.get(keyword).filter(|value| !value.is_null()) {
        if !is_right(value) {
            return Err(format!(
                "{keyword} has a value of the wrong type {}",
                shown_place(place)
            ));
        }
        out.insert(keyword.to_owned(), value.clone());
    }
    Ok(())
}

fn copy_description(
    members: &Map<String, Value>,
    place: &str,
    out: &mut Map<String, Value>,
) -> Result<(), String> {
    copy_checked(members, "description", Value::is_string, place, out)
}

fn string(members: &Map<String, Value>, place: &str) -> Result<Map<String, Value>, String> {
    let mut out = with_type("string");
    copy_description(members, place, &mut out)?;
    copy_checked(members, "pattern", Value::is_string, place, &mut out)?;
    if let Some(format) = members.get("format").filter(|format| !format.is_null()) {
        if !format
            .as_str()
            .is_some_and(|name| STRICT_FORMATS.contains(&name))
        {
            return Err(format!(
                "format {format} is not one of {} {}",
                STRICT_FORMATS.join(", "),
                shown_place(place)
            ));
        }
        out.insert("format".to_owned(), format.clone());
    }
    let lists_strings = |value: &Value| {
        value
            .as_array()
            .is_some_and(|values| values.iter().all(Value::is_string))
    };
    copy_checked(members, "enum", lists_strings, place, &mut out)?;
    Ok(out)
}

fn number(
    name: &str,
    members: &Map<String, Value>,
    place: &str,
) -> Result<Map<String, Value>, String> {
    let mut out = with_type(name);
    copy_description(members, place, &mut out)?;
    let is_right = |value: &Value| {
        if name == "integer" {
            value.is_i64()
        } else {
            value.is_number()
        }
    };
    for keyword in NUMBER_KEYWORDS {
        copy_checked(members, keyword, is_right, place, &mut out)?;
    }
    Ok(out)
}

fn scalar_list(
    names: &[Value],
    members: &Map<String, Value>,
    place: &str,
) -> Result<Map<String, Value>, String> {
    let is_scalar = |name: &Value| {
        name.as_str()
            .is_some_and(|name| SCALAR_TYPES.contains(&name))
    };
    if !names.iter().all(is_scalar) {
        return Err(format!(
            "a list of types may hold only {} {}",
            SCALAR_TYPES.join(", "),
            shown_place(place)
        ));
    }
    let mut out = Map::from_iter([("type".to_owned(), Value::Array(names.to_vec()))]);
    copy_description(members, place, &mut out)?;
    Ok(out)
}

fn check_required(
    required: Option<&Value>,
    properties: &Map<String, Value>,
    place: &str,
) -> Result<(), String> {
    let required = match required {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::Array(required)) => required,
        Some(_) => return Err(format!("required must be a list {}", shown_place(place))),
    };
    let mut seen = std::collections::HashSet::with_capacity(required.len());
    for name in required {
        let known = name.as_str().filter(|name| properties.contains_key(*name));
        let Some(known) = known else {
            return Err(format!(
                "required names {name}, which is no property {}",
                shown_place(place)
            ));
        };
        if !seen.insert(known) {
            return Err(format!(
                "required names {name} twice {}",
                shown_place(place)
            ));
        }
    }
    if seen.len() != properties.len() {
        return Err(format!(
            "required must list every property {}",
            shown_place(place)
        ));
    }
    Ok(())
}

fn shown_place(place: &str) -> String {
    let place = place.trim_start_matches('.');
    if place.is_empty() {
        "at the top level".to_owned()
    } else {
        format!("at {place}")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TOOL_RULES: StrictRules = StrictRules {
        keeps_definitions: false,
        allows_empty_root: true,
    };

    #[test]
    fn schemas_are_checked_against_their_draft() {
        for schema in [json!({}), json!(true), json!({"type": "object", "x": 1})] {
            check(&schema).unwrap();
        }
        for schema in [
            json!([]),
            json!({"type": "foo"}),
            json!({"properties": 1}),
            json!({"pattern": "("}),
            json!({"$ref": "http://example.org/schema"}),
            json!({"$schema": "http://example.org/schema"}),
        ] {
            assert!(check(&schema).is_err(), "{schema}");
        }
    }

    #[test]
    fn strict_objects_are_closed_and_complete() {
        let schema = json!({
            "title": "T", "description": "d", "properties": {"a": {"minLength": 1, "type": "string"}},
            "type": "object", "$defs": {"x": {"type": "null"}},
        });
        let normalised = normalise_strict(&schema, TOOL_RULES).unwrap();
        assert_eq!(
            normalised.to_string(),
            r#"{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false,"required":["a"],"description":"d"}"#
        );
        let keeping = StrictRules {
            keeps_definitions: true,
            ..TOOL_RULES
        };
        assert_eq!(
            normalise_strict(&schema, keeping).unwrap()["$defs"],
            json!({"x": {"type": "null"}})
        );
    }

    #[test]
    fn strict_refusals_name_the_place() {
        let cases = [
            (json!({}), "top level"),
            (json!({"type": "string"}), "top level"),
            (
                json!({"type": "object", "properties": {"a": {"type": "object"}}}),
                "properties.a",
            ),
            (
                json!({"type": "object", "properties": {"a": {"type": "array"}}}),
                "properties.a",
            ),
            (
                json!({"type": "object", "properties": {"a": {"type": "string", "format": "date"}}}),
                "properties.a",
            ),
            (
                json!({"type": "object", "properties": {"a": {"type": "null"}}, "required": ["b"]}),
                "\"b\"",
            ),
            (
                json!({"type": "object", "additionalProperties": true}),
                "additionalProperties",
            ),
        ];
        for (schema, named) in cases {
            let problem = normalise_strict(&schema, TOOL_RULES).unwrap_err();
            assert!(problem.contains(named), "{problem}");
        }
    }
}
