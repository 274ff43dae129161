//! One conversation, whichever protocol it came by: plain data.

use std::ops::Range;

use crate::json::Value;

/// How large an image may be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ImageDetail {
    /// The longer side is reduced to 512 pixels first.
    Low,
    /// The size that the encoder's limits allow.
    #[default]
    High,
    /// Same as [`ImageDetail::High`].
    Original,
    /// Same as [`ImageDetail::High`].
    Auto,
}

impl ImageDetail {
    /// Every detail with its name in requests.
    pub const NAMES: [(&'static str, Self); 4] = [
        ("low", Self::Low),
        ("high", Self::High),
        ("original", Self::Original),
        ("auto", Self::Auto),
    ];
}

/// Where the bytes of an image are.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ImageData {
    /// A `data:` URL.
    DataUrl(String),
    /// An external URL that has to be fetched.
    Url(String),
    /// The encoded file itself.
    Bytes(Vec<u8>),
}

/// One image of a conversation, not yet fetched or decoded.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ImageSource {
    /// Where the bytes are.
    pub data: ImageData,
    /// How large the image may be kept.
    pub detail: ImageDetail,
    /// Place of the image in the request, for error messages; empty if it came from no request.
    pub path: String,
}

/// Text with images at given places.
///
/// ```
/// use recipe_rs::{Content, ImageData, ImageDetail, ImageSource};
///
/// let image = ImageSource {
///     data: ImageData::DataUrl("data:image/png;base64,".into()),
///     detail: ImageDetail::High,
///     path: String::new(),
/// };
/// let content = Content::with_images("<i> and <i>", vec![image], "<i>");
/// assert_eq!(content.image_ranges(), [0..3]); // one source: the second mark is plain text
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Content {
    text: String,
    image_ranges: Vec<Range<usize>>,
    image_sources: Vec<ImageSource>,
}

impl Content {
    /// Text without images.
    #[must_use]
    pub fn text_only(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    /// Text whose first occurrences of `image_token`, one per source, are the places of the images.
    ///
    /// Fewer occurrences than sources leave the rest of the sources without a place. An empty
    /// `image_token` marks nothing.
    #[must_use]
    pub fn with_images(
        text: impl Into<String>,
        image_sources: Vec<ImageSource>,
        image_token: &str,
    ) -> Self {
        let text = text.into();
        let image_ranges = if image_token.is_empty() {
            Vec::new()
        } else {
            text.match_indices(image_token)
                .take(image_sources.len())
                .map(|(start, mark)| start..start + mark.len())
                .collect()
        };
        Self {
            text,
            image_ranges,
            image_sources,
        }
    }

    /// The text, image marks included.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Byte ranges of the image marks, ascending and disjoint.
    #[must_use]
    pub fn image_ranges(&self) -> &[Range<usize>] {
        &self.image_ranges
    }

    /// The images in the order of their marks.
    #[must_use]
    pub fn image_sources(&self) -> &[ImageSource] {
        &self.image_sources
    }

    /// Appends plain text.
    pub fn push_text(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Appends one image under the mark `image_token`.
    pub fn push_image(&mut self, source: ImageSource, image_token: &str) {
        let start = self.text.len();
        self.text.push_str(image_token);
        if start < self.text.len() {
            self.image_ranges.push(start..self.text.len());
        }
        self.image_sources.push(source);
    }

    /// Appends other content, images included.
    pub fn push_content(&mut self, other: &Self) {
        let shift = self.text.len();
        self.text.push_str(&other.text);
        let shifted = |range: &Range<usize>| range.start + shift..range.end + shift;
        self.image_ranges
            .extend(other.image_ranges.iter().map(shifted));
        self.image_sources
            .extend(other.image_sources.iter().cloned());
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::text_only(text)
    }
}

/// A call that the assistant made earlier.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ToolCall {
    /// Id that the result refers to.
    pub id: String,
    /// Name of the tool.
    pub name: String,
    /// The arguments, normally a JSON object; not validated.
    pub arguments: String,
}

/// A tool that the model may call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDefinition {
    /// Name of the tool.
    pub name: String,
    /// What the tool does.
    pub description: Option<String>,
    /// JSON Schema of the arguments.
    pub parameters: Value,
    /// Whether the arguments must fit the schema; never printed.
    pub strict: Option<bool>,
    /// Whether the tool stays out of the prompt until a later message brings it.
    pub defer_loading: bool,
}

/// Instructions to the model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SystemMessage {
    /// The text.
    pub content: Content,
    /// Tools that become available with this message (V4.1).
    pub tools: Option<Vec<ToolDefinition>>,
}

/// A turn of the assistant.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct AssistantMessage {
    /// The visible answer.
    pub content: String,
    /// The reasoning before it.
    pub reasoning_content: Option<String>,
    /// The calls after it.
    pub tool_calls: Option<Vec<ToolCall>>,
    /// Whether generation continues this message instead of starting a new one.
    pub prefix: bool,
}

/// The result of a call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct ToolMessage {
    /// The result.
    pub content: Content,
    /// Id of the call that it answers.
    pub tool_call_id: Option<String>,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// Instructions.
    System(SystemMessage),
    /// What the user said.
    User(Content),
    /// What the assistant said, thought and called.
    Assistant(AssistantMessage),
    /// The result of a call.
    Tool(ToolMessage),
    /// Extra instructions at the place where they stand.
    LatestReminder(String),
}

impl Message {
    /// Name of the role in requests.
    #[must_use]
    pub const fn role(&self) -> &'static str {
        match self {
            Self::System(_) => "system",
            Self::User(_) => "user",
            Self::Assistant(_) => "assistant",
            Self::Tool(_) => "tool",
            Self::LatestReminder(_) => "latest_reminder",
        }
    }

    /// The text of the message.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::System(message) => message.content.text(),
            Self::User(content) => content.text(),
            Self::Assistant(message) => &message.content,
            Self::Tool(message) => message.content.text(),
            Self::LatestReminder(text) => text,
        }
    }

    /// The images of the message.
    #[must_use]
    pub fn image_sources(&self) -> &[ImageSource] {
        match self {
            Self::System(message) => message.content.image_sources(),
            Self::User(content) => content.image_sources(),
            Self::Tool(message) => message.content.image_sources(),
            Self::Assistant(_) | Self::LatestReminder(_) => &[],
        }
    }
}

/// Whether the model may or must call a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// No calls; the tools stay out of the prompt.
    None,
    /// At least one call.
    Required,
}

impl ToolChoice {
    /// Every choice with its name in requests.
    pub const NAMES: [(&'static str, Self); 3] = [
        ("auto", Self::Auto),
        ("none", Self::None),
        ("required", Self::Required),
    ];
}

/// How much the model should think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReasoningEffort {
    /// Little.
    Low,
    /// Much; also what an unset effort means.
    High,
    /// Printed like [`ReasoningEffort::High`].
    Xhigh,
    /// As much as possible.
    Max,
    /// A level of the V4.1 scale from 1 to 100 (outside the official codec).
    Level(u8),
}

impl ReasoningEffort {
    /// Every named effort with its name in a conversation.
    pub const NAMES: [(&'static str, Self); 4] = [
        ("low", Self::Low),
        ("high", Self::High),
        ("xhigh", Self::Xhigh),
        ("max", Self::Max),
    ];

    /// Value on the V4.1 scale from 1 to 100.
    #[must_use]
    pub const fn level(self) -> u8 {
        match self {
            Self::Low => 50,
            Self::High | Self::Xhigh => 75,
            Self::Max => 100,
            Self::Level(level) => level,
        }
    }
}

/// What form the answer must have.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum ResponseFormat {
    /// Free text.
    #[default]
    Text,
    /// Any JSON object.
    JsonObject,
    /// JSON that fits this schema.
    JsonSchema(Value),
    /// Text that fits this regular expression.
    Regex(String),
}

impl ResponseFormat {
    /// Name of the format in requests.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::JsonObject => "json_object",
            Self::JsonSchema(_) => "json_schema",
            Self::Regex(_) => "regex",
        }
    }
}

/// The messages and what shapes the prompt besides them.
#[derive(Debug, Clone, PartialEq)]
pub struct Conversation {
    /// The messages in order.
    pub messages: Vec<Message>,
    /// Whether the model thinks before it answers.
    pub thinking_mode: bool,
    /// The tools of the request.
    pub tools: Vec<ToolDefinition>,
    /// Whether they may or must be called.
    pub tool_choice: ToolChoice,
    /// How much to think.
    pub reasoning_effort: Option<ReasoningEffort>,
    /// Form of the answer.
    pub response_format: ResponseFormat,
}

impl Default for Conversation {
    fn default() -> Self {
        Self {
            messages: Vec::new(),
            thinking_mode: true,
            tools: Vec::new(),
            tool_choice: ToolChoice::Auto,
            reasoning_effort: None,
            response_format: ResponseFormat::Text,
        }
    }
}

impl Conversation {
    /// Whether the prompt offers tools: some are given and the choice is not none.
    #[must_use]
    pub fn has_active_tools(&self) -> bool {
        !self.tools.is_empty() && self.tool_choice != ToolChoice::None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image() -> ImageSource {
        ImageSource {
            data: ImageData::Url("https://example.org/a.png".into()),
            detail: ImageDetail::Low,
            path: String::new(),
        }
    }

    #[test]
    fn marks_are_counted_by_sources() {
        let content = Content::with_images("<i><i>", vec![image(), image(), image()], "<i>");
        assert_eq!(content.image_ranges(), [0..3, 3..6]);
        assert_eq!(content.image_sources().len(), 3);
        assert!(
            Content::with_images("x", vec![image()], "")
                .image_ranges()
                .is_empty()
        );
    }

    #[test]
    fn joined_content_keeps_its_marks() {
        let mut content = Content::text_only("ab\n\n");
        content.push_content(&Content::with_images("<i>", vec![image()], "<i>"));
        content.push_image(image(), "<i>");
        assert_eq!(content.image_ranges(), [4..7, 7..10]);
        assert_eq!(content.text(), "ab\n\n<i><i>");
    }
}
