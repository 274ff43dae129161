//! Functions of vectors.

use crate::simd::Simd;

/// e^x within 2 units in the last place for -87 <= x <= 88, clamped outside; NaN for NaN.
///
/// x = n ln 2 + r with |r| <= ln 2 / 2, then the Taylor series of e^r to the 7th power.
#[inline(always)]
pub(super) fn exp<S: Simd>(s: S, x: S::F32) -> S::F32 {
    /// ln 2 as a part of few bits, whose products with n are exact, and the rest.
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    const COEFFICIENTS: [f32; 6] = [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0];

    // The bounds stand first, so that a NaN passes through.
    let x = s.min(s.splat(88.0), s.max(s.splat(-87.0), x));
    let n = s.round(s.mul(x, s.splat(std::f32::consts::LOG2_E)));
    let whole = s.int_to_f32(n);
    let r = s.mul_add(whole, s.splat(-LN_2_HIGH), x);
    let r = s.mul_add(whole, s.splat(-LN_2_LOW), r);
    let mut series = s.splat(1.0 / 5040.0);
    for coefficient in COEFFICIENTS {
        series = s.mul_add(series, r, s.splat(coefficient));
    }
    s.mul(s.mul_add(series, r, s.splat(1.0)), s.exp2_int(n))
}
