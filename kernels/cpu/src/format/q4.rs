//! 4-bit weights with a half-precision scale (and minimum) for 32 columns: `Q4_1` and `Q4_0`.

use super::{BLOCK, Format, GROUP, Packing, is_finite_f16, read_f16};
use crate::simd::{LANES, Simd};

/// Codes of 16 rows by 32 columns.
///
/// `[eighth][half][row]` holds 8 columns of one row: the low 16 bits columns 0, 2, 4, 6 from the
/// lowest bits up, the high 16 bits columns 1, 3, 5, 7, so that a shift by `4 * pair` and a mask
/// give the pair of columns `2 * pair` and `2 * pair + 1`.
pub(super) type Nibbles = [[[u32; LANES]; 2]; 4];

/// A block of `Q4_1`: weight = scale * code + minimum.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub(crate) struct OffsetBlock {
    nibbles: Nibbles,
    scales: [[u16; LANES]; 2],
    minima: [[u16; LANES]; 2],
}

/// A block of `Q4_0`: weight = scale * (code - 8).
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub(crate) struct SymmetricBlock {
    nibbles: Nibbles,
    scales: [[u16; LANES]; 2],
}

/// `Q4_1`.
pub(crate) struct Q4Offset;
/// `Q4_0`.
pub(crate) struct Q4Symmetric;

/// Places the codes of one row: byte i of `bytes` holds column i low and column i + 16 high.
pub(super) fn place(nibbles: &mut Nibbles, row: usize, bytes: &[u8]) {
    let code = |column: usize| {
        u32::from(if column < 16 {
            bytes[column] & 15
        } else {
            bytes[column - 16] >> 4
        })
    };
    for (eighth, lanes) in nibbles.iter_mut().enumerate() {
        let at = |column: usize| code(8 * eighth + column);
        let even = at(0) | at(2) << 4 | at(4) << 8 | at(6) << 12;
        let odd = at(1) | at(3) << 4 | at(5) << 8 | at(7) << 12;
        lanes[row / LANES][row % LANES] = even | odd << 16;
    }
}

#[inline(always)]
pub(super) fn nibble_pair<S: Simd>(
    s: S,
    nibbles: &Nibbles,
    eighth: usize,
    pair: usize,
    half: usize,
) -> S::Int {
    let words = s.int_load(&nibbles[eighth][half]);
    let mask = s.int_splat(0x000F_000F);
    match pair {
        0 => s.int_and(words, mask),
        1 => s.int_and(s.shr16(words, 4), mask),
        2 => s.int_and(s.shr16(words, 8), mask),
        _ => s.shr16(words, 12),
    }
}

/// The codes of an eighth as bytes.
#[inline(always)]
pub(super) fn nibble_bytes<S: Simd>(
    s: S,
    nibbles: &Nibbles,
    eighth: usize,
    half: usize,
) -> [S::Int; 2] {
    let words = s.int_load(&nibbles[eighth][half]);
    let mask = s.int_splat(0x0F0F_0F0F);
    [s.int_and(words, mask), s.int_and(s.shr16(words, 4), mask)]
}

impl Packing for Q4Offset {
    type Block = OffsetBlock;

    fn pack(rows: &[Option<&[u8]>; GROUP], out: &mut OffsetBlock) -> Result<(), usize> {
        *out = bytemuck::Zeroable::zeroed();
        for (row, data) in rows.iter().enumerate() {
            let Some(data) = data else { continue };
            let (scale, minimum) = (read_f16(data, 0), read_f16(data, 2));
            if !is_finite_f16(scale) || !is_finite_f16(minimum) {
                return Err(row);
            }
            out.scales[row / LANES][row % LANES] = scale;
            out.minima[row / LANES][row % LANES] = minimum;
            place(&mut out.nibbles, row, &data[4..4 + BLOCK / 2]);
        }
        Ok(())
    }
}

impl Format for Q4Offset {
    const SUBS: usize = 1;
    const PARTS: usize = 1;
    const ZERO_POINT: i32 = 0;
    const HAS_MINIMUM: bool = true;
    const IS_NIBBLES: bool = true;

    #[inline(always)]
    fn bytes<S: Simd>(
        s: S,
        block: &OffsetBlock,
        _sub: usize,
        eighth: usize,
        half: usize,
    ) -> [S::Int; 2] {
        nibble_bytes(s, &block.nibbles, eighth, half)
    }

    #[inline(always)]
    fn pair<S: Simd>(
        s: S,
        block: &OffsetBlock,
        _sub: usize,
        eighth: usize,
        pair: usize,
        half: usize,
    ) -> S::Int {
        nibble_pair(s, &block.nibbles, eighth, pair, half)
    }

    #[inline(always)]
    fn scale<S: Simd>(s: S, block: &OffsetBlock, _sub: usize, _part: usize, half: usize) -> S::F32 {
        s.load_f16(&block.scales[half])
    }

    #[inline(always)]
    fn minimum<S: Simd>(s: S, block: &OffsetBlock, _sub: usize, half: usize) -> S::F32 {
        s.load_f16(&block.minima[half])
    }
}

impl Packing for Q4Symmetric {
    type Block = SymmetricBlock;

    fn pack(rows: &[Option<&[u8]>; GROUP], out: &mut SymmetricBlock) -> Result<(), usize> {
        *out = bytemuck::Zeroable::zeroed();
        for (row, data) in rows.iter().enumerate() {
            let Some(data) = data else { continue };
            let scale = read_f16(data, 0);
            if !is_finite_f16(scale) {
                return Err(row);
            }
            out.scales[row / LANES][row % LANES] = scale;
            place(&mut out.nibbles, row, &data[2..2 + BLOCK / 2]);
        }
        Ok(())
    }
}

impl Format for Q4Symmetric {
    const SUBS: usize = 1;
    const PARTS: usize = 1;
    const ZERO_POINT: i32 = 8;
    const HAS_MINIMUM: bool = false;
    const IS_NIBBLES: bool = true;

    #[inline(always)]
    fn bytes<S: Simd>(
        s: S,
        block: &SymmetricBlock,
        _sub: usize,
        eighth: usize,
        half: usize,
    ) -> [S::Int; 2] {
        nibble_bytes(s, &block.nibbles, eighth, half)
    }

    #[inline(always)]
    fn pair<S: Simd>(
        s: S,
        block: &SymmetricBlock,
        _sub: usize,
        eighth: usize,
        pair: usize,
        half: usize,
    ) -> S::Int {
        nibble_pair(s, &block.nibbles, eighth, pair, half)
    }

    #[inline(always)]
    fn scale<S: Simd>(
        s: S,
        block: &SymmetricBlock,
        _sub: usize,
        _part: usize,
        half: usize,
    ) -> S::F32 {
        s.load_f16(&block.scales[half])
    }

    #[inline(always)]
    fn minimum<S: Simd>(s: S, _block: &SymmetricBlock, _sub: usize, _half: usize) -> S::F32 {
        s.splat(0.0)
    }
}
