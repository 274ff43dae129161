//! Log probabilities by the raw logits.

use super::truncation::rank_top;
use crate::kernels::Kernels;

/// Stands for a token that cannot be drawn but was given: the formats of answers have no infinity.
const MIN_LOGPROB: f64 = -9999.0;

/// Log probability of one token, and the most likely tokens.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenLogprob {
    /// Natural logarithm of the probability.
    pub logprob: f64,
    /// 1 for the most likely token.
    pub rank: u32,
    /// (token, log probability) of the most likely tokens, best first.
    pub top: Vec<(u32, f64)>,
}

#[expect(clippy::float_cmp, reason = "equal logits rank by token id")]
pub(super) fn token_logprob(
    kernels: &dyn Kernels,
    logits: &[f32],
    best: u32,
    token: u32,
    num_top: usize,
) -> TokenLogprob {
    let largest = logits[best as usize];
    let normaliser = f64::from(largest) + kernels.exp_sum(logits, largest).ln();
    let value = logits[token as usize];
    let num_larger = logits.iter().filter(|logit| **logit > value).count();
    let before = &logits[..token as usize];
    let num_equal = before.iter().filter(|logit| **logit == value).count();
    let top = if num_top == 0 {
        Vec::new()
    } else {
        rank_top(logits, f64::from(largest), num_top)
    };
    let logprob = |token: u32| f64::from(logits[token as usize]) - normaliser;
    TokenLogprob {
        logprob: logprob(token).max(MIN_LOGPROB),
        rank: (num_larger + num_equal + 1) as u32,
        top: top
            .into_iter()
            .filter(|token| logits[*token as usize].is_finite())
            .map(|token| (token, logprob(token)))
            .collect(),
    }
}
