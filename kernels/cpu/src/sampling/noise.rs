//! Gumbel noise as a function of key and token, and the draw that it decides.
//!
//! With G = 0x9E3779B97F4A7C15 and `mix` the finaliser of `SplitMix64`:
//! h = mix(key + G * (token + 1)), u = ((h >> 12) + 1/2) / 2^52, noise = -log(-log(u)). The logarithm is
//! defined by its operations, so that every language gives the same bits.

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
const UNIFORM_BITS: u32 = 52;
const SQRT_HALF: f64 = std::f64::consts::FRAC_1_SQRT_2;
const LN_2: f64 = std::f64::consts::LN_2;
/// 1 / (2 k + 1): with |s| <= 0.172, 12 terms reach 2^-53.
const SERIES: [f64; 12] = [
    1.0,
    1.0 / 3.0,
    1.0 / 5.0,
    1.0 / 7.0,
    1.0 / 9.0,
    1.0 / 11.0,
    1.0 / 13.0,
    1.0 / 15.0,
    1.0 / 17.0,
    1.0 / 19.0,
    1.0 / 21.0,
    1.0 / 23.0,
];

/// A draw from softmax(logits / temperature).
pub(super) struct Draw {
    /// The largest logit.
    pub(super) best: f64,
    pub(super) temperature: f64,
    pub(super) key: u64,
}

impl Draw {
    /// The candidate with the largest score (logit - best) / temperature + noise, the lower one on ties.
    ///
    /// `first` is a candidate; to look at a likely one first saves most of the logarithms.
    #[expect(clippy::float_cmp, reason = "equal scores go to the lower token")]
    pub(super) fn from(
        &self,
        candidates: impl Iterator<Item = u32>,
        first: u32,
        logits: &[f32],
    ) -> u32 {
        let mut winner = first;
        let mut highest = self.scale(first, logits) + noise(hash(self.key, first));
        for token in candidates {
            let scaled = self.scale(token, logits);
            let hash = hash(self.key, token);
            if scaled + noise_limit(hash) < highest {
                continue;
            }
            let score = scaled + noise(hash);
            if score > highest || (score == highest && token < winner) {
                (winner, highest) = (token, score);
            }
        }
        winner
    }

    fn scale(&self, token: u32, logits: &[f32]) -> f64 {
        (f64::from(logits[token as usize]) - self.best) / self.temperature
    }
}

/// The upper bits of a token's hash.
fn hash(key: u64, token: u32) -> u64 {
    let counter = GOLDEN.wrapping_mul(u64::from(token) + 1);
    mix(key.wrapping_add(counter)) >> (64 - UNIFORM_BITS)
}

fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

#[expect(clippy::cast_precision_loss, reason = "hashes have 52 bits")]
fn noise(hash: u64) -> f64 {
    let uniform = (hash as f64 + 0.5) * 2.0_f64.powi(-UNIFORM_BITS.cast_signed());
    -log_exact(-log_exact(uniform))
}

/// At least the noise of a hash, without a logarithm: -log(u) >= 1 - u, and 1 - u is at least the
/// power of two below it.
fn noise_limit(hash: u64) -> f64 {
    let rest = (1 << UNIFORM_BITS) - 1 - hash;
    let leading_zeros = rest.leading_zeros() - (64 - UNIFORM_BITS);
    f64::from(leading_zeros + 2) * LN_2
}

/// Natural logarithm of a positive normal number.
///
/// x = m * 2^e with m from sqrt(1/2) to sqrt(2); log(m) = 2 s (1 + s^2 / 3 + s^4 / 5 + ...) with
/// s = (m - 1) / (m + 1).
fn log_exact(value: f64) -> f64 {
    const EXPONENT: u64 = 0x7FF << 52;
    let bits = value.to_bits();
    let mut exponent = i32::from(((bits & EXPONENT) >> 52) as u16) - 1022;
    let mut mantissa = f64::from_bits(bits & !EXPONENT | 1022 << 52);
    if mantissa < SQRT_HALF {
        mantissa *= 2.0;
        exponent -= 1;
    }
    let ratio = (mantissa - 1.0) / (mantissa + 1.0);
    let square = ratio * ratio;
    let (last, others) = (SERIES[11], &SERIES[..11]);
    let series = others
        .iter()
        .rev()
        .fold(last, |sum, term| sum * square + term);
    f64::from(exponent) * LN_2 + 2.0 * ratio * series
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_limit_is_never_below_the_noise(hash in prop_oneof![0_u64..1 << 52, (1_u64 << 52) - 64..1 << 52, 0_u64..64]) {
            prop_assert!(noise(hash) <= noise_limit(hash));
        }

        #[test]
        fn the_logarithm_is_one(value in 1e-16_f64..50.0) {
            prop_assert!((log_exact(value) - value.ln()).abs() <= 4e-16 * value.ln().abs().max(1e-3));
        }
    }
}
