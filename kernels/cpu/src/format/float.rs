//! Weights in floating point: single, half, and bfloat16.

use super::{FloatFormat, GROUP, Packing};
use crate::simd::{LANES, Simd};
use half::{bf16, f16};

/// One column of 16 rows.
type Column<T> = [[T; LANES]; 2];

/// `F32`.
pub(crate) struct F32;
/// `F16`.
pub(crate) struct F16;
/// `Bf16`.
pub(crate) struct Bf16;

/// Fills a column from the file's numbers, each checked to be finite.
fn pack_column<T: bytemuck::Pod, const BYTES: usize>(
    rows: &[Option<&[u8]>; GROUP],
    out: &mut Column<T>,
    read: impl Fn([u8; BYTES]) -> Option<T>,
) -> Result<(), usize> {
    for (row, data) in rows.iter().enumerate() {
        let number = match data {
            None => Some(T::zeroed()),
            Some(data) => data.first_chunk().copied().and_then(&read),
        };
        out[row / LANES][row % LANES] = number.ok_or(row)?;
    }
    Ok(())
}

impl Packing for F32 {
    type Block = Column<f32>;

    fn pack(rows: &[Option<&[u8]>; GROUP], out: &mut Self::Block) -> Result<(), usize> {
        pack_column(rows, out, |bytes| {
            Some(f32::from_le_bytes(bytes)).filter(|number| number.is_finite())
        })
    }
}

impl Packing for F16 {
    type Block = Column<u16>;

    fn pack(rows: &[Option<&[u8]>; GROUP], out: &mut Self::Block) -> Result<(), usize> {
        pack_column(rows, out, |bytes| {
            Some(u16::from_le_bytes(bytes)).filter(|bits| f16::from_bits(*bits).is_finite())
        })
    }
}

impl Packing for Bf16 {
    type Block = Column<u16>;

    fn pack(rows: &[Option<&[u8]>; GROUP], out: &mut Self::Block) -> Result<(), usize> {
        pack_column(rows, out, |bytes| {
            Some(u16::from_le_bytes(bytes)).filter(|bits| bf16::from_bits(*bits).is_finite())
        })
    }
}

impl FloatFormat for F32 {
    #[inline(always)]
    fn column<S: Simd>(s: S, block: &Column<f32>, half: usize) -> S::F32 {
        s.load(&block[half])
    }
}

impl FloatFormat for F16 {
    #[inline(always)]
    fn column<S: Simd>(s: S, block: &Column<u16>, half: usize) -> S::F32 {
        s.load_f16(&block[half])
    }
}

impl FloatFormat for Bf16 {
    #[inline(always)]
    fn column<S: Simd>(s: S, block: &Column<u16>, half: usize) -> S::F32 {
        s.load_bf16(&block[half])
    }
}
