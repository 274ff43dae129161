//! What needs instructions that not every processor has; the only module with `unsafe` code.
#![allow(unsafe_code)]

use super::super::byte_bpe::ByteBpe;
use super::super::worker::Worker;
use super::classify::Portable;

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m256i, _MM_HINT_T0, _mm_prefetch, _mm256_add_epi8, _mm256_cmpeq_epi8, _mm256_cmpgt_epi8,
        _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_or_si256, _mm256_set1_epi8,
        _mm256_sub_epi8,
    };

    use super::super::super::byte_bpe::ByteBpe;
    use super::super::super::worker::Worker;
    use super::super::classify::{Classify, Masks};

    /// Exists only on machines with AVX2.
    #[derive(Debug, Clone, Copy)]
    pub(super) struct Avx2(());

    impl Avx2 {
        pub(super) fn detect() -> Option<Self> {
            (is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("lzcnt")
                && is_x86_feature_detected!("popcnt"))
            .then_some(Self(()))
        }

        pub(super) fn encode(
            self,
            worker: &mut Worker,
            bpe: &ByteBpe,
            text: &[u8],
            out: &mut Vec<u32>,
        ) {
            // SAFETY: `self` says that this machine has these instructions.
            unsafe { encode_avx2(self, worker, bpe, text, out) }
        }
    }

    impl Classify for Avx2 {
        #[inline(always)]
        fn masks(&self, block: &[u8; 64]) -> Masks {
            // SAFETY: `self` says that this machine has AVX2.
            unsafe { classify_avx2(block) }
        }
    }

    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn encode_avx2(
        avx2: Avx2,
        worker: &mut Worker,
        bpe: &ByteBpe,
        text: &[u8],
        out: &mut Vec<u32>,
    ) {
        worker.encode_with(bpe, &avx2, text, out);
    }

    #[target_feature(enable = "avx2")]
    #[inline]
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

    #[inline(always)]
    pub(super) fn prefetch<T>(item: &T) {
        // SAFETY: prefetching has no effect on the program's state, and SSE is part of x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(item).cast::<i8>()) }
    }
}

/// Appends the ids of `text` to `out` with the instructions of this machine.
pub(crate) fn encode(worker: &mut Worker, bpe: &ByteBpe, text: &[u8], out: &mut Vec<u32>) {
    #[cfg(target_arch = "x86_64")]
    if let Some(avx2) = x86::Avx2::detect() {
        return avx2.encode(worker, bpe, text, out);
    }
    worker.encode_with(bpe, &Portable, text, out);
}

/// The masks as [`encode`] computes them.
#[cfg(test)]
pub(crate) fn best_masks(block: &[u8; 64]) -> super::classify::Masks {
    use super::classify::Classify;
    #[cfg(target_arch = "x86_64")]
    if let Some(avx2) = x86::Avx2::detect() {
        return avx2.masks(block);
    }
    Portable.masks(block)
}

/// Asks for `item` to be brought into the cache.
#[inline(always)]
pub(crate) fn prefetch<T>(item: &T) {
    #[cfg(target_arch = "x86_64")]
    x86::prefetch(item);
    #[cfg(not(target_arch = "x86_64"))]
    let _ = item;
}
