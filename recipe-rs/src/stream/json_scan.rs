//! Recognition of JSON values byte by byte, in constant memory per nesting level.

/// Where a scanner stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expect {
    /// A value.
    Value,
    /// A value or the end of an array that just began.
    ValueOrEnd,
    /// A member name or the end of an object that just began.
    NameOrEnd,
    /// A member name.
    Name,
    /// The colon after a name.
    Colon,
    /// A comma or the end of the container; at the top level, the end.
    Next,
    /// More of a string; `true` for a member name.
    String(bool),
    /// The character after a backslash.
    Escape(bool),
    /// This many more hexadecimal digits.
    Hex(bool, u8),
    /// The rest of `true`, `false` or `null`.
    Literal(&'static [u8]),
    /// A place inside a number.
    Number(Number),
}

/// The last thing read of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Number {
    Minus,
    Zero,
    Integer,
    Point,
    Fraction,
    Exponent,
    ExponentSign,
    ExponentDigits,
}

/// Reads one JSON value with blanks around it.
///
/// Only the grammar counts: numbers of any size and lone surrogate escapes are fine.
#[derive(Debug, Clone)]
pub(crate) struct JsonScanner {
    expect: Expect,
    /// One entry per open container, `true` for an object.
    containers: Vec<bool>,
    has_value: bool,
}

impl Default for JsonScanner {
    fn default() -> Self {
        Self {
            expect: Expect::Value,
            containers: Vec::new(),
            has_value: false,
        }
    }
}

impl JsonScanner {
    /// Takes one byte; false when no JSON value begins like this.
    pub(crate) fn push(&mut self, byte: u8) -> bool {
        let blank = matches!(byte, b' ' | b'\n' | b'\r' | b'\t');
        match self.expect {
            Expect::Value
            | Expect::ValueOrEnd
            | Expect::NameOrEnd
            | Expect::Name
            | Expect::Colon
            | Expect::Next
                if blank =>
            {
                true
            }
            Expect::ValueOrEnd if byte == b']' => self.close(false),
            Expect::Value | Expect::ValueOrEnd => self.open_value(byte),
            Expect::NameOrEnd if byte == b'}' => self.close(true),
            Expect::NameOrEnd | Expect::Name => self.step(byte == b'"', Expect::String(true)),
            Expect::Colon => self.step(byte == b':', Expect::Value),
            Expect::Next => self.next(byte),
            Expect::String(is_name) => match byte {
                b'"' => self.end_string(is_name),
                b'\\' => self.step(true, Expect::Escape(is_name)),
                0x00..=0x1f => false,
                _ => true,
            },
            Expect::Escape(is_name) => match byte {
                b'u' => self.step(true, Expect::Hex(is_name, 4)),
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => {
                    self.step(true, Expect::String(is_name))
                }
                _ => false,
            },
            Expect::Hex(is_name, left) => {
                let after = if left == 1 {
                    Expect::String(is_name)
                } else {
                    Expect::Hex(is_name, left - 1)
                };
                self.step(byte.is_ascii_hexdigit(), after)
            }
            Expect::Literal(rest) => {
                let fits = rest.first() == Some(&byte);
                if fits && rest.len() == 1 {
                    self.end_value()
                } else {
                    self.step(fits, Expect::Literal(rest.get(1..).unwrap_or_default()))
                }
            }
            Expect::Number(place) => self.number(place, byte),
        }
    }

    /// Whether what was read is a whole value.
    pub(crate) fn is_complete(&self) -> bool {
        self.containers.is_empty()
            && match self.expect {
                Expect::Next => self.has_value,
                Expect::Number(place) => place.may_end(),
                _ => false,
            }
    }

    /// Open containers.
    pub(crate) fn depth(&self) -> usize {
        self.containers.len()
    }

    /// Whether a member name was just read.
    pub(crate) fn is_behind_name(&self) -> bool {
        self.expect == Expect::Colon
    }

    /// Whether a value may begin here.
    pub(crate) fn is_before_value(&self) -> bool {
        matches!(self.expect, Expect::Value | Expect::ValueOrEnd)
    }

    /// Whether a value or a container was just read.
    pub(crate) fn is_behind_value(&self) -> bool {
        self.expect == Expect::Next
    }

    /// The shortest text that makes what was read a whole value.
    pub(crate) fn completion(&self) -> String {
        let zeros = "0000";
        let mut rest = match self.expect {
            Expect::Value => "null".to_owned(),
            Expect::Name => "\"\": null".to_owned(),
            Expect::Colon => ": null".to_owned(),
            Expect::String(is_name) => end_of_string(is_name, ""),
            Expect::Escape(is_name) => end_of_string(is_name, "\\"),
            Expect::Hex(is_name, left) => end_of_string(is_name, &zeros[..usize::from(left)]),
            Expect::Literal(literal) => literal.iter().copied().map(char::from).collect(),
            Expect::Number(place) if !place.may_end() => "0".to_owned(),
            Expect::ValueOrEnd | Expect::NameOrEnd | Expect::Next | Expect::Number(_) => {
                String::new()
            }
        };
        let closers = self.containers.iter().rev();
        rest.extend(closers.map(|is_object| if *is_object { '}' } else { ']' }));
        rest
    }

    fn step(&mut self, fits: bool, expect: Expect) -> bool {
        if fits {
            self.expect = expect;
        }
        fits
    }

    fn open_value(&mut self, byte: u8) -> bool {
        self.expect = match byte {
            b'{' => {
                self.containers.push(true);
                Expect::NameOrEnd
            }
            b'[' => {
                self.containers.push(false);
                Expect::ValueOrEnd
            }
            b'"' => Expect::String(false),
            b't' => Expect::Literal(b"rue"),
            b'f' => Expect::Literal(b"alse"),
            b'n' => Expect::Literal(b"ull"),
            b'-' => Expect::Number(Number::Minus),
            b'0' => Expect::Number(Number::Zero),
            b'1'..=b'9' => Expect::Number(Number::Integer),
            _ => return false,
        };
        true
    }

    fn end_string(&mut self, is_name: bool) -> bool {
        if is_name {
            self.step(true, Expect::Colon)
        } else {
            self.end_value()
        }
    }

    fn end_value(&mut self) -> bool {
        self.has_value = true;
        self.step(true, Expect::Next)
    }

    fn close(&mut self, is_object: bool) -> bool {
        self.containers.pop() == Some(is_object) && self.end_value()
    }

    fn next(&mut self, byte: u8) -> bool {
        match (byte, self.containers.last()) {
            (b',', Some(true)) => self.step(true, Expect::Name),
            (b',', Some(false)) => self.step(true, Expect::Value),
            (b'}', Some(true)) => self.close(true),
            (b']', Some(false)) => self.close(false),
            _ => false,
        }
    }

    fn number(&mut self, place: Number, byte: u8) -> bool {
        let next = match (place, byte) {
            (Number::Minus, b'0') => Number::Zero,
            (Number::Minus, b'1'..=b'9') | (Number::Integer, b'0'..=b'9') => Number::Integer,
            (Number::Zero | Number::Integer, b'.') => Number::Point,
            (Number::Point | Number::Fraction, b'0'..=b'9') => Number::Fraction,
            (Number::Zero | Number::Integer | Number::Fraction, b'e' | b'E') => Number::Exponent,
            (Number::Exponent, b'+' | b'-') => Number::ExponentSign,
            (Number::Exponent | Number::ExponentSign | Number::ExponentDigits, b'0'..=b'9') => {
                Number::ExponentDigits
            }
            _ if place.may_end() => {
                self.end_value();
                return self.push(byte);
            }
            _ => return false,
        };
        self.step(true, Expect::Number(next))
    }
}

impl Number {
    fn may_end(self) -> bool {
        matches!(
            self,
            Self::Zero | Self::Integer | Self::Fraction | Self::ExponentDigits
        )
    }
}

/// The end of a string that lacks `missing` of its last escape.
fn end_of_string(is_name: bool, missing: &str) -> String {
    let after = if is_name { ": null" } else { "" };
    format!("{missing}\"{after}")
}

/// What a text is as JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JsonShape {
    /// A whole value.
    Value,
    /// The beginning of a value.
    Prefix,
    /// Neither.
    Invalid,
}

/// Judges a whole text.
pub(crate) fn shape_of(text: &str) -> JsonShape {
    let mut scanner = JsonScanner::default();
    if !text.bytes().all(|byte| scanner.push(byte)) {
        JsonShape::Invalid
    } else if scanner.is_complete() {
        JsonShape::Value
    } else {
        JsonShape::Prefix
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn agrees_with_serde_json(text in r#"[\[\]{}",:0-9eE.+\-truefalsn\\ \n]{0,12}"#) {
            let is_value = shape_of(&text) == JsonShape::Value;
            let parsed = serde_json::from_str::<serde::de::IgnoredAny>(&text);
            prop_assert_eq!(is_value, parsed.is_ok(), "{}", text);
        }

        #[test]
        fn every_beginning_of_a_value_is_a_prefix(
            numbers in prop::collection::vec(any::<f64>(), 0..4),
            name in any::<String>(),
        ) {
            let numbers: Vec<_> = numbers.into_iter().filter(|number| number.is_finite()).collect();
            let text = serde_json::json!({ name: numbers, "b": [null, true, {}] }).to_string();
            for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
                prop_assert_eq!(shape_of(&text[..end]), JsonShape::Prefix);
                let mut scanner = JsonScanner::default();
                prop_assert!(text[..end].bytes().all(|byte| scanner.push(byte)));
                let whole = format!("{}{}", &text[..end], scanner.completion());
                prop_assert_eq!(shape_of(&whole), JsonShape::Value, "{}", whole);
            }
            prop_assert_eq!(shape_of(&text), JsonShape::Value);
        }
    }

    #[test]
    fn deep_nesting_needs_no_recursion() {
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        assert_eq!(shape_of(&deep), JsonShape::Value);
    }

    #[test]
    fn what_python_accepts_beyond_json_is_invalid() {
        for text in [
            "NaN", "Infinity", "True", "nope", "'a'", "01", "[1,]", "\"a\nb\"",
        ] {
            assert_eq!(shape_of(text), JsonShape::Invalid, "{text}");
        }
        for text in ["1e400", "\"\\ud800\"", " 1 ", "-0"] {
            assert_eq!(shape_of(text), JsonShape::Value, "{text}");
        }
        assert_eq!(shape_of(""), JsonShape::Prefix);
    }
}
