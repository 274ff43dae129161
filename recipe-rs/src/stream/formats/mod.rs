//! The markup of each output format.

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
            _ => Self {
                calls: None,
                think_start,
                think_end,
                markup: vec![
                    token(SpecialToken::ThinkingStart),
                    token(SpecialToken::ThinkingEnd),
                ],
            },
        }
    }
}
