//! Added tokens: their properties, and where a text spells them.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use aho_corasick::{AhoCorasick, MatchKind};

use super::file::AddedTokenEntry;
use crate::{Error, Result};

/// One added token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddedToken {
    /// Its id.
    pub id: u32,
    /// Its spelling.
    pub content: String,
    /// Whether decoding with `skip_special_tokens` leaves it out.
    pub special: bool,
    /// Whether it swallows white space before it.
    pub lstrip: bool,
    /// Whether it swallows white space after it.
    pub rstrip: bool,
}

/// The added tokens of a tokenizer and their matcher.
#[derive(Debug, Clone)]
pub(crate) struct AddedTokens {
    by_content: BTreeMap<String, AddedToken>,
    /// Spelling of each id; the first one if several spell it.
    content_of: HashMap<u32, String>,
    special_ids: Vec<u32>,
    /// Matchers of the two rounds: tokens to find in the raw text, then in what remains of it.
    rounds: [Option<Round>; 2],
    plain_matching: bool,
}

#[derive(Debug, Clone)]
struct Round {
    automaton: AhoCorasick,
    ids: Vec<u32>,
}

impl AddedTokens {
    /// Builds the matchers of the tokens that the file lists.
    ///
    /// # Errors
    /// [`Error::Tokenizer`] when a token is empty or the automaton would be too large.
    pub(crate) fn new(entries: &[AddedTokenEntry<'_>]) -> Result<Self> {
        let mut by_content = BTreeMap::new();
        for entry in entries {
            if entry.content.is_empty() {
                return Err(Error::Tokenizer {
                    message: format!("added token {} is empty", entry.id),
                    offset: None,
                });
            }
            by_content.insert(
                entry.content.to_string(),
                AddedToken {
                    id: entry.id,
                    content: entry.content.to_string(),
                    special: entry.special,
                    lstrip: entry.lstrip,
                    rstrip: entry.rstrip,
                },
            );
        }
        let content_of = by_content
            .values()
            .rev()
            .map(|token: &AddedToken| (token.id, token.content.clone()))
            .collect();
        let mut special_ids: Vec<u32> = by_content
            .values()
            .filter(|t| t.special)
            .map(|t| t.id)
            .collect();
        special_ids.sort_unstable();
        special_ids.dedup();
        let plain_matching = !entries
            .iter()
            .any(|t| t.single_word || t.lstrip || t.rstrip);
        let round = |normalized| Round::new(entries.iter().filter(|t| t.normalized == normalized));
        let rounds = [round(false)?, round(true)?];
        Ok(Self {
            by_content,
            content_of,
            special_ids,
            rounds,
            plain_matching,
        })
    }

    /// Whether a token is found wherever its spelling stands: none has a word, left-strip or right-strip rule.
    #[must_use]
    pub(crate) fn has_plain_matching(&self) -> bool {
        self.plain_matching
    }

    /// The token of exactly this spelling.
    #[must_use]
    pub(crate) fn get(&self, content: &str) -> Option<&AddedToken> {
        self.by_content.get(content)
    }

    /// The token of this id.
    #[must_use]
    pub(crate) fn of_id(&self, id: u32) -> Option<&AddedToken> {
        self.get(self.content_of.get(&id)?)
    }

    /// All tokens in the order of their spellings.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &AddedToken> {
        self.by_content.values()
    }

    /// Whether decoding with `skip_special_tokens` leaves `id` out.
    #[must_use]
    #[inline]
    pub(crate) fn is_special(&self, id: u32) -> bool {
        self.special_ids.binary_search(&id).is_ok()
    }

    /// Ids of the tokens that are special.
    #[must_use]
    pub(crate) fn special_ids(&self) -> &[u32] {
        &self.special_ids
    }

    /// Byte ranges and ids of the tokens that `text` spells, in order.
    #[must_use]
    pub(crate) fn find(&self, text: &str) -> Vec<(Range<usize>, u32)> {
        let [first, second] = &self.rounds;
        let mut found = Vec::new();
        let mut from = 0;
        let search_rest = |rest: Range<usize>, found: &mut Vec<(Range<usize>, u32)>| {
            if let Some(second) = second {
                let offset = rest.start;
                found.extend(
                    second
                        .find(&text[rest])
                        .map(|(range, id)| (range.start + offset..range.end + offset, id)),
                );
            }
        };
        if let Some(first) = first {
            for (range, id) in first.find(text) {
                search_rest(from..range.start, &mut found);
                from = range.end;
                found.push((range, id));
            }
        }
        search_rest(from..text.len(), &mut found);
        found
    }
}

impl Round {
    fn new<'a>(entries: impl Iterator<Item = &'a AddedTokenEntry<'a>>) -> Result<Option<Self>> {
        let (contents, ids): (Vec<&str>, Vec<u32>) =
            entries.map(|t| (t.content.as_ref(), t.id)).unzip();
        if contents.is_empty() {
            return Ok(None);
        }
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(contents)
            .map_err(|error| Error::Tokenizer {
                message: format!("the added tokens cannot be searched for: {error}"),
                offset: None,
            })?;
        Ok(Some(Self { automaton, ids }))
    }

    fn find(&self, text: &str) -> impl Iterator<Item = (Range<usize>, u32)> {
        self.automaton
            .find_iter(text)
            .map(|found| (found.range(), self.ids[found.pattern().as_usize()]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(specs: &[(&'static str, bool)]) -> AddedTokens {
        let entries: Vec<AddedTokenEntry<'_>> = specs
            .iter()
            .zip(0..)
            .map(|(&(content, normalized), id)| AddedTokenEntry {
                id,
                content: content.into(),
                single_word: false,
                lstrip: false,
                rstrip: false,
                normalized,
                special: true,
            })
            .collect();
        AddedTokens::new(&entries).unwrap()
    }

    #[test]
    fn raw_tokens_win_over_normalized_ones() {
        let added = tokens(&[
            ("</table>|", false),
            ("|DSML|", true),
            ("<a", false),
            ("<ab", false),
        ]);
        assert_eq!(added.find("</table>|DSML|"), [(0..9, 0)]);
        assert_eq!(
            added.find("x|DSML|<abc<a"),
            [(1..7, 1), (7..10, 3), (11..13, 2)]
        );
        assert_eq!(added.find(""), []);
    }

    #[test]
    fn empty_token_is_refused() {
        let entry: AddedTokenEntry<'_> =
            serde_json::from_str(r#"{"id": 3, "content": ""}"#).unwrap();
        assert!(AddedTokens::new(&[entry]).is_err());
    }
}
