//! Special tokens of the DeepSeek V4 and V4.1 encodings: the only place with their spellings.

use std::sync::Arc;

/// A kind of special token.
///
/// ```
/// use recipe_rs::SpecialToken;
///
/// assert_eq!(SpecialToken::ThinkingEnd.default_str(), "</think>");
/// assert_eq!(SpecialToken::ALL.len(), 18);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SpecialToken {
    /// Begin of a prompt.
    Bos,
    /// End of an assistant turn.
    Eos,
    /// Opens the reasoning.
    ThinkingStart,
    /// Closes the reasoning.
    ThinkingEnd,
    /// Opens a system turn (V4.1).
    System,
    /// Opens a user turn.
    User,
    /// Opens an assistant turn.
    Assistant,
    /// Opens a reminder.
    LatestReminder,
    /// Marks the tags of a call block; its spelling has no angle brackets.
    Dsml,
    /// Placeholder of one image in a prompt.
    Image,
    /// Opens a grounding reference.
    Ref,
    /// Closes a grounding reference.
    RefEnd,
    /// Opens a bounding box.
    Box,
    /// Closes a bounding box.
    BoxEnd,
    /// Opens a point.
    Point,
    /// Closes a point.
    PointEnd,
    /// Opens a polygon.
    Polygon,
    /// Closes a polygon.
    PolygonEnd,
}

impl SpecialToken {
    /// Every kind, in the order of the declaration.
    pub const ALL: [Self; 18] = [
        Self::Bos,
        Self::Eos,
        Self::ThinkingStart,
        Self::ThinkingEnd,
        Self::System,
        Self::User,
        Self::Assistant,
        Self::LatestReminder,
        Self::Dsml,
        Self::Image,
        Self::Ref,
        Self::RefEnd,
        Self::Box,
        Self::BoxEnd,
        Self::Point,
        Self::PointEnd,
        Self::Polygon,
        Self::PolygonEnd,
    ];

    /// The grounding tokens: markup that a model may write into visible text.
    pub const GROUNDING: [Self; 8] = [
        Self::Ref,
        Self::RefEnd,
        Self::Box,
        Self::BoxEnd,
        Self::Point,
        Self::PointEnd,
        Self::Polygon,
        Self::PolygonEnd,
    ];

    /// The tokens that structure a prompt; a model that writes one has left its turn.
    pub const TURN: [Self; 6] = [
        Self::Bos,
        Self::Eos,
        Self::System,
        Self::User,
        Self::Assistant,
        Self::LatestReminder,
    ];

    /// The spelling of this token in the V4 and V4.1 vocabularies.
    #[must_use]
    pub const fn default_str(self) -> &'static str {
        match self {
            Self::Bos => "<｜begin▁of▁sentence｜>",
            Self::Eos => "<｜end▁of▁sentence｜>",
            Self::ThinkingStart => "<think>",
            Self::ThinkingEnd => "</think>",
            Self::System => "<｜System｜>",
            Self::User => "<｜User｜>",
            Self::Assistant => "<｜Assistant｜>",
            Self::LatestReminder => "<｜latest_reminder｜>",
            Self::Dsml => "｜DSML｜",
            Self::Image => "<｜image｜>",
            Self::Ref => "<｜ref｜>",
            Self::RefEnd => "<｜/ref｜>",
            Self::Box => "<｜box｜>",
            Self::BoxEnd => "<｜/box｜>",
            Self::Point => "<｜point｜>",
            Self::PointEnd => "<｜/point｜>",
            Self::Polygon => "<｜polygon｜>",
            Self::PolygonEnd => "<｜/polygon｜>",
        }
    }
}

/// Id that every position of an image carries at inference.
pub const IMAGE_SPECIAL_TOKEN_ID: u32 = 129_264;

/// Spelling that the V4 vocabulary file gives to the id of [`SpecialToken::System`].
///
/// The V4.1 vocabulary is the V4 one with this entry renamed.
pub const SYSTEM_PLACEHOLDER: &str = "<｜place▁holder▁no▁799｜>";

/// The spelling of each [`SpecialToken`]; the default is that of DeepSeek's vocabularies.
///
/// Cloning is cheap.
///
/// ```
/// use recipe_rs::{SpecialToken, SpecialTokens};
///
/// let tokens = SpecialTokens::default().with_token(SpecialToken::Dsml, "|tool|");
/// assert_eq!(tokens.token(SpecialToken::Dsml), "|tool|");
/// assert_eq!(tokens.token(SpecialToken::User), SpecialToken::User.default_str());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecialTokens {
    spellings: Arc<[Arc<str>; 18]>,
}

impl Default for SpecialTokens {
    fn default() -> Self {
        Self {
            spellings: Arc::new(SpecialToken::ALL.map(|kind| Arc::from(kind.default_str()))),
        }
    }
}

impl SpecialTokens {
    /// The spelling of one kind.
    #[must_use]
    pub fn token(&self, kind: SpecialToken) -> &str {
        &self.spellings[kind as usize]
    }

    /// Replaces the spelling of one kind.
    #[must_use]
    pub fn with_token(mut self, kind: SpecialToken, spelling: &str) -> Self {
        Arc::make_mut(&mut self.spellings)[kind as usize] = Arc::from(spelling);
        self
    }

    /// Every kind with its spelling.
    pub fn iter(&self) -> impl Iterator<Item = (SpecialToken, &str)> {
        SpecialToken::ALL
            .into_iter()
            .map(|kind| (kind, self.token(kind)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_lists_each_kind_at_its_own_index() {
        for (index, kind) in SpecialToken::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, index);
        }
    }

    #[test]
    fn spellings_are_distinct() {
        let mut spellings: Vec<_> = SpecialToken::ALL.map(SpecialToken::default_str).to_vec();
        spellings.sort_unstable();
        spellings.dedup();
        assert_eq!(spellings.len(), SpecialToken::ALL.len());
    }

    #[test]
    fn renaming_leaves_the_original_alone() {
        let original = SpecialTokens::default();
        let renamed = original.clone().with_token(SpecialToken::Bos, "<s>");
        assert_eq!(
            original.token(SpecialToken::Bos),
            SpecialToken::Bos.default_str()
        );
        assert_eq!(renamed.token(SpecialToken::Bos), "<s>");
    }
}
