//! Ordered JSON values and the ways they are printed into prompts.
//!
//! Integers within `i64` or `u64` stay exact, every other number is an `f64`. Of duplicate keys the
//! last value counts, at the place of the first. Nesting is limited to 127 levels.

pub use serde_json::{Map, Number, Value};

/// How the exponent of a number is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberStyle {
    /// `1e-7`, and `0.00001` (V4).
    Shortest,
    /// `1e-07`, and `1e-05` (V4.1), as Python prints floats.
    TwoDigitExponent,
}

/// Prints a value with `", "` and `": "` as separators, non-ASCII text raw.
///
/// ```
/// use recipe_rs::json::{NumberStyle, spaced};
///
/// let value = serde_json::json!({"a": [1, 1e-7], "b": "é"});
/// assert_eq!(spaced(&value, NumberStyle::Shortest), r#"{"a": [1, 1e-7], "b": "é"}"#);
/// assert_eq!(spaced(&value, NumberStyle::TwoDigitExponent), r#"{"a": [1, 1e-07], "b": "é"}"#);
/// ```
#[must_use]
pub fn spaced(value: &Value, style: NumberStyle) -> String {
    let mut out = String::new();
    write_spaced(value, style, &mut out);
    out
}

/// Appends what [`spaced`] returns.
pub fn write_spaced(value: &Value, style: NumberStyle, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => write_number(number, style, out),
        Value::String(text) => write_string(text, out),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                write_spaced(item, style, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            out.push('{');
            for (index, (key, member)) in members.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                write_string(key, out);
                out.push_str(": ");
                write_spaced(member, style, out);
            }
            out.push('}');
        }
    }
}

/// Prints a value without blanks, as constraint strings carry it.
#[must_use]
pub fn compact(value: &Value) -> String {
    value.to_string()
}

/// Appends a JSON string: only `"`, `\` and control characters below U+0020 are escaped.
pub fn write_string(text: &str, out: &mut String) {
    out.push('"');
    let mut plain_start = 0;
    for (index, byte) in text.bytes().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0x08 => "\\b",
            0x0c => "\\f",
            0x00..=0x1f => "",
            _ => continue,
        };
        out.push_str(&text[plain_start..index]);
        plain_start = index + 1;
        if escape.is_empty() {
            const HEX: &[u8; 16] = b"0123456789abcdef";
            out.push_str("\\u00");
            out.push(HEX[usize::from(byte >> 4)] as char);
            out.push(HEX[usize::from(byte & 15)] as char);
        } else {
            out.push_str(escape);
        }
    }
    out.push_str(&text[plain_start..]);
    out.push('"');
}

/// Writes a number: the shortest digits that read back as the same value.
fn write_number(number: &Number, style: NumberStyle, out: &mut String) {
    let shortest = number.to_string();
    match style {
        NumberStyle::Shortest => out.push_str(&shortest),
        NumberStyle::TwoDigitExponent => write_python_style(&shortest, out),
    }
}

/// Rewrites shortest digits as Python prints floats: an exponent from 1e-05 down, of two digits.
fn write_python_style(shortest: &str, out: &mut String) {
    let (sign, digits) = match shortest.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", shortest),
    };
    out.push_str(sign);
    if let Some(significant) = digits.strip_prefix("0.0000") {
        let (first, rest) = significant.split_at(significant.len().min(1));
        out.push_str(first);
        if !rest.is_empty() {
            out.push('.');
            out.push_str(rest);
        }
        out.push_str("e-05");
        return;
    }
    match digits.split_once("e-") {
        Some((mantissa, exponent)) if exponent.len() == 1 => {
            out.push_str(mantissa);
            out.push_str("e-0");
            out.push_str(exponent);
        }
        _ => out.push_str(digits),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_the_two_styles() {
        let cases = [
            ("0", "0", "0"),
            ("-0", "-0.0", "-0.0"),
            ("-0.0", "-0.0", "-0.0"),
            ("1e5", "100000.0", "100000.0"),
            ("1e15", "1000000000000000.0", "1000000000000000.0"),
            ("1e16", "1e+16", "1e+16"),
            ("0.0001", "0.0001", "0.0001"),
            ("0.00001", "0.00001", "1e-05"),
            ("0.000012345", "0.000012345", "1.2345e-05"),
            ("1e-6", "1e-6", "1e-06"),
            ("1.5e-7", "1.5e-7", "1.5e-07"),
            ("1e-100", "1e-100", "1e-100"),
            ("-0.000015", "-0.000015", "-1.5e-05"),
            (
                "761307987896112.2",
                "761307987896112.2",
                "761307987896112.2",
            ),
            (
                "18446744073709551615",
                "18446744073709551615",
                "18446744073709551615",
            ),
            (
                "12345678901234567890123",
                "1.2345678901234568e+22",
                "1.2345678901234568e+22",
            ),
            (
                "-9223372036854775809",
                "-9.223372036854776e+18",
                "-9.223372036854776e+18",
            ),
        ];
        for (input, shortest, two_digits) in cases {
            let value: Value = serde_json::from_str(input).unwrap();
            assert_eq!(spaced(&value, NumberStyle::Shortest), shortest, "{input}");
            assert_eq!(
                spaced(&value, NumberStyle::TwoDigitExponent),
                two_digits,
                "{input}"
            );
        }
    }

    #[test]
    fn strings_escape_only_what_json_demands() {
        let mut out = String::new();
        write_string("\"\\/\n\u{1}\u{8}\u{7f}\u{2028}é", &mut out);
        assert_eq!(out, "\"\\\"\\\\/\\n\\u0001\\b\u{7f}\u{2028}é\"");
    }

    #[test]
    fn the_last_of_duplicate_keys_counts_at_the_first_place() {
        let value: Value = serde_json::from_str(r#"{"a":1,"b":2,"a":3}"#).unwrap();
        assert_eq!(compact(&value), r#"{"a":3,"b":2}"#);
    }
}
