//! The operators of a layer, each compiled once for every instruction set.

mod attention;
mod elementwise;
mod limits;
mod linear;
mod linear_bytes;
mod linear_float;
mod math;
mod quantise;
mod select;

pub(crate) use attention::{
    CHUNK, ChunkResult, KEY_TILE, KvTile, MAX_QUERIES, QueryTile, SoftmaxState, attend_scratch,
};
pub(crate) use limits::MULTIPLIES_PER_ROUND;
pub(crate) use linear::{PANEL_SUBS, Unpacked};
pub use select::Isa;

use crate::activation::{QuantRowMut, QuantView};
use crate::format::GROUP;
use crate::matrix::{PackedMatrix, with_format};
use crate::simd::{LANES, Simd};
use std::ops::Range;

/// The operators on one instruction set. Another set may bring methods of its own, as long as its
/// bits are those of the plain Rust one.
pub(crate) trait Kernels: Send + Sync {
    /// For each row of `x`: `out[row][0 ..] = x[row] . weights` for the rows of `groups`.
    ///
    /// `out` holds `16 * groups.len()` numbers for each row of `x`; `panel` is scratch for
    /// `PANEL_SUBS` unpacked sub-blocks.
    fn linear(
        &self,
        matrix: &PackedMatrix,
        groups: Range<usize>,
        x: QuantView<'_>,
        out: &mut [f32],
        panel: &mut [Unpacked],
    );

    /// One row of a matrix as floats.
    fn read_row(&self, matrix: &PackedMatrix, row: usize, out: &mut [f32]);

    /// Quantises `values`, whole blocks of 32.
    fn quantise(&self, values: &[f32], out: QuantRowMut<'_>);

    /// `out = x * weight / sqrt(mean(x^2) + eps)`; lengths are a multiple of 8.
    fn rms_norm(&self, x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]);

    /// `out = gate / (1 + exp(-gate)) * up`; lengths are a multiple of 8.
    fn silu_and_mul(&self, gate: &[f32], up: &[f32], out: &mut [f32]);

    /// `x += y`; lengths are a multiple of 8.
    fn add(&self, x: &mut [f32], y: &[f32]);

    /// Turns (first half, second half) of a head by the angles given by their cosines and sines and
    /// multiplies by `factor`; half a head is a multiple of 8.
    fn rotate(&self, head: &mut [f32], cosines: &[f32], sines: &[f32], factor: f32);

    /// Narrows to halves; lengths are a multiple of 8.
    fn narrow(&self, values: &[f32], out: &mut [u16]);

    /// Quantises to 8 bits; returns the scale, NaN where a value is not finite. Lengths are a multiple of 8.
    fn narrow_to_bytes(&self, values: &[f32], out: &mut [i8]) -> f32;

    /// Index and value of the largest logit (the lowest index on ties), and whether all are finite.
    fn argmax(&self, logits: &[f32]) -> Best;

    /// Reads all words; the result depends on each.
    fn read_all(&self, words: &[[u32; LANES]]) -> i32;

    /// Multiplies and adds `rounds * MULTIPLIES_PER_ROUND` numbers of 16 bits.
    fn multiply_only(&self, rounds: u32) -> i32;

    /// Sum of e^(x - origin) over values that are at most `origin`.
    fn exp_sum(&self, values: &[f32], origin: f32) -> f64;

    /// Attention of some queries over one chunk of positions; results replace `out`. `scratch` holds
    /// `attend_scratch(head_dim)` numbers.
    fn attend(
        &self,
        queries: &QueryTile<'_>,
        tiles: Tiles<'_>,
        out: &mut [ChunkResult<'_>],
        scratch: &mut [f32],
    );

    /// Folds a chunk's result into the state over the chunks before it.
    fn fold(&self, state: &mut SoftmaxState<'_>, chunk: &ChunkResult<'_>);

    /// `out = state.values / state.sum`.
    fn finish(&self, state: &SoftmaxState<'_>, out: &mut [f32]);
}

/// The tiles of a chunk of positions.
#[derive(Clone, Copy)]
pub(crate) enum Tiles<'a> {
    /// Of half-precision numbers.
    Half(&'a [KvTile<'a, u16>]),
    /// Of 8-bit integers with scales.
    Byte(&'a [KvTile<'a, i8>]),
}

/// The largest of some logits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Best {
    pub(crate) index: usize,
    pub(crate) value: f32,
    pub(crate) all_finite: bool,
}

impl Best {
    /// The best of no logits.
    pub(crate) const NONE: Self = Self {
        index: 0,
        value: f32::NEG_INFINITY,
        all_finite: true,
    };

    /// The better of two, this one on ties.
    pub(crate) fn join(self, later: Self) -> Self {
        let all_finite = self.all_finite && later.all_finite;
        let winner = if later.value > self.value {
            later
        } else {
            self
        };
        Self {
            all_finite,
            ..winner
        }
    }
}

impl<S: Simd> Kernels for S {
    fn linear(
        &self,
        matrix: &PackedMatrix,
        groups: Range<usize>,
        x: QuantView<'_>,
        out: &mut [f32],
        panel: &mut [Unpacked],
    ) {
        let stride = groups.len() * GROUP;
        assert!(out.len() >= x.num_rows() * stride, "room for the rows");
        for (index, group) in groups.enumerate() {
            let out = &mut out[index * GROUP..];
            with_format!(
                matrix.storage(),
                F => self.run(linear::GroupProduct::<F> { blocks: matrix.group::<F>(group), x, out, stride, panel }),
                self.run(linear_float::FloatProduct::<F> { columns: matrix.group::<F>(group), x, out, stride })
            );
        }
    }

    fn read_row(&self, matrix: &PackedMatrix, row: usize, out: &mut [f32]) {
        let (group, lane) = (row / GROUP, row % GROUP);
        with_format!(
            matrix.storage(),
            F => self.run(linear::ReadRow::<F> { blocks: matrix.group::<F>(group), lane, out }),
            self.run(linear_float::ReadFloats::<F> { columns: matrix.group::<F>(group), lane, out })
        );
    }

    fn quantise(&self, values: &[f32], out: QuantRowMut<'_>) {
        self.run(quantise::Quantise { values, out });
    }

    fn rms_norm(&self, x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
        self.run(elementwise::RmsNorm {
            x,
            weight,
            eps,
            out,
        });
    }

    fn silu_and_mul(&self, gate: &[f32], up: &[f32], out: &mut [f32]) {
        self.run(elementwise::SiluAndMul { gate, up, out });
    }

    fn add(&self, x: &mut [f32], y: &[f32]) {
        self.run(elementwise::Add { x, y });
    }

    fn rotate(&self, head: &mut [f32], cosines: &[f32], sines: &[f32], factor: f32) {
        self.run(elementwise::Rotate {
            head,
            cosines,
            sines,
            factor,
        });
    }

    fn narrow(&self, values: &[f32], out: &mut [u16]) {
        self.run(elementwise::Narrow { values, out });
    }

    fn narrow_to_bytes(&self, values: &[f32], out: &mut [i8]) -> f32 {
        self.run(elementwise::NarrowToBytes { values, out })
    }

    fn argmax(&self, logits: &[f32]) -> Best {
        self.run(elementwise::Argmax { logits })
    }

    fn read_all(&self, words: &[[u32; LANES]]) -> i32 {
        self.run(limits::ReadAll { words })
    }

    fn multiply_only(&self, rounds: u32) -> i32 {
        self.run(limits::MultiplyOnly { rounds })
    }

    fn exp_sum(&self, values: &[f32], origin: f32) -> f64 {
        self.run(elementwise::ExpSum { values, origin })
    }

    fn attend(
        &self,
        queries: &QueryTile<'_>,
        tiles: Tiles<'_>,
        out: &mut [ChunkResult<'_>],
        scratch: &mut [f32],
    ) {
        match tiles {
            Tiles::Half(tiles) => self.run(attention::Attend {
                queries,
                tiles,
                out,
                scratch,
            }),
            Tiles::Byte(tiles) => self.run(attention::Attend {
                queries,
                tiles,
                out,
                scratch,
            }),
        }
    }

    fn fold(&self, state: &mut SoftmaxState<'_>, chunk: &ChunkResult<'_>) {
        self.run(attention::Fold { state, chunk });
    }

    fn finish(&self, state: &SoftmaxState<'_>, out: &mut [f32]) {
        self.run(attention::Finish { state, out });
    }
}
