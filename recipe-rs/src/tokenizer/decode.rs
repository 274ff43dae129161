//! What one token contributes to a decoded text.

use serde_json::Value;

/// How the decoder of a `tokenizer.json` reads a token's spelling.
///
/// This covers decoders that work token by token. `WordPiece`'s removal of spaces before punctuation looks at the whole
/// text; only a decode of the whole has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TokenBytes {
    byte_level: bool,
    byte_fallback: bool,
    /// Stand-in for a space, and what replaces it.
    replacement: Option<(String, String)>,
    strips_first_space: bool,
    /// Prefix that glues a token to the one before it; others are preceded by a space.
    glue_prefix: Option<String>,
}

impl TokenBytes {
    /// Reads the `decoder` value of a `tokenizer.json`.
    #[must_use]
    pub(crate) fn of_decoder(decoder: &Value) -> Self {
        let mut rules = Self::default();
        rules.add(decoder);
        if decoder.is_null() {
            // Without a decoder the tokens are joined by spaces.
            rules.glue_prefix = Some(String::new());
            rules.strips_first_space = true;
        }
        rules
    }

    fn add(&mut self, decoder: &Value) {
        let text = |key: &str| decoder[key].as_str().unwrap_or_default().to_owned();
        match decoder["type"].as_str() {
            Some("Sequence") => {
                for member in decoder["decoders"].as_array().into_iter().flatten() {
                    self.add(member);
                }
            }
            Some("ByteLevel") => self.byte_level = true,
            Some("ByteFallback") => self.byte_fallback = true,
            Some("Replace") => {
                if let Some(pattern) = decoder["pattern"]["String"].as_str() {
                    self.replacement = Some((pattern.to_owned(), text("content")));
                }
            }
            Some("Metaspace") => {
                self.replacement = Some((text("replacement"), " ".to_owned()));
                self.strips_first_space = decoder["prepend_scheme"] != "never";
            }
            Some("Strip") => {
                self.strips_first_space |= decoder["start"] == 1 && decoder["content"] == " ";
            }
            Some("WordPiece") => {
                self.glue_prefix = Some(text("prefix"));
                self.strips_first_space = true;
            }
            _ => {}
        }
    }

    /// Whether spellings are stand-ins for bytes.
    #[must_use]
    pub(crate) fn is_byte_level(&self) -> bool {
        self.byte_level
    }

    /// Whether the first token of a text loses the space it starts with.
    #[must_use]
    pub(crate) fn strips_first_space(&self) -> bool {
        self.strips_first_space
    }

    /// Appends the bytes that a token contributes; `token` is what [`super::vocabulary::Vocabulary::bytes`] holds.
    #[inline]
    pub(crate) fn append(&self, token: &[u8], data: &mut Vec<u8>) {
        if self.byte_level {
            data.extend_from_slice(token);
            return;
        }
        if self.byte_fallback
            && let Some(byte) = fallback_byte(token)
        {
            data.push(byte);
            return;
        }
        let text = String::from_utf8_lossy(token);
        let mut text = text.as_ref();
        if let Some(prefix) = &self.glue_prefix {
            match text.strip_prefix(prefix.as_str()) {
                Some(rest) if !prefix.is_empty() => text = rest,
                _ => data.push(b' '),
            }
        }
        match &self.replacement {
            Some((pattern, content)) => {
                data.extend_from_slice(text.replace(pattern, content).as_bytes());
            }
            None => data.extend_from_slice(text.as_bytes()),
        }
    }
}

/// The byte that a token like `<0x0A>` stands for.
fn fallback_byte(token: &[u8]) -> Option<u8> {
    let digits = token.strip_prefix(b"<0x")?.strip_suffix(b">")?;
    let is_hex = digits.len() == 2 && digits.iter().all(u8::is_ascii_hexdigit);
    is_hex
        .then(|| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn sentence_piece_rules() {
        let rules = TokenBytes::of_decoder(&json!({"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "_"}, "content": " "}, {"type": "ByteFallback"},
            {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}));
        let mut data = Vec::new();
        for token in ["_a", "<0xE2>", "<0x9>", "b_"] {
            rules.append(token.as_bytes(), &mut data);
        }
        assert_eq!(data, b" a\xE2<0x9>b ");
        assert!(rules.strips_first_space());
    }
}
