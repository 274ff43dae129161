//! Activations as kernels read them: 15-bit integers with one scale for 32 columns, and floats where
//! a matrix of floats needs them.
//!
//! A block of 32 numbers x becomes q = round(x * 16256 / max |x|) and the scale max |x| / 16256.
//! The range is that of 128 * hi + lo with hi and lo in 8 bits, so that instruction sets with
//! 8-bit dot products give the same integer sums. The fast form has 8 bits: q = round(x * 127 / max |x|).
//! A block with a number that is not finite has the
//! scale NaN, which every result that it touches then has too.

use crate::error::{Error, Result};
use crate::format::{BLOCK, PAIRS, QUADS};
use crate::shared::Shared;
use std::ops::Range;

/// How activations are quantised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Activations {
    /// 15 bits: results as from single precision within about 1e-4.
    #[default]
    Exact,
    /// 8 bits: faster where many rows share a step, and much further from single precision.
    Fast,
}

impl Activations {
    /// The form named `name`.
    ///
    /// # Errors
    /// [`Error::Shape`] when there is no such form.
    pub fn from_name(name: &str) -> Result<Self> {
        match name {
            "exact" => Ok(Self::Exact),
            "fast" => Ok(Self::Fast),
            _ => Err(Error::shape("activations", name, "exact or fast")),
        }
    }

    /// Largest magnitude of a code.
    const fn max_code(self) -> f32 {
        match self {
            Self::Exact => 16256.0,
            Self::Fast => 127.0,
        }
    }
}

/// 32 codes as bytes: for each eighth of the block two words.
pub(crate) type ByteCodes = [[u32; 2]; QUADS];

/// One row, block by block.
#[derive(Clone, Copy)]
pub(crate) struct QuantRow<'a> {
    /// The numbers themselves, or none where no matrix needs them.
    pub(crate) values: &'a [f32],
    /// Column pairs, the first in the low 16 bits.
    pub(crate) pairs: &'a [[u32; PAIRS]],
    /// The same as bytes, in the order of `Format::bytes`, where they fit; none otherwise.
    pub(crate) bytes: &'a [ByteCodes],
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

    /// Whether the codes are there as bytes.
    pub(crate) fn has_bytes(&self) -> bool {
        !self.rows.bytes.is_empty()
    }

    /// One of the rows.
    #[inline(always)]
    pub(crate) fn row(&self, row: usize) -> QuantRow<'a> {
        let range = row * self.num_blocks..(row + 1) * self.num_blocks;
        let columns = BLOCK * range.start..BLOCK * range.end;
        QuantRow {
            values: self.rows.values.get(columns).unwrap_or_default(),
            pairs: &self.rows.pairs[range.clone()],
            bytes: self.rows.bytes.get(range.clone()).unwrap_or_default(),
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
    pub(crate) bytes: &'a mut [ByteCodes],
    /// Largest magnitude of a code.
    pub(crate) max_code: f32,
    pub(crate) scales: &'a mut [f32],
    pub(crate) sums: &'a mut [f32],
    pub(crate) part_sums: &'a mut [[i32; 2]],
}

/// Rows of quantised activations, shared between threads.
pub(crate) struct QuantRows {
    num_blocks: usize,
    values: Option<Shared<f32>>,
    pairs: Shared<[u32; PAIRS]>,
    bytes: Option<Shared<ByteCodes>>,
    max_code: f32,
    scales: Shared<f32>,
    sums: Shared<f32>,
    part_sums: Shared<[i32; 2]>,
}

impl QuantRows {
    /// Space for `num_rows` rows of `columns`, a multiple of 32; with the floats if they are needed.
    pub(crate) fn new(
        num_rows: usize,
        columns: usize,
        form: Activations,
        keeps_floats: bool,
    ) -> Self {
        let num_blocks = columns / BLOCK;
        let len = num_rows * num_blocks;
        Self {
            num_blocks,
            values: keeps_floats.then(|| Shared::zeroed(num_rows * columns)),
            pairs: Shared::zeroed(len),
            bytes: (form == Activations::Fast).then(|| Shared::zeroed(len)),
            max_code: form.max_code(),
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
                bytes: self
                    .bytes
                    .as_ref()
                    .map_or(&[], |bytes| bytes.get(range.clone())),
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
                bytes: self
                    .bytes
                    .as_ref()
                    .map_or(&mut [], |bytes| bytes.get_mut(range.clone())),
                max_code: self.max_code,
                scales: self.scales.get_mut(range.clone()),
                sums: self.sums.get_mut(range.clone()),
                part_sums: self.part_sums.get_mut(range),
            }
        }
    }
}
