//! What needs instructions that not every processor has; the only module with `unsafe` code.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m256i, _MM_HINT_T0, _mm_prefetch, _mm256_add_epi8, _mm256_cmpeq_epi8, _mm256_cmpgt_epi8,
        _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_or_si256, _mm256_set1_epi8,
        _mm256_sub_epi8,
    };

    use super::super::classify::Masks;

    pub(super) fn classify(block: &[u8; 64]) -> Masks {
        // SAFETY: `super::classify` hands this function out only after it found AVX2 on this machine.
        unsafe { classify_avx2(block) }
    }

    #[target_feature(enable = "avx2")]
    #[expect(clippy::cast_ptr_alignment, reason = "the load needs no alignment")]
    fn classify_avx2(block: &[u8; 64]) -> Masks {
        let mut masks = Masks::default();
        for half in 0..2 {
            // SAFETY: both halves lie inside the 64 bytes of `block`; the load needs no alignment.
            let bytes =
                unsafe { _mm256_loadu_si256(block.as_ptr().add(32 * half).cast::<__m256i>()) };
            // Signed compares: bytes above 127 are negative and belong to no class.
            let is_in = |bytes: __m256i, first: i8, count: i8| {
                let moved = _mm256_add_epi8(
                    _mm256_sub_epi8(bytes, _mm256_set1_epi8(first)),
                    _mm256_set1_epi8(-128),
                );
                _mm256_cmpgt_epi8(_mm256_set1_epi8(-128 + count), moved)
            };
            let bits = |mask: __m256i| {
                u64::from(_mm256_movemask_epi8(mask).cast_unsigned()) << (32 * half)
            };
            let is = |byte: i8| _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(byte));
            let lower = _mm256_or_si256(bytes, _mm256_set1_epi8(0x20));
            let letter = bits(is_in(lower, b'a'.cast_signed(), 26));
            let digit = bits(is_in(bytes, b'0'.cast_signed(), 10));
            let newline = bits(_mm256_or_si256(is(10), is(13)));
            masks.letter |= letter;
            masks.digit |= digit;
            masks.punct |= bits(is_in(bytes, 0x21, 0x5E)) & !letter & !digit;
            masks.space |= bits(is(b' '.cast_signed()));
            masks.blank |= bits(is_in(bytes, 9, 4)) & !newline;
            masks.newline |= newline;
        }
        masks
    }

    pub(super) fn prefetch<T>(item: &T) {
        // SAFETY: prefetching has no effect on the program's state, and SSE is part of x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(item).cast::<i8>()) }
    }
}

/// The vector form of [`super::classify::portable`], if this machine can run one.
#[must_use]
pub(crate) fn classify() -> Option<super::classify::Classify> {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        return Some(x86::classify);
    }
    None
}

/// Asks for `item` to be brought into the cache.
#[inline]
pub(crate) fn prefetch<T>(item: &T) {
    #[cfg(target_arch = "x86_64")]
    x86::prefetch(item);
    #[cfg(not(target_arch = "x86_64"))]
    let _ = item;
}
