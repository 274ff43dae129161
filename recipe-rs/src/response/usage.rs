//! Token counts in the form of each protocol.

use serde::Serialize;

use crate::stream::{PromptUsage, StreamUsage};

/// Usage of Chat Completions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct ChatUsage {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
    prompt_tokens_details: CachedTokens,
    #[serde(skip_serializing_if = "Option::is_none")]
    completion_tokens_details: Option<ReasoningTokens>,
    prompt_cache_hit_tokens: u64,
    prompt_cache_miss_tokens: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct CachedTokens {
    cached_tokens: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct ReasoningTokens {
    reasoning_tokens: u64,
}

impl From<&StreamUsage> for ChatUsage {
    fn from(usage: &StreamUsage) -> Self {
        let prompt = usage.prompt;
        Self {
            prompt_tokens: prompt.prompt_tokens,
            completion_tokens: usage.completion_tokens,
            total_tokens: prompt.prompt_tokens + usage.completion_tokens,
            prompt_tokens_details: CachedTokens {
                cached_tokens: prompt.prompt_cache_hit_tokens,
            },
            completion_tokens_details: usage
                .reasoning_tokens
                .map(|reasoning_tokens| ReasoningTokens { reasoning_tokens }),
            prompt_cache_hit_tokens: prompt.prompt_cache_hit_tokens,
            prompt_cache_miss_tokens: uncached(prompt),
        }
    }
}

/// Usage of Responses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct ResponsesUsage {
    input_tokens: u64,
    input_tokens_details: CachedTokens,
    output_tokens: u64,
    output_tokens_details: ReasoningTokens,
    total_tokens: u64,
}

impl From<&StreamUsage> for ResponsesUsage {
    fn from(usage: &StreamUsage) -> Self {
        let prompt = usage.prompt;
        Self {
            input_tokens: prompt.prompt_tokens,
            input_tokens_details: CachedTokens {
                cached_tokens: prompt.prompt_cache_hit_tokens,
            },
            output_tokens: usage.completion_tokens,
            output_tokens_details: ReasoningTokens {
                reasoning_tokens: usage.reasoning_tokens.unwrap_or(0),
            },
            total_tokens: prompt.prompt_tokens + usage.completion_tokens,
        }
    }
}

/// Usage of Messages: cached tokens do not count as input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct MessagesUsage {
    input_tokens: u64,
    cache_creation_input_tokens: u64,
    cache_read_input_tokens: u64,
    output_tokens: u64,
    service_tier: &'static str,
}

impl MessagesUsage {
    pub(super) fn new(prompt: PromptUsage, output_tokens: u64) -> Self {
        Self {
            input_tokens: uncached(prompt),
            cache_creation_input_tokens: 0,
            cache_read_input_tokens: prompt.prompt_cache_hit_tokens,
            output_tokens,
            service_tier: "standard",
        }
    }
}

fn uncached(prompt: PromptUsage) -> u64 {
    prompt
        .prompt_tokens
        .saturating_sub(prompt.prompt_cache_hit_tokens)
}
