//! Linear layers of 4-bit weights times 8-bit activations: products of bytes, summed in 16 bits.
//!
//! A sum of two products is at most 2 * 15 * 127 = 3810, and a lane takes eight of them in a sub-block,
//! which stays within 16 bits.

use super::linear::{
    Accumulators, CACHE_LINE, GroupProduct, PREFETCH_BYTES, TILE, add_minima, scale_and_add, start,
    store,
};
use crate::activation::{QuantRow, QuantView};
use crate::format::{Format, QUADS};
use crate::simd::{Simd, both};

#[inline(always)]
pub(super) fn product<S: Simd, F: Format>(s: S, product: GroupProduct<'_, F>) {
    let GroupProduct {
        blocks,
        x,
        out,
        stride,
        ..
    } = product;
    let mut row = 0;
    while row < x.num_rows() {
        let out = &mut out[row * stride..];
        row += match x.num_rows() - row {
            1 => tile::<S, F, 1>(s, blocks, &x, row, out, stride),
            2 => tile::<S, F, 2>(s, blocks, &x, row, out, stride),
            3 => tile::<S, F, 3>(s, blocks, &x, row, out, stride),
            _ => tile::<S, F, TILE>(s, blocks, &x, row, out, stride),
        };
    }
}

/// Computes `R` rows; returns `R`.
#[inline(always)]
fn tile<S: Simd, F: Format, const R: usize>(
    s: S,
    blocks: &[F::Block],
    x: &QuantView<'_>,
    first_row: usize,
    out: &mut [f32],
    stride: usize,
) -> usize {
    let x: [QuantRow<'_>; R] = std::array::from_fn(|row| x.row(first_row + row));
    let mut totals: [Accumulators<S>; R] = [[s.splat(0.0); 2]; R];
    let ones = s.int_splat(0x0001_0001);
    for (index, block) in blocks.iter().enumerate() {
        let ahead = std::ptr::from_ref(block)
            .cast::<u8>()
            .wrapping_add(PREFETCH_BYTES);
        for line in 0..size_of::<F::Block>().div_ceil(CACHE_LINE) {
            s.prefetch(ahead.wrapping_add(line * CACHE_LINE));
        }
        for sub in 0..F::SUBS {
            let at = index * F::SUBS + sub;
            let codes: [&[[u32; 2]; QUADS]; R] = std::array::from_fn(|row| &x[row].bytes[at]);
            let mut shorts = [[s.int_splat(0); 2]; R];
            for eighth in 0..QUADS {
                let weights = both!(half => F::bytes(s, block, sub, eighth, half));
                for row in 0..R {
                    for word in 0..2 {
                        let codes = s.int_splat(codes[row][eighth][word]);
                        for half in 0..2 {
                            let products = s.byte_dot(weights[half][word], codes);
                            shorts[row][half] = s.add16(shorts[row][half], products);
                        }
                    }
                }
            }
            let mut sums = start::<S, F, R>(s, &x, at, 0);
            for row in 0..R {
                for half in 0..2 {
                    let wide = s.pair_dot(shorts[row][half], ones);
                    sums[row][half] = s.int_add(sums[row][half], wide);
                }
            }
            let scales = both!(half => F::scale(s, block, sub, 0, half));
            scale_and_add(s, &mut totals, sums, scales, &x, at);
            if F::HAS_MINIMUM {
                let minima = both!(half => F::minimum(s, block, sub, half));
                add_minima(s, &mut totals, minima, &x, at);
            }
        }
    }
    store(s, totals, out, stride);
    R
}
