//! Bytes that arrive in pieces, turned into text.

/// Turns pieces of bytes into text, exactly as a lossy conversion of all bytes at once would.
///
/// An incomplete character at the end of a piece waits for the next one; at most three bytes ever wait. Bytes that can
/// no longer become a character turn into U+FFFD at once.
///
/// ```
/// let mut decoder = recipe_rs::StreamDecoder::default();
/// let mut text = String::new();
/// for piece in [&b"\xE4\xBD"[..], b"\xA0", b"!\xFF"] {
///     decoder.push(piece, &mut text);
/// }
/// decoder.finish(&mut text);
/// assert_eq!(text, "\u{4F60}!\u{FFFD}");
/// ```
#[derive(Debug, Clone, Default)]
pub struct StreamDecoder {
    pending: Vec<u8>,
}

impl StreamDecoder {
    /// Number of bytes that wait for the rest of their character, at most 3.
    #[must_use]
    pub fn num_pending_bytes(&self) -> usize {
        self.pending.len()
    }

    /// Adds `piece` and appends the text that is certain now to `text`.
    pub fn push(&mut self, piece: &[u8], text: &mut String) {
        if self.pending.is_empty() {
            self.decode(piece, text);
        } else {
            let mut joined = std::mem::take(&mut self.pending);
            joined.extend_from_slice(piece);
            self.decode(&joined, text);
        }
    }

    /// Ends the text: bytes that still wait become U+FFFD.
    pub fn finish(&mut self, text: &mut String) {
        if !self.pending.is_empty() {
            self.pending.clear();
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }

    fn decode(&mut self, mut data: &[u8], text: &mut String) {
        loop {
            match std::str::from_utf8(data) {
                Ok(valid) => {
                    text.push_str(valid);
                    return;
                }
                Err(error) => {
                    let (valid, rest) = data.split_at(error.valid_up_to());
                    text.push_str(&String::from_utf8_lossy(valid));
                    let Some(length) = error.error_len() else {
                        self.pending.extend_from_slice(rest);
                        return;
                    };
                    text.push(char::REPLACEMENT_CHARACTER);
                    data = &rest[length..];
                }
            }
        }
    }
}
