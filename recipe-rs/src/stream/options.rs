//! How a model's output is to be read.

use std::collections::BTreeMap;

use crate::special_tokens::SpecialTokens;

/// Where parsing begins in thinking mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ThinkingInitialStage {
    /// Inside the reasoning of a new turn; leading newlines are dropped.
    ReasoningStart,
    /// Inside reasoning that the prompt began; leading newlines are kept.
    ReasoningContinuation,
    /// Inside an answer that the prompt began; leading newlines are kept.
    ContentContinuation,
}

impl ThinkingInitialStage {
    /// Whether parsing begins in reasoning.
    #[must_use]
    pub const fn starts_in_reasoning(self) -> bool {
        matches!(self, Self::ReasoningStart | Self::ReasoningContinuation)
    }
}

/// The markup of reasoning and tool calls that a model writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum OutputFormat {
    /// DeepSeek V4 and V4.1: think tags and DSML call blocks.
    #[default]
    Dsml,
    /// Plain text: nothing is markup, reasoning ends at a think end only in thinking mode.
    Plain,
    /// Think tags that the model opens by itself, no tool markup.
    ThinkTags,
    /// Think tags, and one JSON object per call between `<tool_call>` and `</tool_call>`.
    HermesJson,
    /// A JSON object with `name` and `parameters` as the whole answer, or after `<|python_tag|>`.
    Llama3Json,
    /// `[TOOL_CALLS]` followed by a JSON array of calls or by `name[ARGS]{...}`.
    Mistral,
}

impl OutputFormat {
    /// Every format with the name that options and registries use.
    pub const NAMES: [(&'static str, Self); 6] = [
        ("dsml", Self::Dsml),
        ("none", Self::Plain),
        ("think", Self::ThinkTags),
        ("hermes", Self::HermesJson),
        ("llama3", Self::Llama3Json),
        ("mistral", Self::Mistral),
    ];

    /// The format of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMES
            .into_iter()
            .find_map(|(known, format)| (known == name).then_some(format))
    }

    /// The name of this format.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES
            .into_iter()
            .find_map(|(name, format)| (format == self).then_some(name))
            .unwrap_or("dsml")
    }
}

/// Settings of one output stream.
///
/// ```
/// use recipe_rs::{ParsingOptions, ThinkingInitialStage};
///
/// let options = ParsingOptions {
///     thinking_initial_stage: Some(ThinkingInitialStage::ReasoningStart),
///     ..ParsingOptions::default()
/// };
/// assert!(options.parse_tool_calls && options.compat);
/// ```
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent switches with the names of the official codec"
)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsingOptions {
    /// Whether the markup of tool calls is read.
    pub parse_tool_calls: bool,
    /// Whether the prompt already opened the call block; wins over `thinking_initial_stage`.
    pub starts_in_tool_calls: bool,
    /// Whether the answer is JSON, bare or fenced, and the text around it turns into spaces.
    pub parse_json_output: bool,
    /// Where parsing begins in thinking mode; `None` means that thinking is off.
    pub thinking_initial_stage: Option<ThinkingInitialStage>,
    /// Texts that end the answer; they are looked for in the answer only.
    pub stop_sequences: Vec<String>,
    /// Spelling of the markup.
    pub special_tokens: SpecialTokens,
    /// Which markup the model writes.
    pub output_format: OutputFormat,
    /// Parameter names of each tool; decides whether a wrapper parameter is unwrapped.
    pub tool_parameters: BTreeMap<String, Vec<String>>,
    /// Whether fields and counts of well-formed output stay as the official codec has them.
    pub compat: bool,
}

impl Default for ParsingOptions {
    fn default() -> Self {
        Self {
            parse_tool_calls: true,
            starts_in_tool_calls: false,
            parse_json_output: false,
            thinking_initial_stage: None,
            stop_sequences: Vec::new(),
            special_tokens: SpecialTokens::default(),
            output_format: OutputFormat::default(),
            tool_parameters: BTreeMap::new(),
            compat: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_format_is_found_under_its_name() {
        for (name, format) in OutputFormat::NAMES {
            assert_eq!(OutputFormat::from_name(name), Some(format));
            assert_eq!(format.name(), name);
        }
        assert_eq!(OutputFormat::from_name("xml"), None);
    }
}
