//! The prompt of DeepSeek V4.

use std::collections::HashMap;

use crate::conversation::{
    AssistantMessage, Content, Conversation, Message, ReasoningEffort, ResponseFormat, ToolChoice,
    ToolMessage,
};
use crate::render::RenderedPrompt;
use crate::render::tool_section::V4_STYLE;
use crate::render::writer::PromptWriter;
use crate::special_tokens::{SpecialToken, SpecialTokens};
use crate::wire_constants::WIRE;

/// Efforts above this level of the V4.1 scale print the text of the highest effort.
const HIGHEST_NAMED_LEVEL: u8 = ReasoningEffort::High.level();

/// Renders conversations for DeepSeek V4.
///
/// System texts move to the front, tools and the response format follow them, and the calls of one
/// message are sorted by id.
///
/// ```
/// use recipe_rs::{Conversation, DeepseekV4Renderer, Message};
///
/// let conversation = Conversation {
///     messages: vec![Message::User("Hello".into())],
///     thinking_mode: false,
///     ..Conversation::default()
/// };
/// let rendered = DeepseekV4Renderer::default().render(&conversation);
/// assert_eq!(
///     rendered.prompt,
///     "<｜begin▁of▁sentence｜><｜User｜>Hello<｜Assistant｜></think>"
/// );
/// ```
#[derive(Debug, Clone)]
pub struct DeepseekV4Renderer {
    special_tokens: SpecialTokens,
    compat: bool,
}

impl Default for DeepseekV4Renderer {
    fn default() -> Self {
        Self {
            special_tokens: SpecialTokens::default(),
            compat: true,
        }
    }
}

impl DeepseekV4Renderer {
    /// Renders with other spellings.
    #[must_use]
    pub fn with_special_tokens(mut self, special_tokens: SpecialTokens) -> Self {
        self.special_tokens = special_tokens;
        self
    }

    /// Off: calls keep their order, and a required choice opens no block before the reasoning.
    #[must_use]
    pub fn with_compat(mut self, compat: bool) -> Self {
        self.compat = compat;
        self
    }

    /// The spellings in use.
    #[must_use]
    pub fn special_tokens(&self) -> &SpecialTokens {
        &self.special_tokens
    }

    /// Renders a conversation.
    #[must_use]
    pub fn render(&self, conversation: &Conversation) -> RenderedPrompt {
        let mut writer = PromptWriter::new(&self.special_tokens);
        writer.special(SpecialToken::Bos);
        write_front_matter(&mut writer, conversation);

        let turns = self.ordered_turns(conversation);
        let mut previous: Option<&Turn<'_>> = None;
        for (index, turn) in turns.iter().enumerate() {
            match turn {
                Turn::User(content) => {
                    match previous {
                        Some(Turn::User(_) | Turn::Tool(_)) => writer.plain("\n\n"),
                        _ => writer.special(SpecialToken::User),
                    }
                    writer.content(content);
                }
                Turn::Tool(message) => {
                    match previous {
                        Some(Turn::Tool(_)) => writer.plain("\n\n"),
                        _ => writer.special(SpecialToken::User),
                    }
                    writer.plain(&WIRE.tool_result_open);
                    writer.content(&message.content);
                    writer.plain(&WIRE.tool_result_close);
                }
                Turn::LatestReminder(text) => {
                    writer.special(SpecialToken::LatestReminder);
                    writer.plain(text);
                }
                Turn::Assistant(message) => {
                    let is_last = index + 1 == turns.len();
                    self.write_assistant(&mut writer, conversation, message, is_last);
                }
            }
            previous = Some(turn);
        }

        if !matches!(turns.last(), Some(Turn::Assistant(message)) if message.prefix) {
            writer.special(SpecialToken::Assistant);
            writer.special(if conversation.thinking_mode {
                SpecialToken::ThinkingStart
            } else {
                SpecialToken::ThinkingEnd
            });
        }
        let opens_block =
            conversation.has_active_tools() && conversation.tool_choice == ToolChoice::Required;
        if opens_block && (self.compat || !conversation.thinking_mode) {
            V4_STYLE.open_block(&mut writer);
        }
        writer.finish()
    }

    fn write_assistant(
        &self,
        writer: &mut PromptWriter<'_>,
        conversation: &Conversation,
        message: &AssistantMessage,
        is_last: bool,
    ) {
        writer.special(SpecialToken::Assistant);
        let continues_reasoning =
            message.prefix && conversation.thinking_mode && message.content.is_empty();
        let reasoning = message
            .reasoning_content
            .as_deref()
            .filter(|_| message.prefix || conversation.has_active_tools());
        if let Some(reasoning) = reasoning {
            writer.special(SpecialToken::ThinkingStart);
            writer.grounded(reasoning);
        }
        if !continues_reasoning {
            writer.special(SpecialToken::ThinkingEnd);
        }
        writer.grounded(&message.content);
        if let Some(calls) = &message.tool_calls {
            V4_STYLE.open_block(writer);
            let mut ordered: Vec<_> = calls.iter().collect();
            if self.compat {
                ordered.sort_by(|left, right| left.id.cmp(&right.id));
            }
            for call in ordered {
                V4_STYLE.open_invoke(writer, &call.name);
                writer.plain("\n");
                V4_STYLE.parameters(writer, call, "", "\n");
                V4_STYLE.close_invoke(writer);
                writer.plain("\n");
            }
            V4_STYLE.close_block(writer);
        }
        if !(message.prefix && is_last) {
            writer.special(SpecialToken::Eos);
        }
    }

    /// The messages without system messages, users merged, results in the order of their calls.
    fn ordered_turns<'a>(&self, conversation: &'a Conversation) -> Vec<Turn<'a>> {
        let mut turns = merged_turns(conversation);
        let windows: Vec<(usize, &AssistantMessage)> = turns
            .iter()
            .enumerate()
            .filter_map(|(index, turn)| match turn {
                Turn::Assistant(message) => Some((index, *message)),
                _ => None,
            })
            .collect();
        for (index, message) in windows {
            let calls = message.tool_calls.as_deref().unwrap_or_default();
            if calls.is_empty() || index + calls.len() >= turns.len() {
                continue;
            }
            let window = &mut turns[index + 1..=index + calls.len()];
            if self.compat {
                window.sort_by(|left, right| left.id_order().cmp(&right.id_order()));
            } else {
                let mut positions = HashMap::with_capacity(calls.len());
                for (position, call) in calls.iter().enumerate() {
                    positions.entry(call.id.as_str()).or_insert(position);
                }
                window.sort_by_key(|turn| match turn {
                    Turn::Tool(message) => message
                        .tool_call_id
                        .as_deref()
                        .and_then(|id| positions.get(id).copied())
                        .unwrap_or(0),
                    _ => calls.len(),
                });
            }
        }
        turns
    }
}

/// A message as it stands in the prompt.
enum Turn<'a> {
    User(Content),
    Tool(&'a ToolMessage),
    Assistant(&'a AssistantMessage),
    LatestReminder(&'a str),
}

impl Turn<'_> {
    /// Sort key inside a window of results: tool messages first, then by id.
    fn id_order(&self) -> (bool, Option<&str>) {
        match self {
            Turn::Tool(message) => (false, message.tool_call_id.as_deref()),
            _ => (true, None),
        }
    }
}

/// Effort, system texts, tools and response format.
fn write_front_matter(writer: &mut PromptWriter<'_>, conversation: &Conversation) {
    if conversation.thinking_mode {
        match conversation.reasoning_effort {
            None | Some(ReasoningEffort::High | ReasoningEffort::Xhigh) => {
                writer.plain(&WIRE.v4_effort_high);
            }
            Some(ReasoningEffort::Max) => writer.plain(&WIRE.v4_effort_max),
            Some(ReasoningEffort::Low) => {}
            Some(ReasoningEffort::Level(level)) => {
                if level > HIGHEST_NAMED_LEVEL {
                    writer.plain(&WIRE.v4_effort_max);
                } else if level > ReasoningEffort::Low.level() {
                    writer.plain(&WIRE.v4_effort_high);
                }
            }
        }
    }
    let mut separator = "";
    for message in &conversation.messages {
        if let Message::System(message) = message {
            if message.content.text().is_empty() {
                continue;
            }
            writer.plain(separator);
            separator = "\n\n";
            writer.content(&message.content);
        }
    }
    if conversation.has_active_tools() {
        writer.plain("\n\n");
        writer.template(&WIRE.v4_tool_section_head);
        for tool in conversation.tools.iter().filter(|tool| !tool.defer_loading) {
            V4_STYLE.schema_line(writer, tool);
            writer.plain("\n");
        }
        writer.template(&WIRE.tool_section_tail);
    }
    match &conversation.response_format {
        ResponseFormat::JsonObject => writer.plain(&WIRE.v4_json_object),
        ResponseFormat::JsonSchema(schema) => V4_STYLE.schema_format(writer, schema),
        ResponseFormat::Text | ResponseFormat::Regex(_) => {}
    }
}

fn merged_turns(conversation: &Conversation) -> Vec<Turn<'_>> {
    let mut turns: Vec<Turn<'_>> = Vec::with_capacity(conversation.messages.len());
    for message in &conversation.messages {
        match message {
            Message::System(_) => {}
            Message::User(content) => {
                if let Some(Turn::User(merged)) = turns.last_mut() {
                    if !merged.text().is_empty() && !content.text().is_empty() {
                        merged.push_text("\n\n");
                    }
                    merged.push_content(content);
                } else {
                    turns.push(Turn::User(content.clone()));
                }
            }
            Message::Assistant(message) => turns.push(Turn::Assistant(message)),
            Message::Tool(message) => turns.push(Turn::Tool(message)),
            Message::LatestReminder(text) => turns.push(Turn::LatestReminder(text)),
        }
    }
    turns
}
