//! Collects the text of a prompt and notes which parts of it are special tokens.

use crate::conversation::Content;
use crate::render::RenderedPrompt;
use crate::special_tokens::{SpecialToken, SpecialTokens};

/// Tokens that the prompt's own texts spell out.
const TEMPLATE_TOKENS: [SpecialToken; 3] = [
    SpecialToken::ThinkingStart,
    SpecialToken::ThinkingEnd,
    SpecialToken::Dsml,
];

/// Writes a prompt; user text can reach it only as plain text.
pub(super) struct PromptWriter<'a> {
    tokens: &'a SpecialTokens,
    rendered: RenderedPrompt,
}

impl<'a> PromptWriter<'a> {
    pub(super) fn new(tokens: &'a SpecialTokens) -> Self {
        Self {
            tokens,
            rendered: RenderedPrompt::default(),
        }
    }

    pub(super) fn finish(self) -> RenderedPrompt {
        self.rendered
    }

    /// Writes a special token; one with an empty spelling leaves no trace.
    pub(super) fn special(&mut self, kind: SpecialToken) {
        let spelling = self.tokens.token(kind);
        self.special_spelling(spelling);
    }

    fn special_spelling(&mut self, spelling: &str) {
        let prompt = &mut self.rendered.prompt;
        let start = prompt.len();
        prompt.push_str(spelling);
        if start < prompt.len() {
            self.rendered.special_ranges.push(start..prompt.len());
        }
    }

    /// Writes text that holds no special token, however it is spelled.
    pub(super) fn plain(&mut self, text: &str) {
        self.rendered.prompt.push_str(text);
    }

    /// The text so far, for writers that append in place.
    pub(super) fn plain_buffer(&mut self) -> &mut String {
        &mut self.rendered.prompt
    }

    /// Writes a constant of the format, in which default spellings stand for special tokens.
    pub(super) fn template(&mut self, text: &str) {
        let spellings = TEMPLATE_TOKENS.map(|kind| (kind.default_str(), self.tokens.token(kind)));
        self.scanned(text, &spellings);
    }

    /// Writes text of the assistant, in which grounding tokens count.
    pub(super) fn grounded(&mut self, text: &str) {
        let spellings = SpecialToken::GROUNDING.map(|kind| {
            let spelling = self.tokens.token(kind);
            (spelling, spelling)
        });
        self.scanned(text, &spellings);
    }

    /// Writes content with its images.
    pub(super) fn content(&mut self, content: &Content) {
        let text = content.text();
        let mut plain_start = 0;
        for range in content.image_ranges() {
            self.plain(&text[plain_start..range.start]);
            self.special_spelling(&text[range.clone()]);
            plain_start = range.end;
        }
        self.plain(&text[plain_start..]);
        self.rendered
            .image_sources
            .extend(content.image_sources().iter().cloned());
    }

    /// Writes text, with each `found` spelling in it written as the special token `written`.
    fn scanned(&mut self, text: &str, spellings: &[(&str, &'a str)]) {
        let mut next: Vec<Option<usize>> = spellings
            .iter()
            .map(|(found, _)| find_from(text, found, 0))
            .collect();
        let mut position = 0;
        loop {
            let first = next
                .iter()
                .enumerate()
                .filter_map(|(index, start)| start.map(|start| (start, index)))
                .min();
            let Some((start, index)) = first else { break };
            let (found, written) = spellings[index];
            self.plain(&text[position..start]);
            self.special_spelling(written);
            position = start + found.len();
            for (pending, (found, _)) in next.iter_mut().zip(spellings) {
                if pending.is_some_and(|start| start < position) {
                    *pending = find_from(text, found, position);
                }
            }
        }
        self.plain(&text[position..]);
    }
}

fn find_from(text: &str, found: &str, position: usize) -> Option<usize> {
    if found.is_empty() {
        return None;
    }
    text[position..].find(found).map(|offset| position + offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn special_texts(rendered: &RenderedPrompt) -> Vec<&str> {
        rendered
            .special_ranges
            .iter()
            .map(|range| &rendered.prompt[range.clone()])
            .collect()
    }

    #[test]
    fn only_the_writer_makes_tokens_special() {
        let tokens = SpecialTokens::default();
        let user = tokens.token(SpecialToken::User).to_owned();
        let mut writer = PromptWriter::new(&tokens);
        writer.special(SpecialToken::User);
        writer.plain(&user);
        let rendered = writer.finish();
        assert_eq!(rendered.prompt, format!("{user}{user}"));
        assert_eq!(rendered.special_ranges.len(), 1);
        assert_eq!(rendered.special_ranges.first(), Some(&(0..user.len())));
    }

    #[test]
    fn template_text_takes_renamed_tokens() {
        let tokens = SpecialTokens::default()
            .with_token(SpecialToken::Dsml, "@D@")
            .with_token(SpecialToken::ThinkingStart, "");
        let dsml = SpecialToken::Dsml.default_str();
        let think = SpecialToken::ThinkingStart.default_str();
        let mut writer = PromptWriter::new(&tokens);
        writer.template(&format!("<{dsml}invoke> {think}."));
        let rendered = writer.finish();
        assert_eq!(rendered.prompt, "<@D@invoke> .");
        assert_eq!(special_texts(&rendered), ["@D@"]);
    }

    #[test]
    fn grounding_tokens_are_found_in_any_order() {
        let tokens = SpecialTokens::default();
        let open = SpecialToken::Box.default_str();
        let close = SpecialToken::BoxEnd.default_str();
        let mut writer = PromptWriter::new(&tokens);
        writer.grounded(&format!("{close}a{open}{open}b"));
        assert_eq!(special_texts(&writer.finish()), [close, open, open]);
    }
}
