//! `Q6_K`: 256 columns with a half-precision factor, and signed 8-bit scales for each 16 of them.
//!
//! weight = factor * scale * (code - 32)

use super::q4::{Nibbles, nibble_pair, place};
use super::{BLOCK, Format, GROUP, Packing, is_finite_f16, read_f16};
use crate::simd::{LANES, Simd};

const SUBS: usize = 8;
/// Where the parts of a file block begin: low 4 bits, high 2 bits, scales, factor.
const HIGHS: usize = 128;
const SCALES: usize = HIGHS + 64;
const FACTOR: usize = SCALES + 16;

/// A block of `Q6_K`; `highs[sub][i]` holds the upper 2 bits of columns 16i..16i + 16: bits 2p and
/// 2p + 1 of the low 16 are column 16i + 2p, of the high 16 the column after it.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub(crate) struct K6Block {
    nibbles: [Nibbles; SUBS],
    highs: [[[[u32; LANES]; 2]; 2]; SUBS],
    scales: [[[[i8; LANES]; 2]; 2]; SUBS],
    factors: [[u16; LANES]; 2],
}

/// `Q6_K`.
pub(crate) struct K6;

/// The 6-bit code of a column: within each 128 columns, four runs of 32 share 64 bytes of low bits
/// and 32 bytes of high bits.
fn code(data: &[u8], column: usize) -> u8 {
    let (half, run, i) = (column / 128, column % 128 / BLOCK, column % BLOCK);
    let low = data[64 * half + run % 2 * BLOCK + i] >> (run / 2 * 4) & 15;
    let high = data[HIGHS + 32 * half + i] >> (2 * run) & 3;
    low | high << 4
}

impl Packing for K6 {
    type Block = K6Block;

    fn pack(rows: &[Option<&[u8]>; GROUP], out: &mut K6Block) -> Result<(), usize> {
        *out = bytemuck::Zeroable::zeroed();
        for (row, data) in rows.iter().enumerate() {
            let Some(data) = data else { continue };
            let (half, lane) = (row / LANES, row % LANES);
            let factor = read_f16(data, FACTOR);
            if !is_finite_f16(factor) {
                return Err(row);
            }
            out.factors[half][lane] = factor;
            for sub in 0..SUBS {
                let codes: [u8; BLOCK] =
                    std::array::from_fn(|column| code(data, sub * BLOCK + column));
                let lows: [u8; BLOCK / 2] =
                    std::array::from_fn(|i| codes[i] & 15 | (codes[i + BLOCK / 2] & 15) << 4);
                place(&mut out.nibbles[sub], row, &lows);
                for (part, codes) in codes.as_chunks::<16>().0.iter().enumerate() {
                    let bits = |column: usize| {
                        u32::from(codes[column] >> 4) << (column / 2 * 2 + 16 * (column % 2))
                    };
                    out.highs[sub][part][half][lane] =
                        (0..16).map(bits).fold(0, |all, bits| all | bits);
                    out.scales[sub][part][half][lane] = data[SCALES + 2 * sub + part].cast_signed();
                }
            }
        }
        Ok(())
    }
}

impl Format for K6 {
    const SUBS: usize = SUBS;
    const PARTS: usize = 2;
    const ZERO_POINT: i32 = 32;
    const HAS_MINIMUM: bool = false;

    #[inline(always)]
    fn pair<S: Simd>(
        s: S,
        block: &K6Block,
        sub: usize,
        eighth: usize,
        pair: usize,
        half: usize,
    ) -> S::Int {
        let high = s.int_load(&block.highs[sub][eighth / 2][half]);
        let high = s.shr16(high, (2 * (eighth % 2 * 4 + pair)) as u8);
        let high = s.shl16(s.int_and(high, s.int_splat(0x0003_0003)), 4);
        s.int_or(
            nibble_pair(s, &block.nibbles[sub], eighth, pair, half),
            high,
        )
    }

    #[inline(always)]
    fn scale<S: Simd>(s: S, block: &K6Block, sub: usize, part: usize, half: usize) -> S::F32 {
        s.mul(
            s.load_f16(&block.factors[half]),
            s.load_i8(block.scales[sub][part][half]),
        )
    }

    #[inline(always)]
    fn minimum<S: Simd>(s: S, _block: &K6Block, _sub: usize, _half: usize) -> S::F32 {
        s.splat(0.0)
    }
}
