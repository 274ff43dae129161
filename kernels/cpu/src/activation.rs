//! Activations as kernels read them: 15-bit integers with one scale for 32 columns, and floats where
//! a matrix of floats needs them.
//!
//! A block of 32 numbers x becomes q = round(x * 16256 / max |x|) and the scale max |x| / 16256.
//! The range is that of 128 * hi + lo with hi and lo in 8 bits, so that instruction sets with
//! 8-bit dot products give the same integer sums. A block with a number that is not finite has the
//! scale NaN, which every result that it touches then has too.

use crate::format::{BLOCK, PAIRS};
use crate::shared::Shared;
use std::ops::Range;

/// Largest magnitude of a quantised activation.
pub(crate) const MAX_CODE: f32 = 16256.0;

/// One row, block by block.
#[derive(Clone, Copy)]
pub(crate) struct QuantRow<'a> {
    /// The numbers themselves, or none where no matrix needs them.
    pub(crate) values: &'a [f32],
    /// Column pairs, the first in the low 16 bits.
    pub(crate) pairs: &'a [[u32; PAIRS]],
    pub(crate) scales: &'a [f32],
    /// scale * sum of the codes.
    pub(crate) sums: &'a [f32],
    /// Sums of the first and the last 16 codes.
    pub(crate) part_sums: &'a [[i32; 2]],
}

/// Some rows that follow each other.
#[derive(Clone, Copy)]
pub(crate) struct QuantView<'a> {
    num_blocks: usize,
    rows: QuantRow<'a>,
}

impl<'a> QuantView<'a> {
    pub(crate) fn num_rows(&self) -> usize {
        self.rows.scales.len() / self.num_blocks
    }

    /// One of the rows.
    #[inline(always)]
    pub(crate) fn row(&self, row: usize) -> QuantRow<'a> {
        let range = row * self.num_blocks..(row + 1) * self.num_blocks;
        let columns = BLOCK * range.start..BLOCK * range.end;
        QuantRow {
            values: self.rows.values.get(columns).unwrap_or_default(),
            pairs: &self.rows.pairs[range.clone()],
            scales: &self.rows.scales[range.clone()],
            sums: &self.rows.sums[range.clone()],
            part_sums: &self.rows.part_sums[range],
        }
    }
}

/// One row to be filled.
pub(crate) struct QuantRowMut<'a> {
    pub(crate) values: &'a mut [f32],
    pub(crate) pairs: &'a mut [[u32; PAIRS]],
    pub(crate) scales: &'a mut [f32],
    pub(crate) sums: &'a mut [f32],
    pub(crate) part_sums: &'a mut [[i32; 2]],
}

/// Rows of quantised activations, shared between threads.
pub(crate) struct QuantRows {
    num_blocks: usize,
    values: Option<Shared<f32>>,
    pairs: Shared<[u32; PAIRS]>,
    scales: Shared<f32>,
    sums: Shared<f32>,
    part_sums: Shared<[i32; 2]>,
}

impl QuantRows {
    /// Space for `num_rows` rows of `columns`, a multiple of 32; with the floats if they are needed.
    pub(crate) fn new(num_rows: usize, columns: usize, keeps_floats: bool) -> Self {
        let num_blocks = columns / BLOCK;
        let len = num_rows * num_blocks;
        Self {
            num_blocks,
            values: keeps_floats.then(|| Shared::zeroed(num_rows * columns)),
            pairs: Shared::zeroed(len),
            scales: Shared::zeroed(len),
            sums: Shared::zeroed(len),
            part_sums: Shared::zeroed(len),
        }
    }

    pub(crate) fn num_blocks(&self) -> usize {
        self.num_blocks
    }

    /// Reads rows.
    ///
    /// # Safety
    /// Nobody writes these rows while the result lives.
    #[expect(unsafe_code, reason = "forwards the promise of the caller")]
    pub(crate) unsafe fn view(&self, rows: Range<usize>) -> QuantView<'_> {
        let range = rows.start * self.num_blocks..rows.end * self.num_blocks;
        // SAFETY: promised by the caller for these rows.
        let rows = unsafe {
            let columns = BLOCK * range.start..BLOCK * range.end;
            QuantRow {
                values: self
                    .values
                    .as_ref()
                    .map_or(&[], |values| values.get(columns)),
                pairs: self.pairs.get(range.clone()),
                scales: self.scales.get(range.clone()),
                sums: self.sums.get(range.clone()),
                part_sums: self.part_sums.get(range),
            }
        };
        QuantView {
            num_blocks: self.num_blocks,
            rows,
        }
    }

    /// Writes blocks of a row.
    ///
    /// # Safety
    /// Nobody else reads or writes these blocks while the result lives.
    #[expect(unsafe_code, reason = "forwards the promise of the caller")]
    pub(crate) unsafe fn blocks_mut(&self, row: usize, blocks: Range<usize>) -> QuantRowMut<'_> {
        assert!(blocks.end <= self.num_blocks, "blocks of one row");
        let range = row * self.num_blocks + blocks.start..row * self.num_blocks + blocks.end;
        // SAFETY: promised by the caller for these blocks.
        unsafe {
            let columns = BLOCK * range.start..BLOCK * range.end;
            QuantRowMut {
                values: self
                    .values
                    .as_ref()
                    .map_or(&mut [], |values| values.get_mut(columns)),
                pairs: self.pairs.get_mut(range.clone()),
                scales: self.scales.get_mut(range.clone()),
                sums: self.sums.get_mut(range.clone()),
                part_sums: self.part_sums.get_mut(range),
            }
        }
    }
}
