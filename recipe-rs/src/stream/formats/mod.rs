//! The markup of each output format.

mod call_object;
mod json_calls;

use self::json_calls::{JsonCallGrammar, JsonCalls};
use super::dsml::DsmlGrammar;
use super::grammar::CallGrammar;
use super::{OutputFormat, ParsingOptions};
use crate::special_tokens::SpecialToken;

/// What is markup in one stream.
#[derive(Debug)]
pub(crate) struct Format {
    /// The grammar of calls, where the format has one.
    pub(crate) calls: Option<Box<dyn CallGrammar>>,
    /// What opens reasoning, where the model writes it itself.
    pub(crate) think_start: Option<String>,
    /// What closes reasoning.
    pub(crate) think_end: Option<String>,
    /// Spellings of added tokens that are markup here.
    pub(crate) markup: Vec<String>,
}

impl Format {
    pub(crate) fn new(options: &ParsingOptions) -> Self {
        let token = |kind| options.special_tokens.token(kind).to_owned();
        let think_end = Some(token(SpecialToken::ThinkingEnd));
        let think_start = Some(token(SpecialToken::ThinkingStart));
        match options.output_format {
            OutputFormat::Dsml => Self {
                calls: Some(Box::new(DsmlGrammar::new(options))),
                think_start: None,
                think_end,
                markup: vec![token(SpecialToken::ThinkingEnd), token(SpecialToken::Dsml)],
            },
            OutputFormat::Plain => Self {
                calls: None,
                think_start: None,
                think_end: think_end.filter(|_| options.thinking_initial_stage.is_some()),
                markup: vec![token(SpecialToken::ThinkingEnd)],
            },
            OutputFormat::ThinkTags => Self::with_think_tags(None, [think_start, think_end]),
            OutputFormat::HermesJson => {
                Self::with_think_tags(Some(JsonCalls::Hermes), [think_start, think_end])
            }
            OutputFormat::Llama3Json => {
                Self::with_think_tags(Some(JsonCalls::Llama3), [think_start, think_end])
            }
            OutputFormat::Mistral => {
                let tags = ["[THINK]", "[/THINK]"].map(|tag| Some(tag.to_owned()));
                Self::with_think_tags(Some(JsonCalls::Mistral), tags)
            }
        }
    }

    fn with_think_tags(calls: Option<JsonCalls>, tags: [Option<String>; 2]) -> Self {
        let mut markup: Vec<_> = tags.iter().flatten().cloned().collect();
        if let Some(calls) = calls {
            let opener = calls.opener();
            let spellings = calls.closers().iter().chain(std::slice::from_ref(&opener));
            markup.extend(spellings.map(|spelling| (*spelling).to_owned()));
        }
        let [think_start, think_end] = tags;
        Self {
            calls: calls.map(|calls| Box::new(JsonCallGrammar::new(calls)) as Box<dyn CallGrammar>),
            think_start,
            think_end,
            markup,
        }
    }
}
