//! Linear layers with float weights: one fused multiply-add for each weight, columns in order.

use crate::activation::QuantView;
use crate::format::{FloatFormat, GROUP};
use crate::simd::{LANES, Op, Simd, both};

/// Rows that share each load of a weight.
const TILE: usize = 4;
const PREFETCH_BYTES: usize = 4096;
const CACHE_LINE: usize = 64;

/// `out[row][0..16] = x[row] . weights` for one group of 16 weight rows.
pub(super) struct FloatProduct<'a, F: FloatFormat> {
    pub(super) columns: &'a [F::Block],
    pub(super) x: QuantView<'a>,
    /// Row `i` starts at `i * stride`.
    pub(super) out: &'a mut [f32],
    pub(super) stride: usize,
}

impl<F: FloatFormat> Op for FloatProduct<'_, F> {
    type Output = ();

    #[inline(always)]
    fn call<S: Simd>(self, s: S) {
        let Self {
            columns,
            x,
            out,
            stride,
        } = self;
        let mut row = 0;
        while row < x.num_rows() {
            let out = &mut out[row * stride..];
            row += match x.num_rows() - row {
                1 => tile::<S, F, 1>(s, columns, &x, row, out, stride),
                2 => tile::<S, F, 2>(s, columns, &x, row, out, stride),
                3 => tile::<S, F, 3>(s, columns, &x, row, out, stride),
                _ => tile::<S, F, TILE>(s, columns, &x, row, out, stride),
            };
        }
    }
}

/// Computes `R` rows; returns `R`.
#[inline(always)]
fn tile<S: Simd, F: FloatFormat, const R: usize>(
    s: S,
    columns: &[F::Block],
    x: &QuantView<'_>,
    first_row: usize,
    out: &mut [f32],
    stride: usize,
) -> usize {
    let x: [&[f32]; R] = std::array::from_fn(|row| &x.row(first_row + row).values[..columns.len()]);
    let mut totals = [[s.splat(0.0); 2]; R];
    let columns_per_line = CACHE_LINE / size_of::<F::Block>();
    for (index, column) in columns.iter().enumerate() {
        if index % columns_per_line == 0 {
            s.prefetch(
                std::ptr::from_ref(column)
                    .cast::<u8>()
                    .wrapping_add(PREFETCH_BYTES),
            );
        }
        let weights = both!(half => F::column(s, column, half));
        for row in 0..R {
            let factor = s.splat(x[row][index]);
            for half in 0..2 {
                totals[row][half] = s.mul_add(factor, weights[half], totals[row][half]);
            }
        }
    }
    for (row, totals) in totals.into_iter().enumerate() {
        let (halves, _) = out[row * stride..][..GROUP].as_chunks_mut::<LANES>();
        for (half, total) in halves.iter_mut().zip(totals) {
            s.store(total, half);
        }
    }
    R
}

/// Writes row `lane` of a group as floats.
pub(super) struct ReadFloats<'a, F: FloatFormat> {
    pub(super) columns: &'a [F::Block],
    pub(super) lane: usize,
    pub(super) out: &'a mut [f32],
}

impl<F: FloatFormat> Op for ReadFloats<'_, F> {
    type Output = ();

    #[inline(always)]
    fn call<S: Simd>(self, s: S) {
        for (column, out) in self.columns.iter().zip(self.out) {
            let mut lanes = [0.0; LANES];
            s.store(F::column(s, column, self.lane / LANES), &mut lanes);
            *out = lanes[self.lane % LANES];
        }
    }
}
