//! The printable stand-ins that byte-level vocabularies write for bytes.

/// Stand-in character of each byte: printable Latin-1 stands for itself, the 68 others follow from U+0100 on.
#[must_use]
pub(crate) fn byte_to_char(byte: u8) -> char {
    let is_printable = |value: u8| matches!(value, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF);
    if is_printable(byte) {
        return char::from(byte);
    }
    let rank = (0..byte).filter(|&value| !is_printable(value)).count() as u32;
    char::from_u32(0x100 + rank).unwrap_or('\u{FFFD}')
}

/// Maps stand-in characters back to bytes.
#[derive(Debug, Clone)]
pub(crate) struct ByteAlphabet {
    /// Byte of the code points below 0x144, 256 where there is none.
    byte_of: [u16; 0x144],
}

impl ByteAlphabet {
    /// Builds the inverse of [`byte_to_char`].
    pub(crate) fn new() -> Self {
        let mut byte_of = [256; 0x144];
        for byte in 0..=255_u8 {
            byte_of[byte_to_char(byte) as usize] = u16::from(byte);
        }
        Self { byte_of }
    }

    /// Appends the bytes that `token` spells, or returns false (and appends nothing) if a character is no stand-in.
    pub(crate) fn decode_into(&self, token: &str, out: &mut Vec<u8>) -> bool {
        let start = out.len();
        for character in token.chars() {
            let byte = self.byte_of.get(character as usize).copied().unwrap_or(256);
            let Ok(byte) = u8::try_from(byte) else {
                out.truncate(start);
                return false;
            };
            out.push(byte);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alphabet_is_a_bijection() {
        let alphabet = ByteAlphabet::new();
        for byte in 0..=255_u8 {
            let mut out = Vec::new();
            assert!(alphabet.decode_into(&byte_to_char(byte).to_string(), &mut out));
            assert_eq!(out, [byte]);
        }
        let mut out = vec![7];
        assert!(!alphabet.decode_into("ab\u{3042}", &mut out));
        assert_eq!(out, [7]);
    }

    #[test]
    fn space_and_newline_have_their_known_stand_ins() {
        assert_eq!(byte_to_char(b' '), '\u{120}');
        assert_eq!(byte_to_char(b'\n'), '\u{10A}');
    }
}
