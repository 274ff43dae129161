//! Linear layers: packed weights times quantised activations.
//!
//! A row's result is a sum over sub-blocks of 32 columns in their order: the exact integer sum of a
//! part times (weight scale * activation scale), then the minimum times the activation sum. Both
//! ways below keep this order, so that a row has the same bits whatever stands beside it.

use crate::activation::{QuantRow, QuantView};
use crate::format::{Format, GROUP, PAIRS, QUADS};
use crate::simd::{LANES, Op, Simd, both};

/// From this many rows on, weights are unpacked once for all rows; below, the loads and stores in between
/// cost more than they save (measured).
const PANEL_ROWS: usize = 24;
/// Sub-blocks unpacked at a time: 8 KiB, so that activations and results stay in the first-level cache too.
pub(crate) const PANEL_SUBS: usize = 6;
/// Rows that share each load of a weight.
pub(super) const TILE: usize = 4;
/// How far ahead weights are asked for while a single row streams through them.
pub(super) const PREFETCH_BYTES: usize = 8192;
pub(super) const CACHE_LINE: usize = 64;

/// `out[row][0..16] = x[row] . weights` for one group of 16 weight rows.
pub(super) struct GroupProduct<'a, F: Format> {
    pub(super) blocks: &'a [F::Block],
    pub(super) x: QuantView<'a>,
    /// Row `i` starts at `i * stride`.
    pub(super) out: &'a mut [f32],
    pub(super) stride: usize,
    pub(super) panel: &'a mut [Unpacked],
}

pub(super) type Accumulators<S> = [<S as Simd>::F32; 2];

impl<F: Format> Op for GroupProduct<'_, F> {
    type Output = ();

    #[inline(always)]
    fn call<S: Simd>(self, s: S) {
        if F::IS_NIBBLES && self.x.has_bytes() {
            super::linear_bytes::product::<S, F>(s, self);
            return;
        }
        if self.x.num_rows() >= PANEL_ROWS {
            unpacked_product::<S, F>(s, self);
            return;
        }
        let mut row = 0;
        while row < self.x.num_rows() {
            let left = self.x.num_rows() - row;
            let out = &mut self.out[row * self.stride..];
            row += match left {
                1 => direct_tile::<S, F, 1>(s, self.blocks, &self.x, row, out, self.stride),
                2 => direct_tile::<S, F, 2>(s, self.blocks, &self.x, row, out, self.stride),
                3 => direct_tile::<S, F, 3>(s, self.blocks, &self.x, row, out, self.stride),
                _ => direct_tile::<S, F, TILE>(s, self.blocks, &self.x, row, out, self.stride),
            };
        }
    }
}

/// Computes `R` rows while unpacking the weights in registers; returns `R`.
#[inline(always)]
fn direct_tile<S: Simd, F: Format, const R: usize>(
    s: S,
    blocks: &[F::Block],
    x: &QuantView<'_>,
    first_row: usize,
    out: &mut [f32],
    stride: usize,
) -> usize {
    let x: [QuantRow<'_>; R] = std::array::from_fn(|row| x.row(first_row + row));
    let mut totals: [Accumulators<S>; R] = [[s.splat(0.0); 2]; R];
    for (index, block) in blocks.iter().enumerate() {
        let ahead = std::ptr::from_ref(block)
            .cast::<u8>()
            .wrapping_add(PREFETCH_BYTES);
        for line in 0..size_of::<F::Block>().div_ceil(CACHE_LINE) {
            s.prefetch(ahead.wrapping_add(line * CACHE_LINE));
        }
        for sub in 0..F::SUBS {
            let at = index * F::SUBS + sub;
            let codes = codes_at(&x, at);
            for part in 0..F::PARTS {
                let mut sums = start::<S, F, R>(s, &x, at, part);
                for eighth in part * QUADS / F::PARTS..(part + 1) * QUADS / F::PARTS {
                    let codes: [&[u32; 4]; R] = std::array::from_fn(|row| &codes[row][eighth]);
                    for pair in 0..4 {
                        let weights = both!(half => F::pair(s, block, sub, eighth, pair, half));
                        multiply(s, &mut sums, weights, &codes, pair);
                    }
                }
                let scales = both!(half => F::scale(s, block, sub, part, half));
                scale_and_add(s, &mut totals, sums, scales, &x, at);
            }
            if F::HAS_MINIMUM {
                let minima = both!(half => F::minimum(s, block, sub, half));
                add_minima(s, &mut totals, minima, &x, at);
            }
        }
    }
    store(s, totals, out, stride);
    R
}

/// Integer sums before the first product: minus the zero point of every weight times the codes.
#[inline(always)]
pub(super) fn start<S: Simd, F: Format, const R: usize>(
    s: S,
    x: &[QuantRow<'_>; R],
    at: usize,
    part: usize,
) -> [[S::Int; 2]; R] {
    let mut sums = [[s.int_splat(0); 2]; R];
    if F::ZERO_POINT != 0 {
        for row in 0..R {
            let of_parts = x[row].part_sums[at];
            let codes = if F::PARTS == 1 {
                of_parts[0] + of_parts[1]
            } else {
                of_parts[part]
            };
            sums[row] = [s.int_splat((-F::ZERO_POINT * codes).cast_unsigned()); 2];
        }
    }
    sums
}

/// The codes of a sub-block, four pairs at a time.
#[inline(always)]
fn codes_at<'a, const R: usize>(x: &[QuantRow<'a>; R], at: usize) -> [&'a [[u32; 4]; QUADS]; R] {
    std::array::from_fn(|row| bytemuck::cast_ref(&x[row].pairs[at]))
}

#[inline(always)]
fn multiply<S: Simd, const R: usize>(
    s: S,
    sums: &mut [[S::Int; 2]; R],
    weights: [S::Int; 2],
    codes: &[&[u32; 4]; R],
    pair: usize,
) {
    for row in 0..R {
        let codes = s.int_splat(codes[row][pair]);
        for half in 0..2 {
            sums[row][half] = s.int_add(sums[row][half], s.pair_dot(weights[half], codes));
        }
    }
}

#[inline(always)]
pub(super) fn scale_and_add<S: Simd, const R: usize>(
    s: S,
    totals: &mut [Accumulators<S>; R],
    sums: [[S::Int; 2]; R],
    scales: [S::F32; 2],
    x: &[QuantRow<'_>; R],
    at: usize,
) {
    for row in 0..R {
        let scale = s.splat(x[row].scales[at]);
        for half in 0..2 {
            let sum = s.int_to_f32(sums[row][half]);
            totals[row][half] = s.mul_add(sum, s.mul(scales[half], scale), totals[row][half]);
        }
    }
}

#[inline(always)]
pub(super) fn add_minima<S: Simd, const R: usize>(
    s: S,
    totals: &mut [Accumulators<S>; R],
    minima: [S::F32; 2],
    x: &[QuantRow<'_>; R],
    at: usize,
) {
    for row in 0..R {
        let sum = s.splat(x[row].sums[at]);
        for half in 0..2 {
            totals[row][half] = s.mul_add(minima[half], sum, totals[row][half]);
        }
    }
}

#[inline(always)]
pub(super) fn store<S: Simd, const R: usize>(
    s: S,
    totals: [Accumulators<S>; R],
    out: &mut [f32],
    stride: usize,
) {
    for (row, totals) in totals.into_iter().enumerate() {
        let (halves, _) = out[row * stride..][..GROUP].as_chunks_mut::<LANES>();
        for (half, total) in halves.iter_mut().zip(totals) {
            s.store(total, half);
        }
    }
}

/// One unpacked sub-block of a group.
#[derive(Clone, Copy, bytemuck::Zeroable)]
#[repr(C, align(32))]
pub(crate) struct Unpacked {
    /// `[quad][pair of the quad][half]`.
    weights: [[[[u32; LANES]; 2]; 4]; QUADS],
    scales: [[[f32; LANES]; 2]; 2],
    minima: [[f32; LANES]; 2],
}

/// Computes many rows from weights that are unpacked once.
#[inline(always)]
fn unpacked_product<S: Simd, F: Format>(s: S, product: GroupProduct<'_, F>) {
    let GroupProduct {
        blocks,
        x,
        out,
        stride,
        panel,
    } = product;
    let num_subs = blocks.len() * F::SUBS;
    let mut first = 0;
    while first < num_subs {
        let panel = &mut panel[..PANEL_SUBS.min(num_subs - first)];
        for (offset, unpacked) in panel.iter_mut().enumerate() {
            let at = first + offset;
            unpack::<S, F>(s, &blocks[at / F::SUBS], at % F::SUBS, unpacked);
        }
        let mut row = 0;
        while row < x.num_rows() {
            let out = &mut out[row * stride..];
            row += match x.num_rows() - row {
                1 => unpacked_tile::<S, F, 1>(s, panel, first, &x, row, out, stride),
                2 => unpacked_tile::<S, F, 2>(s, panel, first, &x, row, out, stride),
                3 => unpacked_tile::<S, F, 3>(s, panel, first, &x, row, out, stride),
                _ => unpacked_tile::<S, F, TILE>(s, panel, first, &x, row, out, stride),
            };
        }
        first += panel.len();
    }
}

#[inline(always)]
fn unpack<S: Simd, F: Format>(s: S, block: &F::Block, sub: usize, out: &mut Unpacked) {
    for half in 0..2 {
        for (quad, weights) in out.weights.iter_mut().enumerate() {
            for (pair, weights) in weights.iter_mut().enumerate() {
                s.int_store(F::pair(s, block, sub, quad, pair, half), &mut weights[half]);
            }
        }
        for part in 0..F::PARTS {
            s.store(
                F::scale(s, block, sub, part, half),
                &mut out.scales[part][half],
            );
        }
        if F::HAS_MINIMUM {
            s.store(F::minimum(s, block, sub, half), &mut out.minima[half]);
        }
    }
}

/// Adds the sub-blocks of a panel, which begins at sub-block `first`, to `R` rows; returns `R`.
#[inline(always)]
fn unpacked_tile<S: Simd, F: Format, const R: usize>(
    s: S,
    panel: &[Unpacked],
    first: usize,
    x: &QuantView<'_>,
    first_row: usize,
    out: &mut [f32],
    stride: usize,
) -> usize {
    let x: [QuantRow<'_>; R] = std::array::from_fn(|row| x.row(first_row + row));
    let mut totals: [Accumulators<S>; R] = [[s.splat(0.0); 2]; R];
    if first > 0 {
        for row in 0..R {
            let (halves, _) = out[row * stride..][..GROUP].as_chunks::<LANES>();
            totals[row] = [s.load(&halves[0]), s.load(&halves[1])];
        }
    }
    // While these rows are multiplied, the next ones come near: one cache line for each block.
    let ahead = R * x[0].pairs.len();
    for (offset, unpacked) in panel.iter().enumerate() {
        let at = first + offset;
        for row in 0..R {
            s.prefetch(x[row].pairs.as_ptr().wrapping_add(at + ahead).cast());
        }
        let codes = codes_at(&x, at);
        for part in 0..F::PARTS {
            let mut sums = start::<S, F, R>(s, &x, at, part);
            for quad in part * QUADS / F::PARTS..(part + 1) * QUADS / F::PARTS {
                let codes: [&[u32; 4]; R] = std::array::from_fn(|row| &codes[row][quad]);
                for (pair, weights) in unpacked.weights[quad].iter().enumerate() {
                    let weights = both!(half => s.int_load(&weights[half]));
                    multiply(s, &mut sums, weights, &codes, pair);
                }
            }
            let scales = both!(half => s.load(&unpacked.scales[part][half]));
            scale_and_add(s, &mut totals, sums, scales, &x, at);
        }
        if F::HAS_MINIMUM {
            add_minima(
                s,
                &mut totals,
                both!(half => s.load(&unpacked.minima[half])),
                &x,
                at,
            );
        }
    }
    store(s, totals, out, stride);
    R
}

/// Writes row `lane` of a group as floats: weight = scale * (code - zero point) + minimum.
pub(super) struct ReadRow<'a, F: Format> {
    pub(crate) blocks: &'a [F::Block],
    pub(super) lane: usize,
    pub(crate) out: &'a mut [f32],
}

impl<F: Format> Op for ReadRow<'_, F> {
    type Output = ();

    #[inline(always)]
    #[expect(clippy::cast_precision_loss, reason = "codes have at most 9 bits")]
    fn call<S: Simd>(self, s: S) {
        let (half, lane) = (self.lane / LANES, self.lane % LANES);
        let mut unpacked: Unpacked = bytemuck::Zeroable::zeroed();
        let (chunks, _) = self.out.as_chunks_mut::<{ 2 * PAIRS }>();
        for (at, out) in chunks
            .iter_mut()
            .enumerate()
            .take(self.blocks.len() * F::SUBS)
        {
            unpack::<S, F>(s, &self.blocks[at / F::SUBS], at % F::SUBS, &mut unpacked);
            for (column, out) in out.iter_mut().enumerate() {
                let word = unpacked.weights[column / 8][column / 2 % 4][half][lane];
                let code = i32::from((word >> (16 * (column & 1))) as i16) - F::ZERO_POINT;
                let scale = unpacked.scales[column * F::PARTS / (2 * PAIRS)][half][lane];
                *out = scale * code as f32 + unpacked.minima[half][lane];
            }
        }
    }
}
