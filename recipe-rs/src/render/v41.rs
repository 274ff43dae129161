//! The prompt of DeepSeek V4.1.

use crate::conversation::{
    AssistantMessage, Content, Conversation, Message, ResponseFormat, SystemMessage, ToolCall,
    ToolChoice, ToolMessage,
};
use crate::json::Value;
use crate::render::RenderedPrompt;
use crate::render::tool_section::V41_STYLE;
use crate::render::writer::PromptWriter;
use crate::special_tokens::{SpecialToken, SpecialTokens};
use crate::wire_constants::WIRE;

/// Renders conversations for DeepSeek V4.1.
///
/// System messages stay where they stand; tools and the response format go into the first turn.
///
/// ```
/// use recipe_rs::{Conversation, DeepseekV41Renderer, Message};
///
/// let conversation = Conversation {
///     messages: vec![Message::User("Hello".into())],
///     thinking_mode: false,
///     ..Conversation::default()
/// };
/// let rendered = DeepseekV41Renderer::default().render(&conversation);
/// assert_eq!(
///     rendered.prompt,
///     "<｜begin▁of▁sentence｜><｜User｜>Hello<｜Assistant｜></think>"
/// );
/// ```
#[derive(Debug, Clone)]
pub struct DeepseekV41Renderer {
    special_tokens: SpecialTokens,
    compat: bool,
}

impl Default for DeepseekV41Renderer {
    fn default() -> Self {
        Self {
            special_tokens: SpecialTokens::default(),
            compat: true,
        }
    }
}

impl DeepseekV41Renderer {
    /// Renders with other spellings.
    #[must_use]
    pub fn with_special_tokens(mut self, special_tokens: SpecialTokens) -> Self {
        self.special_tokens = special_tokens;
        self
    }

    /// Off: of consecutive reminders the latest stays, a first message that is a prefix keeps its
    /// reasoning, and a required choice opens no block before the reasoning.
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

        let empty_system = SystemMessage::default();
        let turns = self.ordered_turns(conversation, &empty_system);
        let mut in_user_block = false;
        for (index, turn) in turns.iter().enumerate() {
            if let Turn::User(_) | Turn::Tool(_) = turn {
                if in_user_block {
                    writer.plain("\n\n");
                } else {
                    writer.special(SpecialToken::User);
                }
            }
            in_user_block = matches!(turn, Turn::User(_) | Turn::Tool(_));
            match turn {
                Turn::User(content) => writer.content(content),
                Turn::Tool(message) => {
                    writer.plain(&WIRE.tool_result_open);
                    writer.content(&message.content);
                    writer.plain(&WIRE.tool_result_close);
                }
                Turn::LatestReminder(text) => {
                    writer.special(SpecialToken::LatestReminder);
                    writer.plain(text);
                }
                Turn::System(message) => {
                    write_system(&mut writer, conversation, message, index == 0);
                }
                Turn::Assistant(message) => {
                    let loses_reasoning = self.compat
                        && message.prefix
                        && is_first_message(conversation, message)
                        && !has_task_text(conversation);
                    write_assistant(&mut writer, conversation, message, !loses_reasoning);
                }
            }
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
            V41_STYLE.open_block(&mut writer);
        }
        writer.finish()
    }

    /// The messages with a first system turn where one is needed, reminders thinned out, and
    /// results in the order of their calls.
    fn ordered_turns<'a>(
        &self,
        conversation: &'a Conversation,
        empty_system: &'a SystemMessage,
    ) -> Vec<Turn<'a>> {
        let mut turns = Vec::with_capacity(conversation.messages.len() + 1);
        if needs_system_turn(conversation) {
            turns.push(Turn::System(empty_system));
        }
        for message in &conversation.messages {
            let turn = match message {
                Message::System(message) => Turn::System(message),
                Message::User(content) => Turn::User(content),
                Message::Assistant(message) => Turn::Assistant(message),
                Message::Tool(message) => Turn::Tool(message),
                Message::LatestReminder(text) => {
                    if let Some(Turn::LatestReminder(kept)) = turns.last_mut() {
                        if !self.compat {
                            *kept = text;
                        }
                        continue;
                    }
                    Turn::LatestReminder(text)
                }
            };
            turns.push(turn);
        }
        order_results(&mut turns);
        turns
    }
}

/// A message as it stands in the prompt.
#[derive(Clone, Copy)]
enum Turn<'a> {
    System(&'a SystemMessage),
    User(&'a Content),
    Tool(&'a ToolMessage),
    Assistant(&'a AssistantMessage),
    LatestReminder(&'a str),
}

fn needs_system_turn(conversation: &Conversation) -> bool {
    if let Some(Message::System(_)) = conversation.messages.first() {
        return false;
    }
    let has_effort_text = conversation.thinking_mode && !conversation.messages.is_empty();
    has_task_text(conversation) || has_effort_text
}

/// Whether the first turn speaks of tools or of the form of the answer.
fn has_task_text(conversation: &Conversation) -> bool {
    let has_format_text = matches!(
        conversation.response_format,
        ResponseFormat::JsonObject | ResponseFormat::JsonSchema(_)
    );
    conversation.has_active_tools() || has_format_text
}

fn is_first_message(conversation: &Conversation, message: &AssistantMessage) -> bool {
    matches!(conversation.messages.first(), Some(Message::Assistant(first)) if std::ptr::eq(first, message))
}

/// Puts the results of each user block into the order of the calls that they answer.
fn order_results(turns: &mut [Turn<'_>]) {
    let mut calls: &[ToolCall] = &[];
    let mut index = 0;
    while index < turns.len() {
        match turns[index] {
            Turn::Assistant(message) => {
                if let Some(made) = message
                    .tool_calls
                    .as_deref()
                    .filter(|made| !made.is_empty())
                {
                    calls = made;
                }
                index += 1;
            }
            Turn::User(_) | Turn::Tool(_) => {
                let length = turns[index..]
                    .iter()
                    .take_while(|turn| matches!(turn, Turn::User(_) | Turn::Tool(_)))
                    .count();
                order_block(&mut turns[index..index + length], calls);
                index += length;
            }
            Turn::System(_) | Turn::LatestReminder(_) => index += 1,
        }
    }
}

/// Reorders the results that carry an id among the places of such results.
fn order_block(block: &mut [Turn<'_>], calls: &[ToolCall]) {
    let has_id =
        |turn: &Turn<'_>| matches!(turn, Turn::Tool(message) if message.tool_call_id.is_some());
    let places: Vec<usize> = (0..block.len())
        .filter(|&place| has_id(&block[place]))
        .collect();
    if places.len() < 2 {
        return;
    }
    let mut positions = std::collections::HashMap::with_capacity(calls.len());
    for (position, call) in calls.iter().enumerate() {
        positions.entry(call.id.as_str()).or_insert(position);
    }
    let mut results: Vec<Turn<'_>> = places.iter().map(|&place| block[place]).collect();
    results.sort_by_key(|turn| match turn {
        Turn::Tool(message) => message
            .tool_call_id
            .as_deref()
            .and_then(|id| positions.get(id).copied())
            .unwrap_or(0),
        _ => 0,
    });
    for (place, result) in places.into_iter().zip(results) {
        block[place] = result;
    }
}

fn write_system(
    writer: &mut PromptWriter<'_>,
    conversation: &Conversation,
    message: &SystemMessage,
    is_first: bool,
) {
    writer.special(SpecialToken::System);
    if is_first && conversation.thinking_mode {
        let effort = conversation
            .reasoning_effort
            .unwrap_or(crate::conversation::ReasoningEffort::High);
        writer.plain(&WIRE.v41_effort_head);
        writer.plain(&effort.level().to_string());
        writer.plain(&WIRE.v41_effort_tail);
    }
    writer.content(&message.content);
    if is_first {
        if conversation.has_active_tools() {
            writer.plain("\n\n");
            writer.template(&WIRE.v41_tool_section_head);
            V41_STYLE.joined_schemas(
                writer,
                conversation.tools.iter().filter(|tool| !tool.defer_loading),
            );
            writer.plain("\n");
            writer.template(&WIRE.tool_section_tail);
        }
        match &conversation.response_format {
            ResponseFormat::JsonObject => {
                let schema: Value =
                    serde_json::from_str(&WIRE.v41_json_object_schema).unwrap_or_default();
                V41_STYLE.schema_format(writer, &schema);
            }
            ResponseFormat::JsonSchema(schema) => V41_STYLE.schema_format(writer, schema),
            ResponseFormat::Text | ResponseFormat::Regex(_) => {}
        }
    }
    if let Some(tools) = message.tools.as_deref().filter(|tools| !tools.is_empty()) {
        writer.plain(&WIRE.update_head);
        V41_STYLE.joined_schemas(writer, tools.iter());
    }
}

fn write_assistant(
    writer: &mut PromptWriter<'_>,
    conversation: &Conversation,
    message: &AssistantMessage,
    keeps_reasoning: bool,
) {
    let calls = message.tool_calls.as_deref().unwrap_or_default();
    writer.special(SpecialToken::Assistant);
    let prints_reasoning = conversation.thinking_mode
        && keeps_reasoning
        && (message.prefix || conversation.has_active_tools());
    if prints_reasoning {
        writer.special(SpecialToken::ThinkingStart);
        writer.grounded(message.reasoning_content.as_deref().unwrap_or_default());
    }
    let continues_reasoning =
        prints_reasoning && message.prefix && message.content.is_empty() && calls.is_empty();
    if !continues_reasoning {
        writer.special(SpecialToken::ThinkingEnd);
    }
    writer.grounded(&message.content);
    if !calls.is_empty() {
        V41_STYLE.open_block(writer);
        for call in calls {
            V41_STYLE.open_invoke(writer, &call.name);
            writer.plain("\n");
            V41_STYLE.parameters(writer, call, "\n", "");
            writer.plain("\n");
            V41_STYLE.close_invoke(writer);
            writer.plain("\n");
        }
        V41_STYLE.close_block(writer);
    }
    if !message.prefix {
        writer.special(SpecialToken::Eos);
    }
}
