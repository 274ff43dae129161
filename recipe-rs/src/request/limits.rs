//! Ranges of numbers in requests, and the lengths that follow from them.

use crate::conversation::ReasoningEffort;
use crate::error::{Error, Result};
use crate::request::options::{ModelVersion, ServedModel};
use crate::request::reader::{Field, refusal};
use crate::request::thinking::Thinking;

/// Most stop sequences of a request.
const MAX_STOP_SEQUENCES: usize = 16;
/// Most alternatives per token.
const MAX_TOP_LOGPROBS: u64 = 20;
/// Longest image URL in bytes.
pub(super) const MAX_URL_BYTES: usize = 8192;
/// `top_p` in thinking mode: the least of V4.1, and that of V4 with tools.
const THINKING_TOP_P: f32 = 0.95;

const DEFAULT_MAX_TOKENS: u32 = 8192;
const DEFAULT_MAX_TOKENS_THINKING: u32 = 65_536;
const DEFAULT_MAX_TOKENS_MAX_EFFORT: u32 = 131_072;

/// Puts the path of a container before that of a refusal inside it.
pub(super) fn at(container: &str, error: Error) -> Error {
    match error {
        Error::Conversion { message, param, .. } => {
            let inner = param.filter(|param| !param.is_empty());
            let path = inner.map_or_else(
                || container.to_owned(),
                |inner| format!("{container}.{inner}"),
            );
            refusal(path, format!("{container}.{message}"))
        }
        other => other,
    }
}

/// Refuses a number outside `minimum..=maximum`.
pub(super) fn check_range(
    name: &str,
    value: Option<f32>,
    minimum: f32,
    maximum: f32,
) -> Result<()> {
    match value {
        Some(value) if !(minimum..=maximum).contains(&value) => Err(refusal(
            name,
            format!("{name}: {value} is out of range; use a number from {minimum} to {maximum}"),
        )),
        _ => Ok(()),
    }
}

/// Refuses a `top_p` that is not above 0 and at most 1.
pub(super) fn check_top_p(top_p: Option<f32>) -> Result<()> {
    match top_p {
        Some(top_p) if !(top_p > 0.0 && top_p <= 1.0) => Err(refusal(
            "top_p",
            format!("top_p: {top_p} is out of range; use a number above 0 and at most 1"),
        )),
        _ => Ok(()),
    }
}

/// Refuses a `max_tokens` outside 1 to the bound.
pub(super) fn check_max_tokens(
    name: &str,
    max_tokens: Option<u64>,
    bound: u32,
) -> Result<Option<u32>> {
    let Some(requested) = max_tokens else {
        return Ok(None);
    };
    u32::try_from(requested)
        .ok()
        .filter(|tokens| (1..=bound).contains(tokens))
        .map(Some)
        .ok_or_else(|| {
            refusal(
                name,
                format!("{name}: {requested} is out of range; use an integer from 1 to {bound}"),
            )
        })
}

/// Refuses more than the allowed number of alternatives per token.
pub(super) fn check_top_logprobs(top_logprobs: Option<u64>) -> Result<Option<u8>> {
    match top_logprobs {
        Some(count) if count > MAX_TOP_LOGPROBS => Err(refusal(
            "top_logprobs",
            format!(
                "top_logprobs: {count} is out of range; use an integer from 0 to {MAX_TOP_LOGPROBS}"
            ),
        )),
        other => Ok(other.map(|count| count as u8)),
    }
}

/// Reads stop sequences: a list, or a single string where the protocol allows one.
pub(super) fn read_stops(
    body: &Field<'_, '_>,
    key: &str,
    allows_string: bool,
) -> Result<Vec<String>> {
    let Some(stop) = body.optional(key)? else {
        return Ok(Vec::new());
    };
    match stop.value.as_str() {
        Some(text) if allows_string => Ok(vec![text.to_owned()]),
        _ => stop
            .items()?
            .map(|item| item.string().map(str::to_owned))
            .collect(),
    }
}

/// Refuses empty and too many stop sequences; `name` is their field.
pub(super) fn check_stops(name: &str, stops: &[String]) -> Result<()> {
    // The official codec speaks of `stop` in each protocol, so both names are said.
    let said = if name == "stop" {
        String::new()
    } else {
        format!("{name}: ")
    };
    if stops.len() > MAX_STOP_SEQUENCES {
        return Err(refusal(
            name,
            format!(
                "{said}stop: {} sequences are too many; use at most {MAX_STOP_SEQUENCES}",
                stops.len()
            ),
        ));
    }
    match stops.iter().position(String::is_empty) {
        Some(index) => Err(refusal(
            format!("{name}[{index}]"),
            format!(
                "{said}stop[{index}]: an empty text cannot stop the output; use at least one character"
            ),
        )),
        None => Ok(()),
    }
}

/// Temperature and `top_p` that the model runs with.
pub(super) fn resolve_sampling(
    model: ServedModel,
    thinking: Thinking,
    has_tools: bool,
    temperature: Option<f32>,
    top_p: Option<f32>,
) -> (f32, f32) {
    if let Some(generic) = model.generic {
        let temperature = temperature.or(generic.temperature).unwrap_or(1.0);
        return (temperature, top_p.or(generic.top_p).unwrap_or(1.0));
    }
    let temperature = if thinking.enabled {
        1.0
    } else {
        temperature.unwrap_or(1.0)
    };
    let requested = top_p.unwrap_or(1.0);
    let top_p = match (model.version, thinking.enabled) {
        (ModelVersion::DeepseekV41Flash, true) => requested.max(THINKING_TOP_P),
        (ModelVersion::DeepseekV4Pro, true) if has_tools => THINKING_TOP_P,
        (ModelVersion::DeepseekV41Flash, false) | (ModelVersion::DeepseekV4Pro, true) => 1.0,
        (ModelVersion::DeepseekV4Pro | ModelVersion::Generic, _) => requested,
    };
    (temperature, top_p)
}

/// Number of tokens to generate: what was asked for or the default, within the context.
///
/// # Errors
/// A refusal if the prompt, with the requested tokens, is longer than the context.
pub(super) fn resolve_max_tokens(
    requested: Option<u32>,
    default: Option<u32>,
    prompt_tokens: u64,
    context_limit: u64,
) -> Result<u32> {
    let completion = u64::from(requested.unwrap_or(0));
    let total = prompt_tokens.saturating_add(completion);
    if total > context_limit {
        return Err(refusal(
            if requested.is_some() {
                "max_tokens"
            } else {
                "messages"
            },
            format!(
                "the context holds {context_limit} tokens, but {total} were requested: {prompt_tokens} in the \
                 prompt and {completion} in the completion; shorten the prompt or lower max_tokens"
            ),
        ));
    }
    let left = u32::try_from(context_limit - prompt_tokens).unwrap_or(u32::MAX);
    Ok(requested.or(default).unwrap_or(left).min(left).max(1))
}

/// `max_tokens` of a DeepSeek model when the request names none.
pub(super) fn default_max_tokens(thinking_mode: bool, effort: Option<ReasoningEffort>) -> u32 {
    match effort {
        _ if !thinking_mode => DEFAULT_MAX_TOKENS,
        Some(effort) if effort.level() > ReasoningEffort::High.level() => {
            DEFAULT_MAX_TOKENS_MAX_EFFORT
        }
        _ => DEFAULT_MAX_TOKENS_THINKING,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_stay_within_the_context() {
        assert_eq!(resolve_max_tokens(None, Some(8192), 10, 100).unwrap(), 90);
        assert_eq!(
            resolve_max_tokens(Some(50), Some(8192), 10, 100).unwrap(),
            50
        );
        assert_eq!(resolve_max_tokens(None, None, 10, 100).unwrap(), 90);
        assert_eq!(resolve_max_tokens(None, Some(8192), 100, 100).unwrap(), 1);
        let error = resolve_max_tokens(Some(51), None, 50, 100)
            .unwrap_err()
            .to_string();
        for part in ["100", "101", "50", "51"] {
            assert!(error.contains(part), "{error}");
        }
        assert!(resolve_max_tokens(None, Some(1), 101, 100).is_err());
    }

    #[test]
    fn stop_sequences_are_bounded() {
        assert!(check_stops("stop", &vec!["a".to_owned(); 16]).is_ok());
        assert!(
            check_stops("stop", &vec!["a".to_owned(); 17])
                .unwrap_err()
                .to_string()
                .contains("17")
        );
        let error = check_stops("stop_sequences", &["a".to_owned(), String::new()]).unwrap_err();
        assert!(error.to_string().contains("stop[1]"));
    }
}
