//! What a backend reports while it generates.

/// Token counts of the prompt, as the backend saw it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PromptUsage {
    /// Tokens of the prompt.
    pub prompt_tokens: u64,
    /// How many of them came from a prefix cache.
    pub prompt_cache_hit_tokens: u64,
}

/// Why the backend stopped generating.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InferenceFinishReason {
    /// The model ended its turn.
    Stop,
    /// A token limit was reached.
    Length,
    /// A filter stopped the output.
    ContentFilter,
}

/// Log probability of one sampled token and of its most likely alternatives.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TokenLogprob {
    /// Natural logarithm of the probability of the sampled token.
    pub logprob: f32,
    /// Pairs of token id and log probability, most likely first.
    pub top_logprobs: Vec<(u32, f32)>,
}

/// One update from a backend.
#[derive(Debug, Clone, PartialEq)]
pub enum InferenceChunk {
    /// The prompt was accepted.
    Ready {
        /// Token counts of the prompt, if known already.
        prompt_usage: Option<PromptUsage>,
        /// Name of the backend's configuration, reported by Chat Completions.
        system_fingerprint: Option<String>,
    },
    /// More output as text.
    Text {
        /// The text; it may end inside a word but not inside a code point.
        content: String,
        /// Tokens that this text stands for.
        token_count: u64,
    },
    /// More output as token ids.
    Tokens {
        /// The sampled ids.
        token_ids: Vec<u32>,
        /// One entry per id, when log probabilities were asked for.
        logprobs: Option<Vec<TokenLogprob>>,
    },
    /// The output is complete.
    Finish {
        /// Why generation ended.
        finish_reason: InferenceFinishReason,
    },
}

impl InferenceChunk {
    /// A text chunk that stands for `token_count` tokens.
    #[must_use]
    pub fn text(content: impl Into<String>, token_count: u64) -> Self {
        Self::Text {
            content: content.into(),
            token_count,
        }
    }

    /// A chunk of sampled ids without log probabilities.
    #[must_use]
    pub fn tokens(token_ids: impl Into<Vec<u32>>) -> Self {
        Self::Tokens {
            token_ids: token_ids.into(),
            logprobs: None,
        }
    }

    /// The chunk that ends the output.
    #[must_use]
    pub const fn finish(finish_reason: InferenceFinishReason) -> Self {
        Self::Finish { finish_reason }
    }
}
