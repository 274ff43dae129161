//! The pre-tokenizers that descend from GPT-2's, each as one forward pass.

use super::super::unicode::{CharClass, char_at, char_class};

/// What tells the members of the family apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Variant {
    /// GPT-2: a space joins the word, number or punctuation behind it.
    Gpt2,
    /// `SmolLM` and `StarCoder`: GPT-2 after every digit was split off.
    SmolLm,
    /// Llama 3: digits in threes, any character but a newline joins the word behind it.
    Llama3,
    /// Qwen 2: as Llama 3, digits alone.
    Qwen2,
}

/// Character class of this family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Class {
    /// `\p{L}`
    Letter,
    /// `\p{N}`
    Number,
    /// The apostrophe, which may open a contraction.
    Apostrophe,
    /// Everything else that is not white space.
    Other,
    /// The space character.
    Space,
    /// Other white space.
    Blank,
    /// Carriage return or line feed.
    Newline,
}

pub(crate) const NUM_CLASSES: usize = 7;

impl Class {
    const fn is_white(self) -> bool {
        matches!(self, Class::Space | Class::Blank | Class::Newline)
    }

    const fn is_other(self) -> bool {
        matches!(self, Class::Apostrophe | Class::Other)
    }

    const fn of_ascii(byte: u8) -> Self {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => Class::Letter,
            b'0'..=b'9' => Class::Number,
            b'\'' => Class::Apostrophe,
            b' ' => Class::Space,
            b'\r' | b'\n' => Class::Newline,
            b'\t' | 0x0B | 0x0C => Class::Blank,
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
        CharClass::Letter | CharClass::CjkLetter => Class::Letter,
        CharClass::Number => Class::Number,
        CharClass::Space => Class::Blank,
        _ => Class::Other,
    };
    (class, length)
}

/// End of the run of characters from `at` on whose class satisfies `accept`.
#[inline]
fn run(text: &[u8], mut at: usize, accept: impl Fn(Class) -> bool) -> usize {
    while at < text.len() {
        let (class, length) = class_at(text, at);
        if !accept(class) {
            break;
        }
        at += length;
    }
    at
}

/// Class of the character at `at`, `None` at the end of the text.
#[inline]
fn class_or_end(text: &[u8], at: usize) -> Option<Class> {
    (at < text.len()).then(|| class_at(text, at).0)
}

/// End of the pre-token that starts at `start`; `start` must be where one starts, and less than `text.len()`.
#[must_use]
pub(crate) fn pre_token_end(variant: Variant, text: &[u8], start: usize) -> usize {
    let (first, length) = class_at(text, start);
    let second = start + length;
    if first == Class::Apostrophe
        && let Some(end) = contraction_end(variant, text, second)
    {
        return end;
    }
    match variant {
        Variant::Gpt2 | Variant::SmolLm => gpt2_end(variant, text, start, first, second),
        Variant::Llama3 | Variant::Qwen2 => llama3_end(variant, text, start, first, second),
    }
}

fn gpt2_end(variant: Variant, text: &[u8], start: usize, first: Class, second: usize) -> usize {
    let is_alone = |class| variant == Variant::SmolLm && class == Class::Number;
    let joined = match (first, class_or_end(text, second)) {
        (Class::Space, Some(next)) if !next.is_white() && !is_alone(next) => next,
        _ => first,
    };
    match joined {
        Class::Letter => run(text, second, |class| class == Class::Letter),
        Class::Number if is_alone(joined) => second,
        Class::Number => run(text, second, |class| class == Class::Number),
        Class::Apostrophe | Class::Other => run(text, second, Class::is_other),
        Class::Space | Class::Blank | Class::Newline => {
            let (end, last) = white_run(text, start);
            match class_or_end(text, end) {
                Some(next) if last > start && !is_alone(next) => last,
                _ => end,
            }
        }
    }
}

fn llama3_end(variant: Variant, text: &[u8], start: usize, first: Class, second: usize) -> usize {
    let next = class_or_end(text, second);
    match first {
        Class::Letter => run(text, second, |class| class == Class::Letter),
        Class::Number => number_end(variant, text, second),
        Class::Newline => newlines_end(text, start),
        _ if next == Some(Class::Letter) => run(text, second, |class| class == Class::Letter),
        Class::Apostrophe | Class::Other => other_end(text, second),
        Class::Space if next.is_some_and(Class::is_other) => other_end(text, second),
        Class::Space | Class::Blank => newlines_end(text, start),
    }
}

/// Punctuation and the newlines behind it.
fn other_end(text: &[u8], at: usize) -> usize {
    let at = run(text, at, Class::is_other);
    run(text, at, |class| class == Class::Newline)
}

/// White space: through its last newline if it has one, else all of it but the character before what follows.
fn newlines_end(text: &[u8], start: usize) -> usize {
    let (end, last) = white_run(text, start);
    let newline = text[start..end]
        .iter()
        .rposition(|byte| matches!(byte, b'\r' | b'\n'));
    match newline {
        Some(at) => start + at + 1,
        None if end < text.len() && last > start => last,
        None => end,
    }
}

/// End of the white space at `start`, and the start of its last character.
fn white_run(text: &[u8], start: usize) -> (usize, usize) {
    let (mut at, mut last) = (start, start);
    while at < text.len() {
        let (class, length) = class_at(text, at);
        if !class.is_white() {
            break;
        }
        last = at;
        at += length;
    }
    (at, last)
}

/// Digits of one piece; the first ends at `at`.
fn number_end(variant: Variant, text: &[u8], mut at: usize) -> usize {
    let more = if variant == Variant::Llama3 { 2 } else { 0 };
    for _ in 0..more {
        if at >= text.len() {
            break;
        }
        let (class, length) = class_at(text, at);
        if class != Class::Number {
            break;
        }
        at += length;
    }
    at
}

/// End of the contraction whose apostrophe ends at `at`.
pub(super) fn contraction_end(variant: Variant, text: &[u8], at: usize) -> Option<usize> {
    let any_case = matches!(variant, Variant::Llama3 | Variant::Qwen2);
    let lower = |offset: usize| {
        let byte = text.get(at + offset).copied().unwrap_or(0);
        if any_case {
            byte.to_ascii_lowercase()
        } else {
            byte
        }
    };
    match (lower(0), lower(1)) {
        (b's' | b't' | b'm' | b'd', _) => Some(at + 1),
        (b'r' | b'v', b'e') | (b'l', b'l') => Some(at + 2),
        // The long s, which equals s without regard to case.
        (0xC5, 0xBF) if any_case => Some(at + 2),
        _ => None,
    }
}
