//! Which tokens stay candidates: top-k, then top-p, then min-p. Equal logits rank by token id.

use super::SampleSpec;
use std::cmp::Ordering;

/// Logits within these distances of the best are tried first: far fewer than the vocabulary, and nearly
/// always enough.
const DISTANCES: [f64; 4] = [4.0, 8.0, 16.0, f64::INFINITY];

/// The token with the largest logit; `None` where a logit is NaN or infinite, or none is finite.
pub(super) fn best_token(logits: &[f32]) -> Option<u32> {
    let mut best = 0;
    let mut largest = f32::NEG_INFINITY;
    for (token, &logit) in logits.iter().enumerate() {
        if logit > largest {
            (best, largest) = (token as u32, logit);
        }
        if logit.is_nan() {
            return None;
        }
    }
    largest.is_finite().then_some(best)
}

/// Tokens that the limits leave; `None` if they leave all.
pub(super) fn candidates(logits: &[f32], best: u32, spec: &SampleSpec) -> Option<Vec<u32>> {
    let best = f64::from(logits[best as usize]);
    let mut left = None;
    if (1..logits.len()).contains(&(spec.top_k as usize)) {
        left = Some(rank_top(logits, best, spec.top_k as usize));
    }
    if spec.top_p < 1.0 {
        left = Some(keep_top_p(logits, best, left, spec.top_p, spec.temperature));
    }
    if spec.min_p > 0.0 {
        let bound = to_f32(best + spec.min_p.ln() * spec.temperature);
        let is_likely = |token: &u32| logits[*token as usize] >= bound;
        left = Some(match left {
            Some(tokens) => tokens.into_iter().filter(is_likely).collect(),
            None => (0..logits.len() as u32).filter(is_likely).collect(),
        });
    }
    left
}

/// The `count` tokens with the largest logits, best first.
pub(super) fn rank_top(logits: &[f32], best: f64, count: usize) -> Vec<u32> {
    let mut tokens = Vec::new();
    for distance in DISTANCES {
        tokens = tokens_from(logits, to_f32(best - distance));
        if tokens.len() >= count {
            break;
        }
    }
    let order = by_logit(logits);
    if (1..tokens.len()).contains(&count) {
        tokens.select_nth_unstable_by(count - 1, &order);
    }
    tokens.truncate(count);
    tokens.sort_unstable_by(order);
    tokens
}

/// Tokens whose exclusive cumulative probability, best first, is below `top_p`; at least one.
fn keep_top_p(
    logits: &[f32],
    best: f64,
    ranked: Option<Vec<u32>>,
    top_p: f64,
    temperature: f64,
) -> Vec<u32> {
    let weight = |token: &u32| ((f64::from(logits[*token as usize]) - best) / temperature).exp();
    let weigh = |tokens: &[u32]| tokens.iter().map(weight).collect::<Vec<f64>>();
    if let Some(mut ranked) = ranked {
        let weights = weigh(&ranked);
        ranked.truncate(count_top_p(&weights, top_p * pairwise_sum(&weights)));
        return ranked;
    }
    let all: Vec<u32> = (0..logits.len() as u32).collect();
    let needed = top_p * pairwise_sum(&weigh(&all));
    let mut tokens = all;
    for distance in DISTANCES {
        tokens = tokens_from(logits, to_f32(best - distance * temperature));
        if pairwise_sum(&weigh(&tokens)) >= needed {
            break;
        }
    }
    tokens.sort_unstable_by(by_logit(logits));
    let count = count_top_p(&weigh(&tokens), needed);
    tokens.truncate(count);
    tokens
}

fn count_top_p(weights: &[f64], needed: f64) -> usize {
    let mut sum = 0.0;
    let below = weights.iter().filter(|weight| {
        sum += **weight;
        sum - **weight < needed
    });
    below.count().max(1)
}

fn tokens_from(logits: &[f32], bound: f32) -> Vec<u32> {
    let tokens = logits.iter().enumerate();
    tokens
        .filter(|(_, logit)| **logit >= bound)
        .map(|(token, _)| token as u32)
        .collect()
}

fn by_logit(logits: &[f32]) -> impl Fn(&u32, &u32) -> Ordering {
    |a, b| {
        let (first, second) = (logits[*a as usize], logits[*b as usize]);
        let order = second.partial_cmp(&first).unwrap_or(Ordering::Equal);
        order.then(a.cmp(b))
    }
}

/// Nearest single-precision number; what is too low for one becomes minus infinity.
fn to_f32(value: f64) -> f32 {
    if value > f64::from(f32::MIN) {
        value as f32
    } else {
        f32::NEG_INFINITY
    }
}

/// A sum in the order of numpy's: halves down to 128 numbers, eight running sums within.
fn pairwise_sum(values: &[f64]) -> f64 {
    const LANES: usize = 8;
    const LEAF: usize = 128;
    if values.len() < LANES {
        return values.iter().sum();
    }
    if values.len() <= LEAF {
        let (chunks, rest) = values.as_chunks::<LANES>();
        let mut sums = chunks[0];
        for chunk in &chunks[1..] {
            for (sum, value) in sums.iter_mut().zip(chunk) {
                *sum += value;
            }
        }
        let half = [0, 2, 4, 6].map(|lane| sums[lane] + sums[lane + 1]);
        let total = (half[0] + half[1]) + (half[2] + half[3]);
        return rest.iter().fold(total, |total, value| total + value);
    }
    let half = values.len() / 2 / LANES * LANES;
    pairwise_sum(&values[..half]) + pairwise_sum(&values[half..])
}
