//! Stop strings, matched while the text arrives.

use crate::{Error, Result};

/// One stop string with its failure function (Knuth, Morris and Pratt).
#[derive(Debug, Clone)]
struct Pattern {
    text: Box<[u8]>,
    /// `failure[n]`: length of the longest proper prefix of the first `n + 1` bytes that is also their suffix.
    failure: Box<[u32]>,
    /// Number of bytes matched at the end of the text so far.
    matched: usize,
}

/// Matches several stop strings at once; each byte of the text is looked at once.
#[derive(Debug, Clone)]
pub struct StopMatcher {
    patterns: Vec<Pattern>,
    /// Whether a stop string starts with this byte.
    starts: [bool; 256],
    is_idle: bool,
}

/// A stop string that the text has completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StopMatch {
    /// Index of the stop string.
    pub index: usize,
    /// Bytes of the piece up to and including the end of the stop string.
    pub end: usize,
    /// Length of the stop string in bytes; it may begin before the piece.
    pub length: usize,
}

impl StopMatcher {
    /// Builds the matcher of `stop`.
    ///
    /// # Errors
    /// [`Error::Conversion`] when a stop string is empty.
    pub fn new<S: AsRef<str>>(stop: &[S]) -> Result<Self> {
        let mut starts = [false; 256];
        let mut patterns = Vec::with_capacity(stop.len());
        for (index, text) in stop.iter().enumerate() {
            let text = text.as_ref().as_bytes();
            let Some(&first) = text.first() else {
                return Err(Error::Conversion {
                    message: format!(
                        "stop[{index}] is empty; leave it out or give at least one character"
                    ),
                    param: Some(format!("stop[{index}]")),
                    status_code: 400,
                });
            };
            starts[usize::from(first)] = true;
            patterns.push(Pattern {
                text: text.into(),
                failure: failure_function(text),
                matched: 0,
            });
        }
        Ok(Self {
            patterns,
            starts,
            is_idle: true,
        })
    }

    /// Adds a piece of text and returns the stop string that ends first in it, the longest if several end together.
    ///
    /// After a match the matcher is spent.
    pub fn push(&mut self, piece: &str) -> Option<StopMatch> {
        if self.patterns.is_empty() {
            return None;
        }
        for (at, &byte) in piece.as_bytes().iter().enumerate() {
            if self.is_idle && !self.starts[usize::from(byte)] {
                continue;
            }
            let mut best: Option<StopMatch> = None;
            self.is_idle = true;
            for (index, pattern) in self.patterns.iter_mut().enumerate() {
                if pattern.advance(byte) {
                    let length = pattern.text.len();
                    if best.is_none_or(|found| found.length < length) {
                        best = Some(StopMatch {
                            index,
                            end: at + 1,
                            length,
                        });
                    }
                }
                self.is_idle &= pattern.matched == 0;
            }
            if best.is_some() {
                return best;
            }
        }
        None
    }

    /// Number of bytes at the end of the text that may still become part of a stop string.
    #[must_use]
    pub fn num_held_bytes(&self) -> usize {
        self.patterns
            .iter()
            .map(|pattern| pattern.matched)
            .max()
            .unwrap_or(0)
    }
}

impl Pattern {
    /// Adds one byte; true when the whole pattern is matched.
    fn advance(&mut self, byte: u8) -> bool {
        while self.matched > 0
            && (self.matched == self.text.len() || self.text[self.matched] != byte)
        {
            self.matched = self.failure[self.matched - 1] as usize;
        }
        if self.text[self.matched] == byte {
            self.matched += 1;
        }
        self.matched == self.text.len()
    }
}

fn failure_function(text: &[u8]) -> Box<[u32]> {
    let mut failure = vec![0_u32; text.len()];
    let mut matched = 0;
    for at in 1..text.len() {
        while matched > 0 && text[matched] != text[at] {
            matched = failure[matched - 1] as usize;
        }
        if text[matched] == text[at] {
            matched += 1;
        }
        failure[at] = matched as u32;
    }
    failure.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_prefixes() {
        let mut matcher = StopMatcher::new(&["abab", "ba"]).unwrap();
        assert_eq!(matcher.push("aa"), None);
        assert_eq!(matcher.num_held_bytes(), 1);
        assert_eq!(
            matcher.push("ba"),
            Some(StopMatch {
                index: 1,
                end: 2,
                length: 2
            })
        );
        let mut matcher = StopMatcher::new(&["c", "abc"]).unwrap();
        assert_eq!(
            matcher.push("xabc"),
            Some(StopMatch {
                index: 1,
                end: 4,
                length: 3
            })
        );
    }

    #[test]
    fn empty_stop_is_refused() {
        let error = StopMatcher::new(&["a", ""]).unwrap_err();
        assert!(error.to_string().contains("stop[1]"));
    }
}
