//! From a row of logits to a token: the same choice as the engine's sampler on the host, to the bit
//! where arithmetic is defined to the bit (noise, scores), and to the rounding of sums elsewhere.

mod logprob;
mod noise;
mod truncation;

pub use logprob::TokenLogprob;

use crate::error::{Error, Result};
use crate::kernels::Kernels;

/// What is wanted from one row of logits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SampleSpec {
    /// Index of the row among the step's logit rows.
    pub logit_row: u32,
    /// Divides the logits; 0 takes the largest.
    pub temperature: f64,
    /// Tokens that stay candidates at most; 0 for all.
    pub top_k: u32,
    /// Candidates are the most likely tokens that reach this probability together; 1 for all.
    pub top_p: f64,
    /// Candidates are at least this many times as likely as the best; 0 for all.
    pub min_p: f64,
    /// Key of the noise: a function of seed and position.
    pub key: u64,
    /// The token, where it is known already.
    pub token: Option<u32>,
    /// Report the token's probability, and those of so many of the most likely tokens.
    pub num_top: Option<u32>,
}

/// A token, and its probability where it was asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampled {
    /// The token.
    pub token: u32,
    /// By the logits before temperature and truncation.
    pub logprob: Option<TokenLogprob>,
}

impl SampleSpec {
    /// Checks the numbers of `samples[index]`.
    ///
    /// # Errors
    /// [`Error::Plan`] and [`Error::Shape`] with the field at fault.
    pub fn check(&self, index: usize, num_logit_rows: usize, vocab_size: usize) -> Result<()> {
        if self.logit_row as usize >= num_logit_rows {
            let rule = format!("below {num_logit_rows}, the number of logit rows");
            return Err(Error::plan("samples", index, self.logit_row, rule));
        }
        if let Some(token) = self.token.filter(|token| *token as usize >= vocab_size) {
            let rule = format!("below {vocab_size}, the number of tokens");
            return Err(Error::plan("samples", index, token, rule));
        }
        let numbers = [
            ("temperature", self.temperature, 0.0..=f64::MAX),
            ("top_p", self.top_p, f64::MIN_POSITIVE..=1.0),
            ("min_p", self.min_p, 0.0..=1.0),
        ];
        for (field, value, range) in numbers {
            if !range.contains(&value) {
                let rule = format!("from {} to {}", range.start(), range.end());
                return Err(Error::shape(field, value, rule));
            }
        }
        Ok(())
    }
}

/// Chooses a token from a row of logits; `None` where a logit is NaN or infinite, or none is finite.
pub(crate) fn sample(kernels: &dyn Kernels, logits: &[f32], spec: &SampleSpec) -> Option<Sampled> {
    let best = match kernels.argmax(logits) {
        best if best.all_finite => best.index as u32,
        _ => truncation::best_token(logits)?,
    };
    let token = match spec.token {
        Some(token) => token,
        None if spec.temperature == 0.0 => best,
        None => {
            let draw = noise::Draw {
                best: f64::from(logits[best as usize]),
                temperature: spec.temperature,
                key: spec.key,
            };
            match truncation::candidates(logits, best, spec) {
                Some(candidates) => draw.from(candidates.into_iter(), best, logits),
                None => draw.from(0..logits.len() as u32, best, logits),
            }
        }
    };
    let logprob = spec
        .num_top
        .map(|num_top| logprob::token_logprob(kernels, logits, best, token, num_top as usize));
    Some(Sampled { token, logprob })
}
