//! The vectors as AVX2 with FMA and F16C.
//!
//! Every method is inlined into a function that [`Avx2::run`] compiles with the features enabled.

#![expect(
    unsafe_code,
    reason = "vector instructions are unsafe to call without proof that they exist"
)]

use super::{LANES, Op, Simd};
use std::arch::x86_64::{
    __m256, __m256i, _MM_FROUND_TO_NEAREST_INT, _MM_HINT_T0, _mm_add_epi32, _mm_add_ps, _mm_add_ss,
    _mm_cvtsi32_si128, _mm_cvtsi128_si32, _mm_cvtss_f32, _mm_loadl_epi64, _mm_loadu_si128,
    _mm_max_ps, _mm_max_ss, _mm_movehl_ps, _mm_packs_epi32, _mm_prefetch, _mm_shuffle_epi32,
    _mm_shuffle_ps, _mm_storeu_si128, _mm256_add_epi16, _mm256_add_epi32, _mm256_add_ps,
    _mm256_and_si256, _mm256_andnot_ps, _mm256_castps256_ps128, _mm256_castsi256_ps,
    _mm256_castsi256_si128, _mm256_cvtepi8_epi32, _mm256_cvtepi32_ps, _mm256_cvtepu8_epi32,
    _mm256_cvtepu16_epi32, _mm256_cvtph_ps, _mm256_cvtps_epi32, _mm256_cvtps_ph, _mm256_div_ps,
    _mm256_extractf128_ps, _mm256_extracti128_si256, _mm256_fmadd_ps, _mm256_loadu_ps,
    _mm256_loadu_si256, _mm256_madd_epi16, _mm256_maddubs_epi16, _mm256_max_ps, _mm256_min_ps,
    _mm256_mul_ps, _mm256_or_si256, _mm256_set1_epi32, _mm256_set1_ps, _mm256_sll_epi16,
    _mm256_slli_epi32, _mm256_sra_epi16, _mm256_srl_epi16, _mm256_storeu_ps, _mm256_storeu_si256,
    _mm256_sub_ps,
};

/// AVX2, FMA and F16C; made only by [`Avx2::detect`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx2(());

impl Avx2 {
    /// The instruction set, where this processor has it.
    pub(crate) fn detect() -> Option<Self> {
        let has = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c");
        has.then_some(Self(()))
    }
}

#[target_feature(enable = "avx2,fma,f16c")]
fn with_features<O: Op>(s: Avx2, op: O) -> O::Output {
    op.call(s)
}

/// Wraps instructions into a method body: a value of [`Avx2`] exists only where they do.
macro_rules! vector {
    ($body:expr) => {
        // SAFETY: `self` is an `Avx2`, which `detect` makes only on a processor with AVX2, FMA and
        // F16C; loads and stores go through references to arrays of exactly their width, without
        // an alignment demand.
        unsafe { $body }
    };
}

impl Simd for Avx2 {
    type F32 = __m256;
    type Int = __m256i;

    #[inline(always)]
    fn run<O: Op>(self, op: O) -> O::Output {
        vector!(with_features(self, op))
    }

    #[inline(always)]
    fn splat(self, value: f32) -> __m256 {
        vector!(_mm256_set1_ps(value))
    }
    #[inline(always)]
    fn load(self, values: &[f32; LANES]) -> __m256 {
        vector!(_mm256_loadu_ps(values.as_ptr()))
    }
    #[inline(always)]
    fn store(self, values: __m256, out: &mut [f32; LANES]) {
        vector!(_mm256_storeu_ps(out.as_mut_ptr(), values));
    }
    #[inline(always)]
    fn add(self, a: __m256, b: __m256) -> __m256 {
        vector!(_mm256_add_ps(a, b))
    }
    #[inline(always)]
    fn sub(self, a: __m256, b: __m256) -> __m256 {
        vector!(_mm256_sub_ps(a, b))
    }
    #[inline(always)]
    fn mul(self, a: __m256, b: __m256) -> __m256 {
        vector!(_mm256_mul_ps(a, b))
    }
    #[inline(always)]
    fn div(self, a: __m256, b: __m256) -> __m256 {
        vector!(_mm256_div_ps(a, b))
    }
    #[inline(always)]
    fn mul_add(self, a: __m256, b: __m256, c: __m256) -> __m256 {
        vector!(_mm256_fmadd_ps(a, b, c))
    }
    #[inline(always)]
    fn max(self, a: __m256, b: __m256) -> __m256 {
        vector!(_mm256_max_ps(a, b))
    }
    #[inline(always)]
    fn min(self, a: __m256, b: __m256) -> __m256 {
        vector!(_mm256_min_ps(a, b))
    }
    #[inline(always)]
    fn abs(self, a: __m256) -> __m256 {
        vector!(_mm256_andnot_ps(_mm256_set1_ps(-0.0), a))
    }
    #[inline(always)]
    fn sum(self, a: __m256) -> f32 {
        vector!({
            let half = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps::<1>(a));
            let quarter = _mm_add_ps(half, _mm_movehl_ps(half, half));
            _mm_cvtss_f32(_mm_add_ss(quarter, _mm_shuffle_ps::<1>(quarter, quarter)))
        })
    }
    #[inline(always)]
    fn largest(self, a: __m256) -> f32 {
        vector!({
            let half = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps::<1>(a));
            let quarter = _mm_max_ps(half, _mm_movehl_ps(half, half));
            _mm_cvtss_f32(_mm_max_ss(quarter, _mm_shuffle_ps::<1>(quarter, quarter)))
        })
    }
    #[inline(always)]
    fn load_f16(self, values: &[u16; LANES]) -> __m256 {
        vector!(_mm256_cvtph_ps(_mm_loadu_si128(values.as_ptr().cast())))
    }
    #[inline(always)]
    fn store_f16(self, values: __m256, out: &mut [u16; LANES]) {
        const ROUNDING: i32 = _MM_FROUND_TO_NEAREST_INT;
        vector!(_mm_storeu_si128(
            out.as_mut_ptr().cast(),
            _mm256_cvtps_ph::<ROUNDING>(values)
        ));
    }
    #[inline(always)]
    fn load_bf16(self, values: &[u16; LANES]) -> __m256 {
        vector!({
            let wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(values.as_ptr().cast()));
            _mm256_castsi256_ps(_mm256_slli_epi32::<16>(wide))
        })
    }
    #[inline(always)]
    fn load_u8(self, values: [u8; LANES]) -> __m256 {
        vector!(_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(
            values.as_ptr().cast()
        ))))
    }
    #[inline(always)]
    fn load_i8(self, values: [i8; LANES]) -> __m256 {
        vector!(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(
            values.as_ptr().cast()
        ))))
    }

    #[inline(always)]
    fn int_splat(self, value: u32) -> __m256i {
        vector!(_mm256_set1_epi32(value.cast_signed()))
    }
    #[inline(always)]
    fn int_load(self, values: &[u32; LANES]) -> __m256i {
        vector!(_mm256_loadu_si256(values.as_ptr().cast()))
    }
    #[inline(always)]
    fn int_store(self, values: __m256i, out: &mut [u32; LANES]) {
        vector!(_mm256_storeu_si256(out.as_mut_ptr().cast(), values));
    }
    #[inline(always)]
    fn int_and(self, a: __m256i, b: __m256i) -> __m256i {
        vector!(_mm256_and_si256(a, b))
    }
    #[inline(always)]
    fn int_or(self, a: __m256i, b: __m256i) -> __m256i {
        vector!(_mm256_or_si256(a, b))
    }
    #[inline(always)]
    fn int_add(self, a: __m256i, b: __m256i) -> __m256i {
        vector!(_mm256_add_epi32(a, b))
    }
    #[inline(always)]
    fn pair_dot(self, a: __m256i, b: __m256i) -> __m256i {
        vector!(_mm256_madd_epi16(a, b))
    }
    #[inline(always)]
    fn byte_dot(self, a: __m256i, b: __m256i) -> __m256i {
        vector!(_mm256_maddubs_epi16(a, b))
    }
    #[inline(always)]
    fn add16(self, a: __m256i, b: __m256i) -> __m256i {
        vector!(_mm256_add_epi16(a, b))
    }
    #[inline(always)]
    fn shr16(self, a: __m256i, by: u8) -> __m256i {
        vector!(_mm256_srl_epi16(a, _mm_cvtsi32_si128(i32::from(by))))
    }
    #[inline(always)]
    fn shl16(self, a: __m256i, by: u8) -> __m256i {
        vector!(_mm256_sll_epi16(a, _mm_cvtsi32_si128(i32::from(by))))
    }
    #[inline(always)]
    fn sar16(self, a: __m256i, by: u8) -> __m256i {
        vector!(_mm256_sra_epi16(a, _mm_cvtsi32_si128(i32::from(by))))
    }
    #[inline(always)]
    fn int_to_f32(self, a: __m256i) -> __m256 {
        vector!(_mm256_cvtepi32_ps(a))
    }
    #[inline(always)]
    fn round(self, a: __m256) -> __m256i {
        vector!(_mm256_cvtps_epi32(a))
    }
    #[inline(always)]
    fn exp2_int(self, n: __m256i) -> __m256 {
        vector!(_mm256_castsi256_ps(_mm256_slli_epi32::<23>(
            _mm256_add_epi32(n, _mm256_set1_epi32(127))
        )))
    }
    #[inline(always)]
    fn store_pairs(self, a: __m256i, out: &mut [u32; LANES / 2]) {
        vector!({
            let packed =
                _mm_packs_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256::<1>(a));
            _mm_storeu_si128(out.as_mut_ptr().cast(), packed);
        });
    }
    #[inline(always)]
    fn int_sum(self, a: __m256i) -> i32 {
        vector!({
            let half = _mm_add_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256::<1>(a));
            let quarter = _mm_add_epi32(half, _mm_shuffle_epi32::<0b1110>(half));
            _mm_cvtsi128_si32(_mm_add_epi32(quarter, _mm_shuffle_epi32::<1>(quarter)))
        })
    }

    #[inline(always)]
    fn prefetch(self, address: *const u8) {
        vector!(_mm_prefetch::<_MM_HINT_T0>(address.cast()));
    }
}
