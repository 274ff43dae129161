//! From a conversation to the text of a prompt.

mod chat_template;
mod tool_section;
mod v4;
mod v41;
mod writer;

use std::ops::Range;

pub use chat_template::{ChatTemplateEncoding, ChatTemplateInput};
pub use v4::DeepseekV4Renderer;
pub use v41::DeepseekV41Renderer;

use crate::conversation::ImageSource;

/// A prompt, the places of its special tokens, and its images.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RenderedPrompt {
    /// The text.
    pub prompt: String,
    /// Byte ranges of `prompt` that are special tokens: ascending, disjoint, one token each.
    pub special_ranges: Vec<Range<usize>>,
    /// The images in the order of their placeholders.
    pub image_sources: Vec<ImageSource>,
}
