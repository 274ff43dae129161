//! Packed weight forms: 16 rows side by side, lanes are rows, so that one activation meets 16 weights.
//!
//! A block covers 16 rows and `SUBS` times 32 columns. Weights reach the kernels as pairs of `i16`
//! (two neighbouring columns of one row in one 32-bit lane), whatever their width in memory. With
//! integer activations the sum over a part of a sub-block is exact, so that its order does not matter.

mod q4;
mod q8;

pub(crate) use q4::{Q4Offset, Q4Symmetric};
pub(crate) use q8::Q8;

use crate::simd::Simd;

/// Rows in a group.
pub(crate) const GROUP: usize = 16;
/// Columns that share one activation scale.
pub(crate) const BLOCK: usize = 32;
/// Column pairs in a block.
pub(crate) const PAIRS: usize = BLOCK / 2;

/// How the numbers of a matrix lie in the model file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Storage {
    /// 4 bits, scale and minimum for 32 weights.
    Q4_1,
    /// 4 bits around 8, scale for 32 weights.
    Q4_0,
    /// 8 bits, scale for 32 weights.
    Q8_0,
}

impl Storage {
    /// The form named `name` as loaders spell it ("q4_1").
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "q4_0" => Self::Q4_0,
            "q4_1" => Self::Q4_1,
            "q8_0" => Self::Q8_0,
            _ => return None,
        })
    }

    /// Columns in one block of the file.
    #[must_use]
    pub const fn block_columns(self) -> usize {
        BLOCK
    }

    /// Bytes of one block in the file.
    #[must_use]
    pub const fn block_bytes(self) -> usize {
        match self {
            Self::Q4_0 => 18,
            Self::Q4_1 => 20,
            Self::Q8_0 => 34,
        }
    }
}

/// A form that kernels can compute with.
pub(crate) trait Format: 'static {
    /// 16 rows by `32 * SUBS` columns.
    type Block: bytemuck::Pod + Send + Sync;

    /// Sub-blocks of 32 columns in a block.
    const SUBS: usize;
    /// Parts of a sub-block with a scale of their own: 1, or 2 of 16 columns each.
    const PARTS: usize;
    /// Subtracted from each stored weight before it is scaled.
    const ZERO_POINT: i32;
    /// Whether a minimum is added to each scaled weight.
    const HAS_MINIMUM: bool;

    /// Packs one file block for each of 16 rows; a missing row becomes zeros.
    ///
    /// The slices have the length of the storage's block. Returns the row whose scales are not finite.
    fn pack(rows: &[Option<&[u8]>; GROUP], out: &mut Self::Block) -> Result<(), usize>;

    /// Columns `8 * eighth + 2 * pair` and the one after, of 8 rows, as pairs of `i16`.
    fn pair<S: Simd>(
        s: S,
        block: &Self::Block,
        sub: usize,
        eighth: usize,
        pair: usize,
        half: usize,
    ) -> S::Int;

    /// Scales of 8 rows.
    fn scale<S: Simd>(s: S, block: &Self::Block, sub: usize, part: usize, half: usize) -> S::F32;

    /// Minima of 8 rows; unused unless `HAS_MINIMUM`.
    fn minimum<S: Simd>(s: S, block: &Self::Block, sub: usize, half: usize) -> S::F32;
}

/// The half-precision number at `at`.
fn read_f16(data: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([data[at], data[at + 1]])
}

fn is_finite_f16(bits: u16) -> bool {
    half::f16::from_bits(bits).is_finite()
}
