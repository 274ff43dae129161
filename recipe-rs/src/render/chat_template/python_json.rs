//! JSON text as Python's `json.dumps` writes it.

use serde_json::{Number, Value};

/// The arguments of `json.dumps`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Style<'a> {
    /// Spaces a level; `None` prints one line.
    pub(super) indent: Option<usize>,
    /// What stands between items.
    pub(super) item: &'a str,
    /// What stands between a key and its value.
    pub(super) key: &'a str,
    /// Escape what is not ASCII. Private-use characters stay as they are: they may be marks.
    pub(super) ensure_ascii: bool,
}

impl Default for Style<'_> {
    fn default() -> Self {
        Self {
            indent: None,
            item: ", ",
            key: ": ",
            ensure_ascii: false,
        }
    }
}

impl Style<'_> {
    /// The default style of `json.dumps` with an indent.
    pub(super) fn indented(indent: usize) -> Self {
        Self {
            indent: Some(indent),
            item: ",",
            ..Self::default()
        }
    }

    /// The text of `value`.
    pub(super) fn print(self, value: &Value) -> String {
        let mut out = String::new();
        self.value(value, 0, &mut out);
        out
    }

    fn value(self, value: &Value, level: usize, out: &mut String) {
        match value {
            Value::Null => out.push_str("null"),
            Value::Bool(true) => out.push_str("true"),
            Value::Bool(false) => out.push_str("false"),
            Value::Number(number) => out.push_str(&python_number(number)),
            Value::String(text) => self.string(text, out),
            Value::Array(items) => {
                self.container(('[', ']'), items.len(), level, out, |index, out| {
                    self.value(&items[index], level + 1, out);
                });
            }
            Value::Object(fields) => {
                let fields: Vec<(&String, &Value)> = fields.iter().collect();
                self.container(('{', '}'), fields.len(), level, out, |index, out| {
                    self.string(fields[index].0, out);
                    out.push_str(self.key);
                    self.value(fields[index].1, level + 1, out);
                });
            }
        }
    }

    fn container(
        self,
        (open, close): (char, char),
        length: usize,
        level: usize,
        out: &mut String,
        mut print_item: impl FnMut(usize, &mut String),
    ) {
        let new_line = |level: usize, out: &mut String| {
            if let Some(width) = self.indent {
                out.push('\n');
                out.extend(std::iter::repeat_n(' ', width * level));
            }
        };
        out.push(open);
        for index in 0..length {
            if index > 0 {
                out.push_str(self.item);
            }
            new_line(level + 1, out);
            print_item(index, out);
        }
        if length > 0 {
            new_line(level, out);
        }
        out.push(close);
    }

    fn string(self, text: &str, out: &mut String) {
        let is_private = |c: char| matches!(c, '\u{E000}'..='\u{F8FF}' | '\u{F0000}'..);
        out.push('"');
        for character in text.chars() {
            match character {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '\u{8}' => out.push_str("\\b"),
                '\u{C}' => out.push_str("\\f"),
                c if c < ' ' => push_escape(u16::from(c as u8), out),
                c if c >= '\u{7F}' && self.ensure_ascii && !is_private(c) => {
                    if c == '\u{7F}' {
                        out.push(c);
                    } else {
                        c.encode_utf16(&mut [0; 2])
                            .iter()
                            .for_each(|&unit| push_escape(unit, out));
                    }
                }
                c => out.push(c),
            }
        }
        out.push('"');
    }
}

fn push_escape(unit: u16, out: &mut String) {
    out.push_str("\\u");
    for shift in [12, 8, 4, 0] {
        out.extend(char::from_digit(u32::from(unit >> shift & 0xF), 16));
    }
}

/// A number as Python's `repr` writes it: exponents from 1e16 and below 1e-4, signed and of two digits at least.
fn python_number(number: &Number) -> String {
    let (Some(value), false) = (number.as_f64(), number.is_i64() || number.is_u64()) else {
        return number.to_string();
    };
    let scientific = format!("{value:e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    match exponent.parse::<i32>() {
        Ok(exponent) if value != 0.0 && !(-4..16).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{mantissa}e{sign}{:02}", exponent.abs())
        }
        _ => format!("{value:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn one_line_and_indented() {
        let value = json!({"a": [1, {"b": null}], "c": {}, "d": "\u{e9}\"\n"});
        assert_eq!(
            Style::default().print(&value),
            r#"{"a": [1, {"b": null}], "c": {}, "d": "é\"\n"}"#
        );
        let expected = "{\n  \"a\": [\n    1\n  ]\n}";
        assert_eq!(Style::indented(2).print(&json!({"a": [1]})), expected);
        let style = Style {
            ensure_ascii: true,
            ..Style::default()
        };
        assert_eq!(
            style.print(&json!("\u{e9}\u{1F600}\u{E000}")),
            "\"\\u00e9\\ud83d\\ude00\u{E000}\""
        );
    }

    #[test]
    fn numbers_like_python() {
        for (value, text) in [
            (json!(1.0), "1.0"),
            (json!(0.1), "0.1"),
            (json!(1e16), "1e+16"),
            (json!(1e15), "1000000000000000.0"),
            (json!(0.0001), "0.0001"),
            (json!(0.00001), "1e-05"),
            (json!(-2.5e-7), "-2.5e-07"),
            (json!(0.0), "0.0"),
            (json!(1e100), "1e+100"),
            (json!(7), "7"),
            (json!(-3), "-3"),
        ] {
            assert_eq!(Style::default().print(&value), text);
        }
    }
}
