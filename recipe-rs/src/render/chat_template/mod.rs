//! Prompts from the chat template that a model brings along (Jinja).

mod marks;
mod python_json;
mod template;

use minijinja::value::{Serde, Value as TemplateValue};
use serde_json::{Map, Value};

use super::RenderedPrompt;
use crate::{Error, Result, Tokenizer};
use marks::Marks;
use template::Template;

/// Renders conversations with a model's own chat template.
///
/// Special tokens come from the template alone: what a message, a tool or an argument spells stays plain text.
#[derive(Debug, Clone)]
pub struct ChatTemplateEncoding {
    template: Template,
    tokenizer: Tokenizer,
    bos_token: String,
    eos_token: String,
    /// Spellings of the added tokens.
    spellings: Vec<String>,
}

/// What a chat template is given.
#[derive(Debug, Clone, Copy)]
pub struct ChatTemplateInput<'a> {
    /// List of messages.
    pub messages: &'a Value,
    /// List of tools, in the form the template expects.
    pub tools: Option<&'a Value>,
    /// Further variables of the template.
    pub kwargs: Option<&'a Map<String, Value>>,
    /// End the prompt with the opening of an assistant turn.
    pub add_generation_prompt: bool,
    /// End the prompt inside the last message, so that the model continues it.
    pub continue_final_message: bool,
}

impl ChatTemplateEncoding {
    /// Compiles `template` for `tokenizer`; the two spellings are what the template's `bos_token` and `eos_token` are.
    ///
    /// # Errors
    /// [`Error::Render`] when the template is empty or no valid Jinja.
    pub fn new(
        template: &str,
        tokenizer: Tokenizer,
        bos_token: &str,
        eos_token: &str,
    ) -> Result<Self> {
        if template.trim().is_empty() {
            return Err(refuse(
                "the model has no chat template; give one, or send a plain prompt",
            ));
        }
        let spellings = tokenizer
            .added_tokens()
            .map(|token| token.content.clone())
            .collect();
        Ok(Self {
            template: Template::compile(template)?,
            tokenizer,
            bos_token: bos_token.to_owned(),
            eos_token: eos_token.to_owned(),
            spellings,
        })
    }

    /// The tokenizer whose added tokens the template writes.
    #[must_use]
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// Renders a conversation.
    ///
    /// # Errors
    /// [`Error::Render`] when the messages are no list of objects, the template refuses them, or the options
    /// contradict each other.
    pub fn render(&self, input: ChatTemplateInput<'_>) -> Result<RenderedPrompt> {
        let last = check_messages(input.messages)?;
        if input.continue_final_message && input.add_generation_prompt {
            return Err(refuse(
                "continue_final_message and add_generation_prompt exclude each other; set one of them to false",
            ));
        }
        let empty = Map::new();
        let kwargs = input.kwargs.unwrap_or(&empty);
        if let Some(name) = ["messages", "tools"]
            .into_iter()
            .find(|&name| kwargs.contains_key(name))
        {
            return Err(refuse(format!(
                "chat template argument {name} is reserved; send it as its own field"
            )));
        }
        let user_values = || {
            [Some(input.messages), input.tools]
                .into_iter()
                .flatten()
                .chain(kwargs.values())
        };
        let marks = Marks::choose(&self.spellings, self.template.source(), user_values())?;
        let marked = |value: &Value| TemplateValue::from(Serde(marks.mark_value(value)));
        let mut context = vec![
            ("bos_token", TemplateValue::from(&self.bos_token)),
            ("eos_token", TemplateValue::from(&self.eos_token)),
            ("documents", TemplateValue::from(())),
            (
                "add_generation_prompt",
                TemplateValue::from(input.add_generation_prompt),
            ),
            ("messages", marked(input.messages)),
            ("tools", input.tools.map_or(TemplateValue::from(()), marked)),
        ];
        context.extend(
            kwargs
                .iter()
                .map(|(name, value)| (name.as_str(), marked(value))),
        );
        let mut text = self.template.render(context.into_iter().collect())?;
        if input.continue_final_message {
            truncate_after(&mut text, &marks.mark_text(&final_text(last)?))?;
        }
        Ok(marks.restore(&text, &self.tokenizer.find_added_tokens(&text)))
    }
}

/// Checks the shape of the messages and returns the last one.
fn check_messages(messages: &Value) -> Result<&Map<String, Value>> {
    let items = messages
        .as_array()
        .ok_or_else(|| refuse("messages must be a list of objects"))?;
    let mut last = None;
    for (index, message) in items.iter().enumerate() {
        last = message.as_object();
        if last.is_none() {
            return Err(Error::Render {
                message: format!("messages[{index}] must be an object with a role and content"),
                message_index: Some(index),
            });
        }
    }
    last.ok_or_else(|| refuse("messages is empty; give at least one message"))
}

/// Text of a message, not blank: its content, or the last text part of it.
fn final_text(message: &Map<String, Value>) -> Result<String> {
    let content = message.get("content").unwrap_or(&Value::Null);
    let text = match content {
        Value::Array(parts) => parts.iter().rev().find_map(|part| part["text"].as_str()),
        other => other.as_str(),
    };
    text.filter(|text| !text.trim().is_empty())
        .map(str::to_owned)
        .ok_or_else(|| {
            refuse("continue_final_message needs a last message whose content is text that is not blank")
        })
}

/// Cuts `text` behind the last occurrence of `content`, which a template may have stripped of outer white space.
fn truncate_after(text: &mut String, content: &str) -> Result<()> {
    let stripped = content.trim();
    let start = text.rfind(stripped).ok_or_else(|| {
        refuse(
            "the chat template does not print the last message as it is, so it cannot be continued",
        )
    })?;
    let with_tail = content.trim_start();
    let kept = if text[start..].starts_with(with_tail) {
        with_tail
    } else {
        stripped
    };
    text.truncate(start + kept.len());
    Ok(())
}

fn refuse(message: impl Into<String>) -> Error {
    Error::Render {
        message: message.into(),
        message_index: None,
    }
}
