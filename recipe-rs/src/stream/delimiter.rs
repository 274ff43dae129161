//! Incremental search for delimiters: Knuth-Morris-Pratt over bytes that carry a trust level.

/// How much a byte may count as markup.
///
/// The same spelling can come from a special id, from a text chunk (whose backend kept no ids) or
/// from ordinary tokens; only the first two may be markup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Trust {
    /// Spelled by ordinary token ids: never markup.
    Plain,
    /// From a text chunk: markup where it is spelled like it.
    Text,
    /// Spelled by one special id.
    SpecialId,
}

/// One delimiter and how much of it the input ends with.
#[derive(Debug, Clone)]
pub(crate) struct Delimiter {
    pattern: Box<[u8]>,
    /// Trust that each byte of the pattern asks for.
    needs: Box<[Trust]>,
    /// `failure[k]`: length of the longest proper border of the first `k + 1` bytes.
    failure: Box<[usize]>,
    matched: usize,
    takes_newlines: bool,
    newline_run: usize,
    /// Whether a newline that ends a partial match is not counted, as in the official codec.
    forgets_newline: bool,
}

impl Delimiter {
    fn from_parts(parts: &[(&str, Trust)]) -> Self {
        let mut pattern = Vec::new();
        let mut needs = Vec::new();
        for (text, need) in parts {
            pattern.extend_from_slice(text.as_bytes());
            needs.resize(pattern.len(), *need);
        }
        let mut failure = vec![0; pattern.len()];
        let mut border = 0;
        for index in 1..pattern.len() {
            // A border may be reused only if it accepts whatever the longer match accepted.
            let fits =
                |border: usize| pattern[border] == pattern[index] && needs[border] <= needs[index];
            while border > 0 && !fits(border) {
                border = failure[border - 1];
            }
            if fits(border) {
                border += 1;
            }
            failure[index] = border;
        }
        Self {
            pattern: pattern.into(),
            needs: needs.into(),
            failure: failure.into(),
            matched: 0,
            takes_newlines: false,
            newline_run: 0,
            forgets_newline: false,
        }
    }

    /// A delimiter that matches wherever it is spelled.
    pub(crate) fn plain(text: &str) -> Self {
        Self::from_parts(&[(text, Trust::Plain)])
    }

    /// A delimiter that ordinary tokens cannot spell.
    pub(crate) fn markup(text: &str) -> Self {
        Self::from_parts(&[(text, Trust::Text)])
    }

    /// A delimiter that only its special id spells.
    pub(crate) fn special_id(text: &str) -> Self {
        Self::from_parts(&[(text, Trust::SpecialId)])
    }

    /// A delimiter made of a free prefix and a part that ordinary tokens cannot spell.
    pub(crate) fn tag(prefix: &str, marker: &str) -> Self {
        Self::from_parts(&[(prefix, Trust::Plain), (marker, Trust::Text)])
    }

    /// A delimiter that begins with a part that ordinary tokens cannot spell.
    pub(crate) fn tag_with_tail(marker: &str, tail: &str) -> Self {
        Self::from_parts(&[(marker, Trust::Text), (tail, Trust::Plain)])
    }

    /// Lets the delimiter include all newlines directly before it.
    ///
    /// With `compat` a newline that ends a partial match does not count.
    pub(crate) fn taking_newlines(mut self, compat: bool) -> Self {
        self.takes_newlines = true;
        self.forgets_newline = compat;
        self
    }

    fn accepts(&self, byte: u8, trust: Trust) -> bool {
        self.pattern[self.matched] == byte && trust >= self.needs[self.matched]
    }

    /// Takes one byte; true when it completes the delimiter.
    fn advance(&mut self, byte: u8, trust: Trust) -> bool {
        let was_partial = self.matched > 0;
        while self.matched > 0 && !self.accepts(byte, trust) {
            self.matched = self.failure[self.matched - 1];
            self.newline_run = 0;
        }
        let counts_newline = self.takes_newlines && !(was_partial && self.forgets_newline);
        if self.accepts(byte, trust) {
            self.matched += 1;
        } else if counts_newline && byte == b'\n' {
            self.newline_run += 1;
        } else {
            self.newline_run = 0;
        }
        self.matched == self.pattern.len()
    }

    /// Bytes at the end of the input that may belong to a coming match.
    fn held(&self) -> usize {
        self.newline_run + self.matched
    }

    fn reset(&mut self) {
        self.matched = 0;
        self.newline_run = 0;
    }
}

/// A match that a [`DelimiterSet`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hit<R> {
    /// What was found.
    pub(crate) role: R,
    /// Bytes of the scanned slice up to and including the last byte of the match.
    pub(crate) consumed: usize,
    /// Length of the match with the newlines that it took.
    pub(crate) length: usize,
    /// How many of these bytes are newlines before the delimiter.
    pub(crate) newlines: usize,
}

/// Delimiters searched side by side; the first to complete wins, at a tie the first in order.
#[derive(Debug, Clone)]
pub(crate) struct DelimiterSet<R> {
    delimiters: Vec<(Delimiter, R)>,
    starts: [bool; 256],
}

impl<R: Copy> DelimiterSet<R> {
    pub(crate) fn new(delimiters: impl IntoIterator<Item = (Delimiter, R)>) -> Self {
        let delimiters: Vec<_> = delimiters
            .into_iter()
            .filter(|(delimiter, _)| !delimiter.pattern.is_empty())
            .collect();
        let mut starts = [false; 256];
        for (delimiter, _) in &delimiters {
            starts[usize::from(delimiter.pattern[0])] = true;
            if delimiter.takes_newlines {
                starts[usize::from(b'\n')] = true;
            }
        }
        Self { delimiters, starts }
    }

    /// Scans bytes of one trust level up to the first match; the set is reset by a match.
    pub(crate) fn scan(&mut self, bytes: &[u8], trust: Trust) -> Option<Hit<R>> {
        let mut index = 0;
        while index < bytes.len() {
            if self.held() == 0 {
                let skipped = bytes[index..]
                    .iter()
                    .position(|byte| self.starts[usize::from(*byte)])?;
                index += skipped;
            }
            let byte = bytes[index];
            index += 1;
            let mut found = None;
            for (delimiter, role) in &mut self.delimiters {
                if delimiter.advance(byte, trust) && found.is_none() {
                    found = Some(Hit {
                        role: *role,
                        consumed: index,
                        length: delimiter.held(),
                        newlines: delimiter.newline_run,
                    });
                }
            }
            if found.is_some() {
                self.reset();
                return found;
            }
        }
        None
    }

    /// Bytes at the end of the input that may belong to a coming match.
    pub(crate) fn held(&self) -> usize {
        self.delimiters
            .iter()
            .map(|(delimiter, _)| delimiter.held())
            .max()
            .unwrap_or(0)
    }

    pub(crate) fn reset(&mut self) {
        for (delimiter, _) in &mut self.delimiters {
            delimiter.reset();
        }
    }
}

/// Spellings of which one has to follow right here.
#[derive(Debug, Clone)]
pub(crate) struct Alternatives {
    spellings: Vec<Delimiter>,
    at: usize,
    alive: Vec<bool>,
}

/// How far [`Alternatives`] are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// One of the spellings may still follow.
    Open,
    /// One of them is complete.
    Complete,
    /// None of them follows.
    Dead,
}

impl Alternatives {
    pub(crate) fn new(spellings: Vec<Delimiter>) -> Self {
        Self {
            alive: vec![true; spellings.len()],
            at: 0,
            spellings,
        }
    }

    pub(crate) fn reset(&mut self) {
        self.at = 0;
        self.alive.fill(true);
    }

    /// Takes one byte.
    pub(crate) fn advance(&mut self, byte: u8, trust: Trust) -> Progress {
        let at = self.at;
        self.at += 1;
        let mut progress = Progress::Dead;
        for (spelling, alive) in self.spellings.iter().zip(&mut self.alive) {
            *alive = *alive
                && spelling.pattern.get(at) == Some(&byte)
                && spelling.needs.get(at).is_some_and(|need| trust >= *need);
            if *alive && spelling.pattern.len() == self.at {
                return Progress::Complete;
            }
            if *alive {
                progress = Progress::Open;
            }
        }
        progress
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn find_all(set: &mut DelimiterSet<usize>, text: &[u8], cut: usize) -> Vec<(usize, usize)> {
        let mut hits = Vec::new();
        let cut = cut.min(text.len());
        for (base, part) in [(0, &text[..cut]), (cut, &text[cut..])] {
            let mut at = 0;
            while let Some(hit) = set.scan(&part[at..], Trust::Text) {
                at += hit.consumed;
                hits.push((hit.role, base + at));
            }
        }
        hits
    }

    /// The definition: at each position, does a delimiter end here inside the text since the last match?
    fn find_all_naive(patterns: &[String], text: &[u8]) -> Vec<(usize, usize)> {
        let mut hits = Vec::new();
        let mut from = 0;
        for end in 1..=text.len() {
            let found = patterns
                .iter()
                .position(|pattern| text[from..end].ends_with(pattern.as_bytes()));
            if let Some(role) = found {
                hits.push((role, end));
                from = end;
            }
        }
        hits
    }

    proptest! {
        #[test]
        fn finds_what_the_definition_finds(
            patterns in prop::collection::vec("[ab]{1,4}", 1..4),
            text in "[abc]{0,40}",
            cut in 0_usize..40,
        ) {
            let mut set = DelimiterSet::new(
                patterns.iter().enumerate().map(|(role, text)| (Delimiter::plain(text), role)),
            );
            prop_assert_eq!(
                find_all(&mut set, text.as_bytes(), cut),
                find_all_naive(&patterns, text.as_bytes())
            );
        }

        #[test]
        fn holds_the_longest_end_that_may_grow_into_a_match(
            pattern in "[ab]{1,5}",
            text in "[abc]{0,20}",
        ) {
            let mut set = DelimiterSet::new([(Delimiter::plain(&pattern), ())]);
            let mut rest = text.as_bytes();
            let mut unmatched = rest;
            while let Some(hit) = set.scan(rest, Trust::Text) {
                rest = &rest[hit.consumed..];
                unmatched = rest;
            }
            let expected = (0..pattern.len())
                .rev()
                .find(|length| unmatched.ends_with(&pattern.as_bytes()[..*length]))
                .unwrap_or(0);
            prop_assert_eq!(set.held(), expected);
        }
    }

    #[test]
    fn newlines_before_a_delimiter_belong_to_it_only_when_they_touch_it() {
        let mut set = DelimiterSet::new([(Delimiter::plain("<x").taking_newlines(false), ())]);
        let hit = set.scan(b"a\n\n<x", Trust::Text).unwrap();
        assert_eq!((hit.consumed, hit.length, hit.newlines), (5, 4, 2));
        let hit = set.scan(b"\n<<x", Trust::Text).unwrap();
        assert_eq!((hit.consumed, hit.length), (4, 2));
        assert!(set.scan(b"a\n\n", Trust::Text).is_none());
        assert_eq!(set.held(), 2);
    }

    #[test]
    fn a_newline_that_ends_a_partial_match_counts_without_compat_only() {
        for (compat, length) in [(false, 3), (true, 2)] {
            let delimiter = Delimiter::plain("<x").taking_newlines(compat);
            let mut set = DelimiterSet::new([(delimiter, ())]);
            let hit = set.scan(b"a<\n<x", Trust::Text).unwrap();
            assert_eq!((hit.consumed, hit.length), (5, length));
        }
    }

    #[test]
    fn ordinary_tokens_cannot_spell_markup() {
        let mut set = DelimiterSet::new([(Delimiter::tag("<", "|M|"), ())]);
        assert!(set.scan(b"<|M|", Trust::Plain).is_none());
        assert!(set.scan(b"<", Trust::Plain).is_none());
        assert!(set.scan(b"|M|", Trust::SpecialId).is_some());
    }
}
