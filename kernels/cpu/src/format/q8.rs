//! 8-bit weights with a half-precision scale for 32 columns: `Q8_0`.

use super::{BLOCK, Format, GROUP, Packing, is_finite_f16, read_f16};
use crate::simd::{LANES, Simd};

/// Codes and scales of 16 rows by 32 columns: weight = scale * code.
///
/// `[quarter][half][row]` holds 4 columns of one row; their bytes from the lowest up are columns
/// 0, 2, 1, 3, so that shifts of the 16-bit halves give the pairs (0, 1) and (2, 3).
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub(crate) struct Q8Block {
    bytes: [[[u32; LANES]; 2]; 8],
    scales: [[u16; LANES]; 2],
}

/// `Q8_0`.
pub(crate) struct Q8;

impl Packing for Q8 {
    type Block = Q8Block;

    fn pack(rows: &[Option<&[u8]>; GROUP], out: &mut Q8Block) -> Result<(), usize> {
        *out = bytemuck::Zeroable::zeroed();
        for (row, data) in rows.iter().enumerate() {
            let Some(data) = data else { continue };
            let scale = read_f16(data, 0);
            if !is_finite_f16(scale) {
                return Err(row);
            }
            out.scales[row / LANES][row % LANES] = scale;
            for (lanes, codes) in out
                .bytes
                .iter_mut()
                .zip(data[2..2 + BLOCK].as_chunks::<4>().0)
            {
                lanes[row / LANES][row % LANES] =
                    u32::from_le_bytes([codes[0], codes[2], codes[1], codes[3]]);
            }
        }
        Ok(())
    }
}

impl Format for Q8 {
    const SUBS: usize = 1;
    const PARTS: usize = 1;
    const ZERO_POINT: i32 = 0;
    const HAS_MINIMUM: bool = false;

    #[inline(always)]
    fn pair<S: Simd>(
        s: S,
        block: &Q8Block,
        _sub: usize,
        eighth: usize,
        pair: usize,
        half: usize,
    ) -> S::Int {
        let words = s.int_load(&block.bytes[2 * eighth + pair / 2][half]);
        if pair & 1 == 0 {
            s.sar16(s.shl16(words, 8), 8)
        } else {
            s.sar16(words, 8)
        }
    }

    #[inline(always)]
    fn scale<S: Simd>(s: S, block: &Q8Block, _sub: usize, _part: usize, half: usize) -> S::F32 {
        s.load_f16(&block.scales[half])
    }

    #[inline(always)]
    fn minimum<S: Simd>(s: S, _block: &Q8Block, _sub: usize, _half: usize) -> S::F32 {
        s.splat(0.0)
    }
}
