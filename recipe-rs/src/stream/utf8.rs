//! Assembly of UTF-8 text from the bytes of tokens.

/// Joins byte pieces into text and keeps at most three bytes of an unfinished code point.
#[derive(Debug, Clone, Default)]
pub(crate) struct Utf8Assembler {
    pending: Vec<u8>,
}

impl Utf8Assembler {
    /// Appends the text that is complete after these bytes; true if some bytes were invalid.
    ///
    /// Bytes that can no longer become a code point turn into U+FFFD at once, one per maximal
    /// invalid part.
    pub(crate) fn push(&mut self, bytes: &[u8], text: &mut String) -> bool {
        if self.pending.is_empty()
            && let Ok(valid) = std::str::from_utf8(bytes)
        {
            text.push_str(valid);
            return false;
        }
        self.pending.extend_from_slice(bytes);
        let mut is_broken = false;
        let mut rest: &[u8] = &self.pending;
        loop {
            match std::str::from_utf8(rest) {
                Ok(valid) => {
                    text.push_str(valid);
                    rest = &[];
                    break;
                }
                Err(error) => {
                    let (valid, after) = rest.split_at(error.valid_up_to());
                    text.push_str(&String::from_utf8_lossy(valid));
                    rest = after;
                    let Some(length) = error.error_len() else {
                        break;
                    };
                    text.push(char::REPLACEMENT_CHARACTER);
                    is_broken = true;
                    rest = &rest[length..];
                }
            }
        }
        let kept = rest.len();
        let consumed = self.pending.len() - kept;
        self.pending.drain(..consumed);
        is_broken
    }

    /// Whether bytes of an unfinished code point are waiting.
    pub(crate) fn is_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Gives up an unfinished code point that something else follows: U+FFFD takes its place.
    pub(crate) fn replace_pending(&mut self, text: &mut String) {
        if !self.pending.is_empty() {
            self.pending.clear();
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }

    /// Forgets an unfinished code point at the end of the output; returns its number of bytes.
    pub(crate) fn drop_pending(&mut self) -> usize {
        let length = self.pending.len();
        self.pending.clear();
        length
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_split_gives_the_lossy_text(
            bytes in prop::collection::vec(any::<u8>(), 0..40),
            cuts in prop::collection::vec(0_usize..40, 0..6),
        ) {
            let mut cuts: Vec<_> = cuts.into_iter().filter(|cut| *cut <= bytes.len()).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let mut assembler = Utf8Assembler::default();
            let mut text = String::new();
            for pair in cuts.windows(2) {
                assembler.push(&bytes[pair[0]..pair[1]], &mut text);
                prop_assert!(assembler.pending.len() <= 3);
            }
            assembler.replace_pending(&mut text);
            prop_assert_eq!(text, String::from_utf8_lossy(&bytes).into_owned());
        }
    }

    #[test]
    fn an_impossible_byte_does_not_wait() {
        let mut assembler = Utf8Assembler::default();
        let mut text = String::new();
        assert!(!assembler.push(&[0xf0, 0x9f], &mut text));
        assert!(assembler.push(&[0xf0, 0x9f], &mut text));
        assert_eq!(text, "\u{fffd}");
        assert!(assembler.is_pending());
        assert_eq!(assembler.drop_pending(), 2);
    }
}
