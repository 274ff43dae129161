//! The vectors in plain Rust, for every processor; the reference for all others.

use super::{LANES, Op, Simd};
use half::{bf16, f16};

/// Plain Rust; always available.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Portable;

#[inline(always)]
fn map<T: Copy, U: Copy + Default>(a: [T; LANES], f: impl Fn(T) -> U) -> [U; LANES] {
    std::array::from_fn(|i| f(a[i]))
}

#[inline(always)]
fn zip<T: Copy, U: Copy + Default>(
    a: [T; LANES],
    b: [T; LANES],
    f: impl Fn(T, T) -> U,
) -> [U; LANES] {
    std::array::from_fn(|i| f(a[i], b[i]))
}

#[inline(always)]
fn first(pair: u32) -> i16 {
    pair as i16
}

#[inline(always)]
fn second(pair: u32) -> i16 {
    (pair >> 16) as i16
}

#[inline(always)]
fn pair(first: i16, second: i16) -> u32 {
    u32::from(first.cast_unsigned()) | u32::from(second.cast_unsigned()) << 16
}

/// Adding and subtracting 1.5 * 2^23 leaves the nearest integer, ties to even, for |x| < 2^22.
const ROUNDER: f32 = 12_582_912.0;

impl Simd for Portable {
    type F32 = [f32; LANES];
    type Int = [u32; LANES];

    #[inline(always)]
    fn run<O: Op>(self, op: O) -> O::Output {
        op.call(self)
    }

    #[inline(always)]
    fn splat(self, value: f32) -> Self::F32 {
        [value; LANES]
    }
    #[inline(always)]
    fn load(self, values: &[f32; LANES]) -> Self::F32 {
        *values
    }
    #[inline(always)]
    fn store(self, values: Self::F32, out: &mut [f32; LANES]) {
        *out = values;
    }
    #[inline(always)]
    fn add(self, a: Self::F32, b: Self::F32) -> Self::F32 {
        zip(a, b, |a, b| a + b)
    }
    #[inline(always)]
    fn sub(self, a: Self::F32, b: Self::F32) -> Self::F32 {
        zip(a, b, |a, b| a - b)
    }
    #[inline(always)]
    fn mul(self, a: Self::F32, b: Self::F32) -> Self::F32 {
        zip(a, b, |a, b| a * b)
    }
    #[inline(always)]
    fn div(self, a: Self::F32, b: Self::F32) -> Self::F32 {
        zip(a, b, |a, b| a / b)
    }
    #[inline(always)]
    fn mul_add(self, a: Self::F32, b: Self::F32, c: Self::F32) -> Self::F32 {
        std::array::from_fn(|i| a[i].mul_add(b[i], c[i]))
    }
    #[inline(always)]
    fn max(self, a: Self::F32, b: Self::F32) -> Self::F32 {
        zip(a, b, |a, b| if a > b { a } else { b })
    }
    #[inline(always)]
    fn min(self, a: Self::F32, b: Self::F32) -> Self::F32 {
        zip(a, b, |a, b| if a < b { a } else { b })
    }
    #[inline(always)]
    fn abs(self, a: Self::F32) -> Self::F32 {
        map(a, f32::abs)
    }
    #[inline(always)]
    fn sum(self, a: Self::F32) -> f32 {
        let half: [f32; 4] = std::array::from_fn(|i| a[i] + a[i + 4]);
        (half[0] + half[2]) + (half[1] + half[3])
    }
    #[inline(always)]
    fn largest(self, a: Self::F32) -> f32 {
        let max = |a: f32, b: f32| if a > b { a } else { b };
        let half: [f32; 4] = std::array::from_fn(|i| max(a[i], a[i + 4]));
        max(max(half[0], half[2]), max(half[1], half[3]))
    }
    #[inline(always)]
    fn load_f16(self, values: &[u16; LANES]) -> Self::F32 {
        map(*values, |bits| f16::from_bits(bits).to_f32())
    }
    #[inline(always)]
    fn store_f16(self, values: Self::F32, out: &mut [u16; LANES]) {
        *out = map(values, |value| f16::from_f32(value).to_bits());
    }
    #[inline(always)]
    fn load_bf16(self, values: &[u16; LANES]) -> Self::F32 {
        map(*values, |bits| bf16::from_bits(bits).to_f32())
    }
    #[inline(always)]
    fn load_u8(self, values: [u8; LANES]) -> Self::F32 {
        map(values, f32::from)
    }
    #[inline(always)]
    fn load_i8(self, values: [i8; LANES]) -> Self::F32 {
        map(values, f32::from)
    }

    #[inline(always)]
    fn int_splat(self, value: u32) -> Self::Int {
        [value; LANES]
    }
    #[inline(always)]
    fn int_load(self, values: &[u32; LANES]) -> Self::Int {
        *values
    }
    #[inline(always)]
    fn int_store(self, values: Self::Int, out: &mut [u32; LANES]) {
        *out = values;
    }
    #[inline(always)]
    fn int_and(self, a: Self::Int, b: Self::Int) -> Self::Int {
        zip(a, b, |a, b| a & b)
    }
    #[inline(always)]
    fn int_or(self, a: Self::Int, b: Self::Int) -> Self::Int {
        zip(a, b, |a, b| a | b)
    }
    #[inline(always)]
    fn int_add(self, a: Self::Int, b: Self::Int) -> Self::Int {
        zip(a, b, u32::wrapping_add)
    }
    #[inline(always)]
    fn pair_dot(self, a: Self::Int, b: Self::Int) -> Self::Int {
        zip(a, b, |a, b| {
            let low = i32::from(first(a)) * i32::from(first(b));
            let high = i32::from(second(a)) * i32::from(second(b));
            low.wrapping_add(high).cast_unsigned()
        })
    }
    #[inline(always)]
    fn byte_dot(self, a: Self::Int, b: Self::Int) -> Self::Int {
        zip(a, b, |a, b| {
            let (a, b) = (a.to_le_bytes(), b.to_le_bytes());
            let product = |i: usize| i32::from(a[i]) * i32::from(b[i].cast_signed());
            let sum = |i: usize| (product(i) + product(i + 1)).clamp(-32768, 32767) as i16;
            pair(sum(0), sum(2))
        })
    }
    #[inline(always)]
    fn add16(self, a: Self::Int, b: Self::Int) -> Self::Int {
        zip(a, b, |a, b| {
            pair(
                first(a).wrapping_add(first(b)),
                second(a).wrapping_add(second(b)),
            )
        })
    }
    #[inline(always)]
    fn shr16(self, a: Self::Int, by: u8) -> Self::Int {
        let mask = (0xFFFF_u32 >> by) * 0x1_0001;
        map(a, |a| (a >> by) & mask)
    }
    #[inline(always)]
    fn shl16(self, a: Self::Int, by: u8) -> Self::Int {
        map(a, |a| pair(first(a) << by, second(a) << by))
    }
    #[inline(always)]
    fn sar16(self, a: Self::Int, by: u8) -> Self::Int {
        map(a, |a| pair(first(a) >> by, second(a) >> by))
    }
    #[inline(always)]
    fn int_to_f32(self, a: Self::Int) -> Self::F32 {
        #[expect(
            clippy::cast_precision_loss,
            reason = "the operation is defined as rounding to nearest"
        )]
        map(a, |a| a.cast_signed() as f32)
    }
    #[inline(always)]
    fn round(self, a: Self::F32) -> Self::Int {
        map(a, |a| (((a + ROUNDER) - ROUNDER) as i32).cast_unsigned())
    }
    #[inline(always)]
    fn exp2_int(self, n: Self::Int) -> Self::F32 {
        map(n, |n| f32::from_bits(n.wrapping_add(127) << 23))
    }
    #[inline(always)]
    fn store_pairs(self, a: Self::Int, out: &mut [u32; LANES / 2]) {
        *out = std::array::from_fn(|i| pair(first(a[2 * i]), first(a[2 * i + 1])));
    }
    #[inline(always)]
    fn int_sum(self, a: Self::Int) -> i32 {
        a.into_iter().fold(0, u32::wrapping_add).cast_signed()
    }

    #[inline(always)]
    fn prefetch(self, _address: *const u8) {}
}
