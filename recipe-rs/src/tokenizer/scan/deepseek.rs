//! The pre-tokenizer of DeepSeek V3 and V4 as one forward pass.
//!
//! The file describes three passes: digits in threes, runs of CJK characters, then an alternation inside what remains.
//! In one pass every digit and every change between CJK and other characters is a wall: the end of the text as far as
//! the alternation is concerned.

use super::super::unicode::{CharClass, char_at, char_class};

/// Character class of this pre-tokenizer; the letters are those of the cut table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Class {
    /// ASCII letter.
    A,
    /// Other letter.
    L,
    /// Mark.
    M,
    /// Number.
    N,
    /// ASCII punctuation or symbol.
    AsciiPunct,
    /// Other punctuation or symbol.
    Punct,
    /// The space character.
    Space,
    /// Other white space.
    Blank,
    /// Carriage return or line feed.
    Newline,
    /// Control, unassigned and so on.
    Other,
    /// CJK letter or mark.
    CjkLetter,
    /// CJK punctuation or symbol.
    CjkPunct,
    /// Unassigned inside the CJK ranges.
    CjkOther,
}

pub(crate) const NUM_CLASSES: usize = 13;

impl Class {
    const fn is_cjk(self) -> bool {
        self as u8 >= Class::CjkLetter as u8
    }

    const fn is_word(self) -> bool {
        matches!(self, Class::A | Class::L | Class::M | Class::CjkLetter)
    }

    const fn is_punct(self) -> bool {
        matches!(self, Class::AsciiPunct | Class::Punct | Class::CjkPunct)
    }

    const fn is_white(self) -> bool {
        matches!(self, Class::Space | Class::Blank | Class::Newline)
    }

    const fn of_ascii(byte: u8) -> Self {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => Class::A,
            b'0'..=b'9' => Class::N,
            b' ' => Class::Space,
            b'\r' | b'\n' => Class::Newline,
            b'\t' | 0x0B | 0x0C => Class::Blank,
            0x21..=0x7E => Class::AsciiPunct,
            _ => Class::Other,
        }
    }
}

static ASCII: [Class; 128] = {
    let mut table = [Class::Other; 128];
    let mut byte = 0;
    while byte < 128 {
        table[byte] = Class::of_ascii(byte as u8);
        byte += 1;
    }
    table
};

/// Class and length in bytes of the character that starts at `at`, a character boundary inside `text`.
#[must_use]
#[inline]
pub(crate) fn class_at(text: &[u8], at: usize) -> (Class, usize) {
    let byte = text[at];
    if byte < 128 {
        return (ASCII[usize::from(byte)], 1);
    }
    let (character, length) = char_at(text, at);
    let class = match char_class(character) {
        CharClass::Other => Class::Other,
        CharClass::Letter => Class::L,
        CharClass::Mark => Class::M,
        CharClass::Number => Class::N,
        CharClass::Punct => Class::Punct,
        CharClass::Space => Class::Blank,
        CharClass::CjkLetter | CharClass::CjkMark => Class::CjkLetter,
        CharClass::CjkPunct => Class::CjkPunct,
        CharClass::CjkOther => Class::CjkOther,
    };
    (class, length)
}

/// A piece of the text up to the next wall; `None` stands for the wall.
struct Region<'a> {
    text: &'a [u8],
    cjk: bool,
}

impl Region<'_> {
    #[inline]
    fn class(&self, at: usize) -> Option<(Class, usize)> {
        if at >= self.text.len() {
            return None;
        }
        let (class, length) = class_at(self.text, at);
        (class.is_cjk() == self.cjk && class != Class::N).then_some((class, length))
    }

    /// End of the run of characters from `at` on whose class satisfies `accept`.
    #[inline]
    fn run(&self, mut at: usize, accept: impl Fn(Class) -> bool) -> usize {
        while let Some((class, length)) = self.class(at)
            && accept(class)
        {
            at += length;
        }
        at
    }

    fn word_starts_at(&self, at: usize) -> bool {
        matches!(self.class(at), Some((class, _)) if class.is_word())
    }
}

/// End of the pre-token that starts at `start`; `start` must be where one starts, and less than `text.len()`.
#[must_use]
pub(crate) fn pre_token_end(text: &[u8], start: usize) -> usize {
    let (first, length) = class_at(text, start);
    let second = start + length;
    if first == Class::N {
        return number_end(text, second);
    }
    let region = Region {
        text,
        cjk: first.is_cjk(),
    };
    match first {
        Class::A | Class::L | Class::M | Class::CjkLetter => region.run(second, Class::is_word),
        Class::AsciiPunct if matches!(region.class(second), Some((Class::A, _))) => {
            region.run(second, |class| class == Class::A)
        }
        Class::AsciiPunct | Class::Punct | Class::CjkPunct => punct_end(&region, second),
        Class::Space if matches!(region.class(second), Some((class, _)) if class.is_punct()) => {
            punct_end(&region, second)
        }
        Class::Space | Class::Blank if region.word_starts_at(second) => {
            region.run(second, Class::is_word)
        }
        Class::Space | Class::Blank | Class::Newline => white_end(&region, start),
        Class::Other | Class::CjkOther | Class::N => other_end(&region, start),
    }
}

/// Up to three digits; the first ends at `at`.
fn number_end(text: &[u8], mut at: usize) -> usize {
    for _ in 1..3 {
        if at >= text.len() {
            break;
        }
        let (class, length) = class_at(text, at);
        if class != Class::N {
            break;
        }
        at += length;
    }
    at
}

/// A run of punctuation and the newlines behind it.
fn punct_end(region: &Region<'_>, at: usize) -> usize {
    let at = region.run(at, Class::is_punct);
    region.run(at, |class| class == Class::Newline)
}

/// White space: through its last newline if it has one, else all of it but the character before a word.
fn white_end(region: &Region<'_>, start: usize) -> usize {
    let (mut at, mut last_start, mut newline_end) = (start, start, None);
    while let Some((class, length)) = region.class(at)
        && class.is_white()
    {
        last_start = at;
        at += length;
        if class == Class::Newline {
            newline_end = Some(at);
        }
    }
    match newline_end {
        Some(end) => end,
        None if region.class(at).is_some() && last_start > start => last_start,
        None => at,
    }
}

/// Characters that belong to no alternative, up to one that does; one directly before a word is that word's prefix.
fn other_end(region: &Region<'_>, start: usize) -> usize {
    let is_other = |class| matches!(class, Class::Other | Class::CjkOther);
    let mut at = start;
    while let Some((class, length)) = region.class(at)
        && is_other(class)
    {
        if region.word_starts_at(at + length) {
            return if at == start {
                region.run(at + length, Class::is_word)
            } else {
                at
            };
        }
        at += length;
    }
    at
}
