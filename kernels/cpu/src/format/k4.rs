//! `Q4_K` and `Q5_K`: 256 columns with two half-precision factors, and 6-bit scales and minima for
//! each 32 of them.
//!
//! weight = factor * scale * code - minimum factor * minimum

use super::q4::{Nibbles, nibble_bytes, nibble_pair, place};
use super::{BLOCK, Format, GROUP, Packing, is_finite_f16, read_f16};
use crate::simd::{LANES, Simd};

const SUBS: usize = 8;
/// Where the packed 6-bit numbers begin, after the two factors.
const SCALES: usize = 4;
/// Where the rest begins.
const CODES: usize = 16;

/// Factors and 6-bit numbers of 16 rows.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Scales {
    multipliers: [[[u8; LANES]; 2]; SUBS],
    minima: [[[u8; LANES]; 2]; SUBS],
    factors: [[u16; LANES]; 2],
    /// Negated, so that minima are added.
    minimum_factors: [[u16; LANES]; 2],
}

/// A block of `Q4_K`.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub(crate) struct K4Block {
    nibbles: [Nibbles; SUBS],
    scales: Scales,
}

/// A block of `Q5_K`; `highs` holds the fifth bits: bit i of the low 16 is column 2i, of the high 16
/// column 2i + 1.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub(crate) struct K5Block {
    nibbles: [Nibbles; SUBS],
    highs: [[[u32; LANES]; 2]; SUBS],
    scales: Scales,
}

/// `Q4_K`.
pub(crate) struct K4;
/// `Q5_K`.
pub(crate) struct K5;

impl Scales {
    fn place(&mut self, row: usize, data: &[u8]) -> Result<(), usize> {
        let (half, lane) = (row / LANES, row % LANES);
        let (factor, minimum_factor) = (read_f16(data, 0), read_f16(data, 2));
        if !is_finite_f16(factor) || !is_finite_f16(minimum_factor) {
            return Err(row);
        }
        self.factors[half][lane] = factor;
        self.minimum_factors[half][lane] = minimum_factor ^ 0x8000;
        let packed = &data[SCALES..CODES];
        for sub in 0..SUBS {
            let (scale, minimum) = unpack_six_bits(packed, sub);
            self.multipliers[sub][half][lane] = scale;
            self.minima[sub][half][lane] = minimum;
        }
        Ok(())
    }

    #[inline(always)]
    fn scale<S: Simd>(&self, s: S, sub: usize, half: usize) -> S::F32 {
        s.mul(
            s.load_f16(&self.factors[half]),
            s.load_u8(self.multipliers[sub][half]),
        )
    }

    #[inline(always)]
    fn minimum<S: Simd>(&self, s: S, sub: usize, half: usize) -> S::F32 {
        s.mul(
            s.load_f16(&self.minimum_factors[half]),
            s.load_u8(self.minima[sub][half]),
        )
    }
}

/// Scale and minimum of a sub-block: the first four lie in the low 6 bits of bytes 0..4 and 4..8, the
/// others in the nibbles of bytes 8..12 with their upper 2 bits above those of the first.
fn unpack_six_bits(packed: &[u8], sub: usize) -> (u8, u8) {
    if sub < 4 {
        return (packed[sub] & 63, packed[sub + 4] & 63);
    }
    let (low, high_scale, high_minimum) = (packed[sub + 4], packed[sub - 4] >> 6, packed[sub] >> 6);
    (low & 15 | high_scale << 4, low >> 4 | high_minimum << 4)
}

/// Bytes in the order of [`place`] for a sub-block: two of them share 32 bytes, one in the low nibbles.
fn sub_block_bytes(codes: &[u8], sub: usize) -> [u8; BLOCK / 2] {
    let bytes = &codes[sub / 2 * BLOCK..][..BLOCK];
    let nibble = |byte: u8| {
        if sub.is_multiple_of(2) {
            byte & 15
        } else {
            byte >> 4
        }
    };
    std::array::from_fn(|i| nibble(bytes[i]) | nibble(bytes[i + BLOCK / 2]) << 4)
}

impl Packing for K4 {
    type Block = K4Block;

    fn pack(rows: &[Option<&[u8]>; GROUP], out: &mut K4Block) -> Result<(), usize> {
        *out = bytemuck::Zeroable::zeroed();
        for (row, data) in rows.iter().enumerate() {
            let Some(data) = data else { continue };
            out.scales.place(row, data)?;
            for (sub, nibbles) in out.nibbles.iter_mut().enumerate() {
                place(nibbles, row, &sub_block_bytes(&data[CODES..], sub));
            }
        }
        Ok(())
    }
}

impl Format for K4 {
    const SUBS: usize = SUBS;
    const PARTS: usize = 1;
    const ZERO_POINT: i32 = 0;
    const HAS_MINIMUM: bool = true;
    const IS_NIBBLES: bool = true;

    #[inline(always)]
    fn bytes<S: Simd>(
        s: S,
        block: &K4Block,
        sub: usize,
        eighth: usize,
        half: usize,
    ) -> [S::Int; 2] {
        nibble_bytes(s, &block.nibbles[sub], eighth, half)
    }

    #[inline(always)]
    fn pair<S: Simd>(
        s: S,
        block: &K4Block,
        sub: usize,
        eighth: usize,
        pair: usize,
        half: usize,
    ) -> S::Int {
        nibble_pair(s, &block.nibbles[sub], eighth, pair, half)
    }

    #[inline(always)]
    fn scale<S: Simd>(s: S, block: &K4Block, sub: usize, _part: usize, half: usize) -> S::F32 {
        block.scales.scale(s, sub, half)
    }

    #[inline(always)]
    fn minimum<S: Simd>(s: S, block: &K4Block, sub: usize, half: usize) -> S::F32 {
        block.scales.minimum(s, sub, half)
    }
}

impl Packing for K5 {
    type Block = K5Block;

    fn pack(rows: &[Option<&[u8]>; GROUP], out: &mut K5Block) -> Result<(), usize> {
        *out = bytemuck::Zeroable::zeroed();
        for (row, data) in rows.iter().enumerate() {
            let Some(data) = data else { continue };
            out.scales.place(row, data)?;
            let (highs, codes) = data[CODES..].split_at(BLOCK);
            for sub in 0..SUBS {
                place(&mut out.nibbles[sub], row, &sub_block_bytes(codes, sub));
                let bit = |column: usize| {
                    u32::from(highs[column] >> sub & 1) << (column / 2 + 16 * (column % 2))
                };
                out.highs[sub][row / LANES][row % LANES] =
                    (0..BLOCK).map(bit).fold(0, |bits, bit| bits | bit);
            }
        }
        Ok(())
    }
}

impl Format for K5 {
    const SUBS: usize = SUBS;
    const PARTS: usize = 1;
    const ZERO_POINT: i32 = 0;
    const HAS_MINIMUM: bool = true;

    #[inline(always)]
    fn pair<S: Simd>(
        s: S,
        block: &K5Block,
        sub: usize,
        eighth: usize,
        pair: usize,
        half: usize,
    ) -> S::Int {
        let high = s.shr16(
            s.int_load(&block.highs[sub][half]),
            (4 * eighth + pair) as u8,
        );
        let high = s.shl16(s.int_and(high, s.int_splat(0x0001_0001)), 4);
        s.int_or(
            nibble_pair(s, &block.nibbles[sub], eighth, pair, half),
            high,
        )
    }

    #[inline(always)]
    fn scale<S: Simd>(s: S, block: &K5Block, sub: usize, _part: usize, half: usize) -> S::F32 {
        block.scales.scale(s, sub, half)
    }

    #[inline(always)]
    fn minimum<S: Simd>(s: S, block: &K5Block, sub: usize, half: usize) -> S::F32 {
        block.scales.minimum(s, sub, half)
    }
}
