//! Packed weight forms: 16 rows side by side, lanes are rows, so that one activation meets 16 weights.
//!
//! Integer forms reach the kernels as pairs of `i16` (two neighbouring columns of one row in one
//! 32-bit lane), whatever their width in memory. With integer activations the sum over a part of a
//! sub-block is exact, so that its order does not matter. Float forms meet float activations.

mod float;
mod k4;
mod k6;
mod q4;
mod q8;

pub(crate) use float::{Bf16, F16, F32};
pub(crate) use k4::{K4, K5};
pub(crate) use k6::K6;
pub(crate) use q4::{Q4Offset, Q4Symmetric};
pub(crate) use q8::Q8;

use crate::simd::Simd;

/// Rows in a group.
pub(crate) const GROUP: usize = 16;
/// Columns that share one activation scale.
pub(crate) const BLOCK: usize = 32;
/// Column pairs in a block.
pub(crate) const PAIRS: usize = BLOCK / 2;
/// Fours of column pairs in a block: the pairs that one load of 4-bit weights holds.
pub(crate) const QUADS: usize = PAIRS / 4;
/// Columns in a block of the K types.
const SUPER_BLOCK: usize = 256;

/// How the numbers of a matrix lie in the model file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Storage {
    /// Single precision.
    F32,
    /// Half precision.
    F16,
    /// The upper half of single precision.
    Bf16,
    /// 4 bits around 8, scale for 32 weights.
    Q4_0,
    /// 4 bits, scale and minimum for 32 weights.
    Q4_1,
    /// 8 bits, scale for 32 weights.
    Q8_0,
    /// 4 bits, 6-bit scale and minimum for 32 weights, shared factors for 256.
    Q4K,
    /// 5 bits, otherwise as `Q4K`.
    Q5K,
    /// 6 bits around 32, 8-bit scale for 16 weights, shared factor for 256.
    Q6K,
}

impl Storage {
    /// The form named `name` as loaders spell it (`q4_1`, `bf16`).
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "f32" => Self::F32,
            "f16" => Self::F16,
            "bf16" => Self::Bf16,
            "q4_0" => Self::Q4_0,
            "q4_1" => Self::Q4_1,
            "q8_0" => Self::Q8_0,
            "q4_k" => Self::Q4K,
            "q5_k" => Self::Q5K,
            "q6_k" => Self::Q6K,
            _ => return None,
        })
    }

    /// Columns in one block of the file.
    #[must_use]
    pub const fn block_columns(self) -> usize {
        match self {
            Self::F32 | Self::F16 | Self::Bf16 => 1,
            Self::Q4_0 | Self::Q4_1 | Self::Q8_0 => BLOCK,
            Self::Q4K | Self::Q5K | Self::Q6K => SUPER_BLOCK,
        }
    }

    /// Bytes of one block in the file.
    #[must_use]
    pub const fn block_bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
            Self::Q4_0 => 18,
            Self::Q4_1 => 20,
            Self::Q8_0 => 34,
            Self::Q4K => 144,
            Self::Q5K => 176,
            Self::Q6K => 210,
        }
    }

    /// Whether kernels multiply with floats and not with quantised activations.
    pub(crate) const fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F16 | Self::Bf16)
    }
}

/// How blocks of 16 rows lie in memory.
pub(crate) trait Packing: 'static {
    /// 16 rows by as many columns as a block of the file has.
    type Block: bytemuck::Pod + Send + Sync;

    /// Packs one file block for each of 16 rows; a missing row becomes zeros.
    ///
    /// The slices have the length of the storage's block. Returns the row whose numbers are not finite.
    fn pack(rows: &[Option<&[u8]>; GROUP], out: &mut Self::Block) -> Result<(), usize>;
}

/// Integers with scales.
pub(crate) trait Format: Packing {
    /// Sub-blocks of 32 columns in a block.
    const SUBS: usize;
    /// Parts of a sub-block with a scale of their own: 1, or 2 of 16 columns each.
    const PARTS: usize;
    /// Subtracted from each stored weight before it is scaled.
    const ZERO_POINT: i32;
    /// Whether a minimum is added to each scaled weight.
    const HAS_MINIMUM: bool;

    /// Whether the codes fit into four bits and [`Format::bytes`] gives them.
    const IS_NIBBLES: bool = false;

    /// Columns `8 * eighth + 2 * pair` and the one after, of 8 rows, as pairs of `i16`.
    fn pair<S: Simd>(
        s: S,
        block: &Self::Block,
        sub: usize,
        eighth: usize,
        pair: usize,
        half: usize,
    ) -> S::Int;

    /// Eight columns of an eighth, of 8 rows, as bytes: columns 0, 4, 1, 5, then 2, 6, 3, 7.
    fn bytes<S: Simd>(
        s: S,
        _block: &Self::Block,
        _sub: usize,
        _eighth: usize,
        _half: usize,
    ) -> [S::Int; 2] {
        [s.int_splat(0); 2]
    }

    /// Scales of 8 rows.
    fn scale<S: Simd>(s: S, block: &Self::Block, sub: usize, part: usize, half: usize) -> S::F32;

    /// Minima of 8 rows; unused unless `HAS_MINIMUM`.
    fn minimum<S: Simd>(s: S, block: &Self::Block, sub: usize, half: usize) -> S::F32;
}

/// Floats; a block is one column.
pub(crate) trait FloatFormat: Packing {
    /// One column of 8 rows.
    fn column<S: Simd>(s: S, block: &Self::Block, half: usize) -> S::F32;
}

/// The half-precision number at `at`.
fn read_f16(data: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([data[at], data[at + 1]])
}

fn is_finite_f16(bits: u16) -> bool {
    half::f16::from_bits(bits).is_finite()
}
