//! Escaping of text into JSON strings, piece by piece.

/// Appends `text` as it stands inside a JSON string, without the quotes.
///
/// Only the quote, the backslash and control characters below U+0020 are escaped, so the pieces of
/// a text may be escaped one by one.
pub(crate) fn escape_into(text: &str, out: &mut String) {
    let mut plain_from = 0;
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
        out.push_str(&text[plain_from..index]);
        plain_from = index + 1;
        if escape.is_empty() {
            const DIGITS: &[u8; 16] = b"0123456789abcdef";
            out.push_str("\\u00");
            out.push(char::from(DIGITS[usize::from(byte >> 4)]));
            out.push(char::from(DIGITS[usize::from(byte & 15)]));
        } else {
            out.push_str(escape);
        }
    }
    out.push_str(&text[plain_from..]);
}

/// `text` as a JSON string with its quotes.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    escape_into(text, &mut out);
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn pieces_join_to_what_serde_json_writes(text in any::<String>(), cut in 0_usize..20) {
            let cut = (0..=cut.min(text.len())).rev().find(|cut| text.is_char_boundary(*cut)).unwrap();
            let mut out = String::from("\"");
            escape_into(&text[..cut], &mut out);
            escape_into(&text[cut..], &mut out);
            out.push('"');
            prop_assert_eq!(&out, &serde_json::to_string(&text).unwrap());
            prop_assert_eq!(out, quoted(&text));
        }
    }

    #[test]
    fn control_characters_are_spelled_as_serde_json_does() {
        for byte in 0..0x80_u8 {
            let text = char::from(byte).to_string();
            assert_eq!(quoted(&text), serde_json::to_string(&text).unwrap());
        }
    }
}
