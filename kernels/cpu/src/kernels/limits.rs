//! Work that does nothing but read, or nothing but multiply: what the machine allows at most.

use crate::simd::{LANES, Op, Simd};

const STREAMS: usize = 8;
const PREFETCH_BYTES: usize = 4096;

/// Reads memory once; the result depends on all of it.
pub(super) struct ReadAll<'a> {
    pub(super) words: &'a [[u32; LANES]],
}

impl Op for ReadAll<'_> {
    type Output = i32;

    #[inline(always)]
    fn call<S: Simd>(self, s: S) -> i32 {
        let mut sums = [s.int_splat(0); STREAMS];
        let (chunks, _) = self.words.as_chunks::<STREAMS>();
        for chunk in chunks {
            for line in (0..STREAMS).step_by(2) {
                let ahead = chunk[line].as_ptr().cast::<u8>();
                s.prefetch(ahead.wrapping_add(PREFETCH_BYTES));
            }
            for stream in 0..STREAMS {
                sums[stream] = s.int_or(sums[stream], s.int_load(&chunk[stream]));
            }
        }
        total(s, sums)
    }
}

/// Multiplies and adds pairs of 16-bit integers, `rounds` times [`MULTIPLIES_PER_ROUND`].
pub(super) struct MultiplyOnly {
    pub(super) rounds: u32,
}

/// Multiplications of single numbers in a round.
pub(crate) const MULTIPLIES_PER_ROUND: u64 = (STREAMS * 2 * LANES) as u64;

impl Op for MultiplyOnly {
    type Output = i32;

    #[inline(always)]
    fn call<S: Simd>(self, s: S) -> i32 {
        let mut sums = [s.int_splat(0); STREAMS];
        let mut factor = s.int_splat(self.rounds);
        let (first, second) = (s.int_splat(0x0003_0005), s.int_splat(0x0001_0001));
        for _ in 0..self.rounds {
            for sum in &mut sums {
                *sum = s.int_add(*sum, s.pair_dot(*sum, factor));
            }
            factor = s.int_or(s.int_add(factor, second), first);
        }
        total(s, sums)
    }
}

#[inline(always)]
fn total<S: Simd>(s: S, sums: [S::Int; STREAMS]) -> i32 {
    let mut all = sums[0];
    for sum in &sums[1..] {
        all = s.int_add(all, *sum);
    }
    s.int_sum(all)
}
