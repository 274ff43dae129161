//! How requests are converted.

use crate::error::Result;
use crate::request::reader::{alternatives, refusal};
use crate::special_tokens::SpecialTokens;
use crate::stream::OutputFormat;

/// Largest `max_tokens` that a request may ask for unless the options say otherwise.
const DEFAULT_MAX_TOKENS_UPPER_BOUND: u32 = 393_216;

/// The model family that a request is for; it selects the prompt encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ModelVersion {
    /// DeepSeek V4 Pro.
    DeepseekV4Pro,
    /// DeepSeek V4.1 Flash.
    DeepseekV41Flash,
    /// Any other model: rendered by its own chat template.
    Generic,
}

/// What conversion has to know of a model that is no DeepSeek V4 or V4.1.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct GenericModel {
    /// Temperature of the model's generation config.
    pub temperature: Option<f32>,
    /// `top_p` of the model's generation config.
    pub top_p: Option<f32>,
    /// Whether the chat template has a thinking mode.
    pub supports_thinking: bool,
    /// Whether the model reads images.
    pub supports_images: bool,
    /// Markup of the model's output.
    pub output_format: OutputFormat,
}

/// A served model: its version and, for generic models, its traits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ServedModel {
    pub(super) version: ModelVersion,
    pub(super) generic: Option<GenericModel>,
}

impl ServedModel {
    /// Whether tools can be brought by later messages (V4.1).
    pub(super) fn loads_tools_later(self) -> bool {
        self.version == ModelVersion::DeepseekV41Flash
    }

    /// What stands between the name of a namespace and that of its tool.
    pub(super) fn namespace_separator(self) -> &'static str {
        if self.loads_tools_later() { "::" } else { "__" }
    }
}

/// What to do with web search tools, which a codec cannot run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WebSearchBehavior {
    /// Leave them out.
    Drop,
    /// Refuse the request.
    Reject,
}

/// What to do when assistant history lacks its reasoning in thinking mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReasoningContentBehavior {
    /// Take it as empty.
    FillEmpty,
    /// Refuse the request.
    Reject,
}

/// Options of conversion.
///
/// ```
/// use recipe_rs::{ConversionOptions, ModelVersion};
///
/// let options = ConversionOptions::default()
///     .with_model_alias("deepseek-chat", ModelVersion::DeepseekV41Flash)
///     .with_compat(false);
/// assert!(!options.compat);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ConversionOptions {
    /// Whether requests that do not say so think.
    pub default_thinking_mode: bool,
    /// What to do when assistant history lacks its reasoning.
    pub reasoning_content_behavior: ReasoningContentBehavior,
    /// What to do with web search in Responses.
    pub responses_web_search: WebSearchBehavior,
    /// What to do with web search in Messages.
    pub messages_web_search: WebSearchBehavior,
    /// Largest `max_tokens` in thinking mode.
    pub thinking_max_tokens_upper_bound: u32,
    /// Largest `max_tokens` outside thinking mode.
    pub non_thinking_max_tokens_upper_bound: u32,
    /// Spelling of the special tokens.
    pub special_tokens: SpecialTokens,
    /// Description of the tool `apply_patch`; a short one of our own if unset.
    pub apply_patch_description: Option<String>,
    /// Whether conversion follows the official codec also where that is at fault.
    pub compat: bool,
    /// Served models by name, in order of addition.
    models: Vec<(String, ServedModel)>,
}

impl Default for ConversionOptions {
    fn default() -> Self {
        let deepseek = |name: &str, version| {
            let model = ServedModel {
                version,
                generic: None,
            };
            (name.to_owned(), model)
        };
        Self {
            default_thinking_mode: true,
            reasoning_content_behavior: ReasoningContentBehavior::FillEmpty,
            responses_web_search: WebSearchBehavior::Drop,
            messages_web_search: WebSearchBehavior::Reject,
            thinking_max_tokens_upper_bound: DEFAULT_MAX_TOKENS_UPPER_BOUND,
            non_thinking_max_tokens_upper_bound: DEFAULT_MAX_TOKENS_UPPER_BOUND,
            special_tokens: SpecialTokens::default(),
            apply_patch_description: None,
            compat: true,
            models: vec![
                deepseek("DeepSeek-V4-Pro", ModelVersion::DeepseekV4Pro),
                deepseek("DeepSeek-V4.1-Flash", ModelVersion::DeepseekV41Flash),
            ],
        }
    }
}

impl ConversionOptions {
    /// Sets whether requests that do not say so think.
    #[must_use]
    pub fn with_default_thinking_mode(mut self, default_thinking_mode: bool) -> Self {
        self.default_thinking_mode = default_thinking_mode;
        self
    }

    /// Sets what happens when assistant history lacks its reasoning.
    #[must_use]
    pub fn with_reasoning_content_behavior(mut self, behavior: ReasoningContentBehavior) -> Self {
        self.reasoning_content_behavior = behavior;
        self
    }

    /// Sets what happens with web search in Responses.
    #[must_use]
    pub fn with_responses_web_search(mut self, behavior: WebSearchBehavior) -> Self {
        self.responses_web_search = behavior;
        self
    }

    /// Sets what happens with web search in Messages.
    #[must_use]
    pub fn with_messages_web_search(mut self, behavior: WebSearchBehavior) -> Self {
        self.messages_web_search = behavior;
        self
    }

    /// Sets the spelling of the special tokens.
    #[must_use]
    pub fn with_special_tokens(mut self, special_tokens: SpecialTokens) -> Self {
        self.special_tokens = special_tokens;
        self
    }

    /// Sets the largest `max_tokens` in thinking mode.
    #[must_use]
    pub fn with_thinking_max_tokens_upper_bound(mut self, bound: u32) -> Self {
        self.thinking_max_tokens_upper_bound = bound;
        self
    }

    /// Sets the largest `max_tokens` outside thinking mode.
    #[must_use]
    pub fn with_non_thinking_max_tokens_upper_bound(mut self, bound: u32) -> Self {
        self.non_thinking_max_tokens_upper_bound = bound;
        self
    }

    /// Sets the description of the tool `apply_patch`.
    #[must_use]
    pub fn with_apply_patch_description(mut self, description: impl Into<String>) -> Self {
        self.apply_patch_description = Some(description.into());
        self
    }

    /// Off: requests that only the official codec refuses are accepted, and its faults are mended.
    #[must_use]
    pub fn with_compat(mut self, compat: bool) -> Self {
        self.compat = compat;
        self
    }

    /// Accepts `name` as a name of a DeepSeek model.
    #[must_use]
    pub fn with_model_alias(mut self, name: impl Into<String>, version: ModelVersion) -> Self {
        let generic = (version == ModelVersion::Generic).then(GenericModel::default);
        self.insert(name.into(), ServedModel { version, generic });
        self
    }

    /// Accepts `name` as a name of another model.
    #[must_use]
    pub fn with_generic_model(mut self, name: impl Into<String>, model: GenericModel) -> Self {
        let served = ServedModel {
            version: ModelVersion::Generic,
            generic: Some(model),
        };
        self.insert(name.into(), served);
        self
    }

    /// Replaces the whole table of names.
    #[must_use]
    pub fn with_model_versions_by_name(
        mut self,
        versions: impl IntoIterator<Item = (String, ModelVersion)>,
    ) -> Self {
        self.models.clear();
        for (name, version) in versions {
            self = self.with_model_alias(name, version);
        }
        self
    }

    /// The accepted names with their versions.
    pub fn model_versions_by_name(&self) -> impl Iterator<Item = (&str, ModelVersion)> {
        self.models
            .iter()
            .map(|(name, model)| (name.as_str(), model.version))
    }

    fn insert(&mut self, name: String, model: ServedModel) {
        match self.models.iter_mut().find(|(known, _)| *known == name) {
            Some((_, served)) => *served = model,
            None => self.models.push((name, model)),
        }
    }

    /// The model of this name.
    pub(super) fn served_model(&self, name: &str) -> Result<ServedModel> {
        let known = self.models.iter().find(|(known, _)| known == name);
        known.map(|(_, model)| *model).ok_or_else(|| {
            let names = alternatives(self.models.iter().map(|(known, _)| known.as_str()));
            refusal(
                "model",
                format!("model: {name:?} is not served here; use {names}"),
            )
        })
    }

    /// Largest `max_tokens` in this mode.
    pub(super) fn max_tokens_upper_bound(&self, thinking_mode: bool) -> u32 {
        if thinking_mode {
            self.thinking_max_tokens_upper_bound
        } else {
            self.non_thinking_max_tokens_upper_bound
        }
    }
}
