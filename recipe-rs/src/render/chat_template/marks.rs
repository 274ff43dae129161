//! Protection of user text: inside it, nothing can spell a special token.
//!
//! The first character of every spelling, and of every beginning of one at the end of a string, is replaced by a
//! private-use character that occurs nowhere else. Strings keep their length, so a template may strip, split and slice
//! them. What spells a special token after rendering started in the template.

use std::collections::HashSet;
use std::ops::Range;

use serde_json::{Map, Value};

use super::super::RenderedPrompt;
use crate::{Error, Result};

/// The marks of one rendering.
#[derive(Debug)]
pub(super) struct Marks<'a> {
    spellings: &'a [String],
    /// (character, its mark)
    pairs: Vec<(char, char)>,
}

impl<'a> Marks<'a> {
    /// Chooses a mark for each character that a spelling starts with, out of those that no string contains.
    ///
    /// # Errors
    /// [`Error::Render`] when the request uses every private-use character.
    pub(super) fn choose<'v>(
        spellings: &'a [String],
        template: &str,
        values: impl Iterator<Item = &'v Value>,
    ) -> Result<Self> {
        let mut used: HashSet<char> = template.chars().filter(|&c| is_private(c)).collect();
        used.extend(
            spellings
                .iter()
                .flat_map(|text| text.chars())
                .filter(|&c| is_private(c)),
        );
        values.for_each(|value| collect_private(value, &mut used));
        let mut free = ('\u{E000}'..='\u{F8FF}')
            .chain('\u{F0000}'..='\u{FFFFD}')
            .filter(|c| !used.contains(c));
        let mut firsts: Vec<char> = spellings
            .iter()
            .filter_map(|text| text.chars().next())
            .collect();
        firsts.sort_unstable();
        firsts.dedup();
        let pairs: Vec<(char, char)> = firsts.iter().copied().zip(&mut free).collect();
        if pairs.len() < firsts.len() {
            return Err(Error::Render {
                message: "the messages use every private-use character of Unicode; leave some of them out".to_owned(),
                message_index: None,
            });
        }
        Ok(Self { spellings, pairs })
    }

    /// A copy of `value` with the strings in it marked, keys too.
    pub(super) fn mark_value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.mark_text(text)),
            Value::Array(items) => items.iter().map(|item| self.mark_value(item)).collect(),
            Value::Object(fields) => Value::Object(
                fields
                    .iter()
                    .map(|(key, item)| (self.mark_text(key), self.mark_value(item)))
                    .collect::<Map<_, _>>(),
            ),
            other => other.clone(),
        }
    }

    /// `text` with the first character of each spelling replaced.
    pub(super) fn mark_text(&self, text: &str) -> String {
        if !self.pairs.iter().any(|(first, _)| text.contains(*first)) {
            return text.to_owned();
        }
        let trimmed = text.trim_end();
        text.char_indices()
            .map(|(at, character)| match self.mark_of(character) {
                Some(mark)
                    if self.starts_spelling(&text[at..], trimmed.get(at..).unwrap_or_default()) =>
                {
                    mark
                }
                _ => character,
            })
            .collect()
    }

    /// Whether `rest` starts with a spelling, or is all (with or without white space at its end) the start of one.
    fn starts_spelling(&self, rest: &str, trimmed: &str) -> bool {
        self.spellings.iter().any(|spelling| {
            rest.starts_with(spelling.as_str())
                || spelling.starts_with(rest)
                || !trimmed.is_empty() && spelling.starts_with(trimmed)
        })
    }

    fn mark_of(&self, character: char) -> Option<char> {
        self.pairs
            .iter()
            .find(|(first, _)| *first == character)
            .map(|(_, mark)| *mark)
    }

    /// The prompt of a rendered text: marks are turned back, and `special` (byte ranges of `text`) carried over.
    pub(super) fn restore(&self, text: &str, special: &[Range<usize>]) -> RenderedPrompt {
        let mut prompt = RenderedPrompt {
            prompt: String::with_capacity(text.len()),
            ..RenderedPrompt::default()
        };
        let mut from = 0;
        for range in special {
            self.restore_into(&text[from..range.start], &mut prompt.prompt);
            let start = prompt.prompt.len();
            prompt.prompt.push_str(&text[range.clone()]);
            prompt.special_ranges.push(start..prompt.prompt.len());
            from = range.end;
        }
        self.restore_into(&text[from..], &mut prompt.prompt);
        prompt
    }

    fn restore_into(&self, text: &str, out: &mut String) {
        out.extend(text.chars().map(|character| {
            let pair = self.pairs.iter().find(|(_, mark)| *mark == character);
            pair.map_or(character, |(first, _)| *first)
        }));
    }
}

fn is_private(character: char) -> bool {
    matches!(character, '\u{E000}'..='\u{F8FF}' | '\u{F0000}'..='\u{FFFFD}')
}

fn collect_private(value: &Value, used: &mut HashSet<char>) {
    match value {
        Value::String(text) => used.extend(text.chars().filter(|&c| is_private(c))),
        Value::Array(items) => items.iter().for_each(|item| collect_private(item, used)),
        Value::Object(fields) => {
            for (key, item) in fields {
                used.extend(key.chars().filter(|&c| is_private(c)));
                collect_private(item, used);
            }
        }
        _ => {}
    }
}
