//! Character classes of the pre-tokenizers, as the reference's Unicode version (16.0) has them.

/// Class of a character; ASCII characters are in it too.
///
/// The numbers are those of `data/make_unicode_classes.py`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum CharClass {
    /// Control, format, private, surrogate or unassigned.
    Other = 0,
    /// `\p{L}` outside the CJK ranges.
    Letter = 1,
    /// `\p{M}` outside the CJK ranges.
    Mark = 2,
    /// `\p{N}`.
    Number = 3,
    /// `\p{P}` or `\p{S}` outside the CJK ranges.
    Punct = 4,
    /// `\s`.
    Space = 5,
    /// `\p{L}` in U+3040-30FF or U+4E00-9FA5.
    CjkLetter = 6,
    /// `\p{M}` in those ranges.
    CjkMark = 7,
    /// `\p{P}` or `\p{S}` in those ranges.
    CjkPunct = 8,
    /// Unassigned in those ranges.
    CjkOther = 9,
}

const CLASSES: [CharClass; 10] = [
    CharClass::Other,
    CharClass::Letter,
    CharClass::Mark,
    CharClass::Number,
    CharClass::Punct,
    CharClass::Space,
    CharClass::CjkLetter,
    CharClass::CjkMark,
    CharClass::CjkPunct,
    CharClass::CjkOther,
];

const NUM_BLOCKS: usize = 0x0011_0000 / 256;
static TABLE: &[u8; NUM_BLOCKS + 152 * 256] = include_bytes!("../../data/unicode_classes.bin");

/// Class of any character, from the generated table.
#[must_use]
pub(crate) fn char_class(character: char) -> CharClass {
    let code_point = character as usize;
    let block = usize::from(TABLE[code_point >> 8]);
    CLASSES[usize::from(TABLE[NUM_BLOCKS + block * 256 + (code_point & 255)])]
}

/// Decodes the character that starts at `at`, with its length in bytes.
///
/// `at` must be a character boundary inside `text`, which must be UTF-8: the callers hold a `&str` and step by whole
/// characters.
#[must_use]
#[inline]
pub(crate) fn char_at(text: &[u8], at: usize) -> (char, usize) {
    let lead = u32::from(text[at]);
    if lead < 0x80 {
        return (text[at] as char, 1);
    }
    let tail = |offset: usize| u32::from(text[at + offset] & 0x3F);
    let (code_point, length) = if lead < 0xE0 {
        ((lead & 0x1F) << 6 | tail(1), 2)
    } else if lead < 0xF0 {
        ((lead & 0x0F) << 12 | tail(1) << 6 | tail(2), 3)
    } else {
        (
            (lead & 0x07) << 18 | tail(1) << 12 | tail(2) << 6 | tail(3),
            4,
        )
    };
    (char::from_u32(code_point).unwrap_or('\u{FFFD}'), length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_decodes_to_itself() {
        for character in '\0'..=char::MAX {
            let mut buffer = [0; 4];
            let text = character.encode_utf8(&mut buffer);
            assert_eq!(char_at(text.as_bytes(), 0), (character, text.len()));
        }
    }

    #[test]
    fn spot_classes() {
        for (character, class) in [
            ('a', CharClass::Letter),
            ('\u{301}', CharClass::Mark),
            ('\u{2460}', CharClass::Number),
            ('\u{20C1}', CharClass::Other),
            ('\u{3000}', CharClass::Space),
            ('\u{4E00}', CharClass::CjkLetter),
            ('\u{3099}', CharClass::CjkMark),
            ('\u{30FB}', CharClass::CjkPunct),
            ('\u{3040}', CharClass::CjkOther),
            ('\u{9FA6}', CharClass::Letter),
        ] {
            assert_eq!(char_class(character), class, "U+{:04X}", character as u32);
        }
    }
}
