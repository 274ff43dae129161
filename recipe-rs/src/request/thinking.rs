//! Whether and how much the model thinks.

use crate::conversation::ReasoningEffort;
use crate::error::Result;
use crate::request::options::{ConversionOptions, ServedModel};
use crate::request::reader::{Field, alternatives};

/// What `thinking.type` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ThinkingType {
    Enabled,
    Disabled,
    Adaptive,
    /// Thinking also between tool calls; the prompt formats keep it anyway.
    BetweenTools,
}

const THINKING_TYPES: [(&str, ThinkingType); 4] = [
    ("enabled", ThinkingType::Enabled),
    ("disabled", ThinkingType::Disabled),
    ("adaptive", ThinkingType::Adaptive),
    ("between_tools", ThinkingType::BetweenTools),
];

/// An effort as requests spell it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestedEffort {
    /// Thinking is off.
    Off,
    On(ReasoningEffort),
}

const EFFORTS: [(&str, RequestedEffort); 8] = [
    ("none", RequestedEffort::Off),
    ("minimal", RequestedEffort::On(ReasoningEffort::Low)),
    ("low", RequestedEffort::On(ReasoningEffort::Low)),
    ("medium", RequestedEffort::On(ReasoningEffort::High)),
    ("high", RequestedEffort::On(ReasoningEffort::High)),
    ("xhigh", RequestedEffort::On(ReasoningEffort::Xhigh)),
    ("ultra", RequestedEffort::On(ReasoningEffort::Max)),
    ("max", RequestedEffort::On(ReasoningEffort::Max)),
];

/// What a request says about thinking.
#[derive(Debug, Clone, Default)]
pub(super) struct ThinkingRequest {
    thinking_type: Option<ThinkingType>,
    effort: Option<RequestedEffort>,
    /// Path of the effort, for refusals that depend on the options.
    effort_path: String,
}

/// The outcome for one conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Thinking {
    pub(super) enabled: bool,
    pub(super) effort: Option<ReasoningEffort>,
}

impl ThinkingRequest {
    /// Reads `thinking: {type}`; a budget is checked, and left to the server.
    pub(super) fn read_type(&mut self, body: &Field<'_, '_>) -> Result<()> {
        if let Some(thinking) = body.optional("thinking")? {
            let kind = thinking.required("type")?;
            self.thinking_type = Some(kind.choice(&THINKING_TYPES)?);
            thinking.optional_unsigned("budget_tokens", u64::MAX)?;
        }
        Ok(())
    }

    /// Reads an effort, by name or as a level from 1 to 100.
    pub(super) fn read_effort(&mut self, holder: &Field<'_, '_>, key: &str) -> Result<()> {
        let Some(effort) = holder.optional(key)? else {
            return Ok(());
        };
        self.effort_path = effort.path();
        self.effort = Some(match effort.value.as_u64() {
            Some(level @ 1..=100) => RequestedEffort::On(ReasoningEffort::Level(level as u8)),
            _ => effort.choice(&EFFORTS)?,
        });
        Ok(())
    }

    /// Applies the options and the model.
    pub(super) fn resolve(
        &self,
        options: &ConversionOptions,
        model: ServedModel,
    ) -> Result<Thinking> {
        use crate::request::reader::refusal;

        if options.compat {
            if let Some(RequestedEffort::On(ReasoningEffort::Level(level))) = self.effort {
                let names = alternatives(EFFORTS.iter().map(|(name, _)| *name));
                let path = &self.effort_path;
                return Err(refusal(
                    path,
                    format!("{path}: expected {names}, got {level}"),
                ));
            }
            if self.thinking_type == Some(ThinkingType::BetweenTools) {
                return Err(refusal(
                    "thinking.type",
                    "thinking.type: expected \"enabled\", \"disabled\" or \"adaptive\", got \"between_tools\"",
                ));
            }
        }
        if model
            .generic
            .is_some_and(|generic| !generic.supports_thinking)
        {
            return Ok(Thinking {
                enabled: false,
                effort: None,
            });
        }
        let enabled = match (self.thinking_type, self.effort) {
            (Some(kind), _) => kind != ThinkingType::Disabled,
            (None, Some(effort)) => effort != RequestedEffort::Off,
            (None, None) => options.default_thinking_mode,
        };
        let effort = match self.effort {
            _ if !enabled => None,
            Some(RequestedEffort::On(effort)) => Some(effort),
            Some(RequestedEffort::Off) | None => Some(ReasoningEffort::High),
        };
        Ok(Thinking { enabled, effort })
    }
}
