//! Sampling fields outside the official protocols.

use crate::error::Result;
use crate::json::{Map, Value};
use crate::request::reader::Field;

/// Most entries of a list of ids, words or biases.
const MAX_LIST_LENGTH: usize = 1024;

/// How one field is checked.
#[derive(Clone, Copy)]
enum Check {
    /// A number within these bounds; the lower one may be excluded.
    Number {
        above: Option<f64>,
        from: f64,
        to: f64,
    },
    /// An integer within these bounds.
    Integer {
        from: i64,
        to: i64,
    },
    Boolean,
    Text,
    /// A list of token ids.
    TokenIds,
    /// A list of texts.
    Texts,
    /// An object from token ids to numbers.
    LogitBias,
}

const FIELDS: [(&str, Check); 17] = [
    (
        "top_k",
        Check::Integer {
            from: -1,
            to: u32::MAX as i64,
        },
    ),
    (
        "min_p",
        Check::Number {
            above: None,
            from: 0.0,
            to: 1.0,
        },
    ),
    (
        "repetition_penalty",
        Check::Number {
            above: Some(0.0),
            from: 0.0,
            to: 100.0,
        },
    ),
    (
        "frequency_penalty",
        Check::Number {
            above: None,
            from: -2.0,
            to: 2.0,
        },
    ),
    (
        "presence_penalty",
        Check::Number {
            above: None,
            from: -2.0,
            to: 2.0,
        },
    ),
    ("logit_bias", Check::LogitBias),
    ("ignore_eos", Check::Boolean),
    ("stop_token_ids", Check::TokenIds),
    (
        "min_tokens",
        Check::Integer {
            from: 0,
            to: u32::MAX as i64,
        },
    ),
    ("bad_words", Check::Texts),
    ("include_stop_str_in_output", Check::Boolean),
    ("skip_special_tokens", Check::Boolean),
    (
        "priority",
        Check::Integer {
            from: i32::MIN as i64,
            to: i32::MAX as i64,
        },
    ),
    ("cache_salt", Check::Text),
    ("return_token_ids", Check::Boolean),
    ("prompt_logprobs", Check::Integer { from: 0, to: 20 }),
    ("echo", Check::Boolean),
];

/// Whether a top-level field is one of these.
pub(super) fn is_extra(name: &str) -> bool {
    FIELDS.iter().any(|(known, _)| *known == name)
}

/// Reads the extra fields that a request gives; null counts as absent.
///
/// # Errors
/// A refusal for a wrong type or a value out of range.
pub(super) fn read(body: &Field<'_, '_>) -> Result<Map<String, Value>> {
    let mut extra = Map::new();
    for (name, check) in FIELDS {
        if let Some(field) = body.optional(name)? {
            check_field(&field, check)?;
            extra.insert(name.to_owned(), field.value.clone());
        }
    }
    Ok(extra)
}

fn check_field(field: &Field<'_, '_>, check: Check) -> Result<()> {
    match check {
        Check::Boolean => field.boolean().map(|_| ()),
        Check::Text => field.string().map(|_| ()),
        Check::Number { above, from, to } => {
            // Single precision, as the official fields have it.
            let number = field.value.as_f64().map(|number| f64::from(number as f32));
            let fits = |number: f64| {
                (from..=to).contains(&number) && above.is_none_or(|bound| number > bound)
            };
            if number.is_some_and(fits) {
                return Ok(());
            }
            let lower = if above.is_some() {
                "a number above"
            } else {
                "a number from"
            };
            Err(field.refuse(format_args!(
                "expected {lower} {from} to {to}, got {}",
                field.value
            )))
        }
        Check::Integer { from, to } => {
            let number = field.integer()?;
            if (from..=to).contains(&number) {
                return Ok(());
            }
            Err(field.refuse(format_args!(
                "{number} is out of range; use an integer from {from} to {to}"
            )))
        }
        Check::TokenIds => {
            check_length(field, field.items()?.count())?;
            field
                .items()?
                .try_for_each(|item| item.unsigned(u64::from(u32::MAX)).map(|_| ()))
        }
        Check::Texts => {
            check_length(field, field.items()?.count())?;
            field.items()?.try_for_each(|item| match item.string()? {
                "" => Err(item.refuse("an empty text cannot be forbidden")),
                _ => Ok(()),
            })
        }
        Check::LogitBias => {
            let biases = field.object()?;
            check_length(field, biases.len())?;
            for (id, bias) in biases {
                if id.parse::<u32>().is_err() {
                    return Err(
                        field.refuse(format_args!("{id:?} is no token id; use ids as keys"))
                    );
                }
                if !bias
                    .as_f64()
                    .is_some_and(|bias| (-100.0..=100.0).contains(&bias))
                {
                    return Err(field.refuse(format_args!(
                        "bias of {id} must be a number from -100 to 100"
                    )));
                }
            }
            Ok(())
        }
    }
}

fn check_length(field: &Field<'_, '_>, length: usize) -> Result<()> {
    if length > MAX_LIST_LENGTH {
        return Err(field.refuse(format_args!(
            "{length} entries are too many; use at most {MAX_LIST_LENGTH}"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn given_fields_are_reported_and_checked() {
        let body = json!({"top_k": 5, "min_p": null, "logit_bias": {"5": 1}, "other": 1});
        let extra = read(&Field::root(&body)).unwrap();
        assert_eq!(
            Value::Object(extra),
            json!({"top_k": 5, "logit_bias": {"5": 1}})
        );
    }

    #[test]
    fn wrong_values_are_refused_by_name() {
        for (name, value) in [
            ("top_k", json!(-2)),
            ("top_k", json!("5")),
            ("min_p", json!(1.5)),
            ("repetition_penalty", json!(0)),
            ("logit_bias", json!({"a": 1})),
            ("logit_bias", json!({"1": 101})),
            ("ignore_eos", json!(1)),
            ("stop_token_ids", json!([-1])),
            ("bad_words", json!([""])),
            ("prompt_logprobs", json!(21)),
            ("cache_salt", json!(1)),
        ] {
            let error = read(&Field::root(&json!({name: value}))).unwrap_err();
            assert!(error.to_string().starts_with(name), "{error}");
        }
    }
}
