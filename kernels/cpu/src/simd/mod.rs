//! Vectors of 256 bits, once in plain Rust and once in AVX2, with the same bits from both.
//!
//! Kernels are written once against [`Simd`]. Every operation is defined to the last bit (fused
//! multiply-add rounds once, reductions follow one tree), so that the result of a kernel does not
//! depend on the implementation that ran it.

mod portable;
#[cfg(target_arch = "x86_64")]
mod x86;

pub(crate) use portable::Portable;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86::Avx2;

/// An expression for `half` 0 and 1, as an array. Not a closure: those are not always inlined into the
/// function that enables the instructions, and their vectors then become calls.
macro_rules! both {
    ($half:ident => $body:expr) => {
        [
            {
                let $half = 0;
                $body
            },
            {
                let $half = 1;
                $body
            },
        ]
    };
}
pub(crate) use both;

/// Floats in one vector.
pub(crate) const LANES: usize = 8;

/// Work that is compiled once for each instruction set.
pub(crate) trait Op {
    /// What it returns.
    type Output;

    /// Does the work with the vectors of `s`; must be `#[inline(always)]`.
    fn call<S: Simd>(self, s: S) -> Self::Output;
}

/// An instruction set. A value proves that the processor has it.
///
/// `F32` is 8 floats; `Int` is 256 bits read as 8 lanes of `u32`, `i32`, or pairs of `i16` (the low
/// half is the first of the pair).
pub(crate) trait Simd: Copy + Send + Sync + 'static {
    /// 8 floats.
    type F32: Copy;
    /// 8 integer lanes of 32 bits.
    type Int: Copy;

    /// Compiles `op` with this instruction set enabled and runs it.
    fn run<O: Op>(self, op: O) -> O::Output;

    fn splat(self, value: f32) -> Self::F32;
    fn load(self, values: &[f32; LANES]) -> Self::F32;
    fn store(self, values: Self::F32, out: &mut [f32; LANES]);
    fn add(self, a: Self::F32, b: Self::F32) -> Self::F32;
    fn sub(self, a: Self::F32, b: Self::F32) -> Self::F32;
    fn mul(self, a: Self::F32, b: Self::F32) -> Self::F32;
    fn div(self, a: Self::F32, b: Self::F32) -> Self::F32;
    /// `a * b + c`, rounded once.
    fn mul_add(self, a: Self::F32, b: Self::F32, c: Self::F32) -> Self::F32;
    /// `a > b ? a : b` in each lane; a NaN in either gives `b`.
    fn max(self, a: Self::F32, b: Self::F32) -> Self::F32;
    /// `a < b ? a : b` in each lane; a NaN in either gives `b`.
    fn min(self, a: Self::F32, b: Self::F32) -> Self::F32;
    fn abs(self, a: Self::F32) -> Self::F32;
    /// Sum as `((0+4)+(2+6)) + ((1+5)+(3+7))`.
    fn sum(self, a: Self::F32) -> f32;
    /// Largest lane in the order of [`Simd::sum`].
    fn largest(self, a: Self::F32) -> f32;
    /// Widens 8 halves.
    fn load_f16(self, values: &[u16; LANES]) -> Self::F32;
    /// Narrows to halves, ties to even.
    fn store_f16(self, values: Self::F32, out: &mut [u16; LANES]);
    /// Widens 8 bfloat16.
    fn load_bf16(self, values: &[u16; LANES]) -> Self::F32;
    /// Widens 8 unsigned bytes.
    fn load_u8(self, values: [u8; LANES]) -> Self::F32;
    /// Widens 8 signed bytes.
    fn load_i8(self, values: [i8; LANES]) -> Self::F32;

    fn int_splat(self, value: u32) -> Self::Int;
    fn int_load(self, values: &[u32; LANES]) -> Self::Int;
    fn int_store(self, values: Self::Int, out: &mut [u32; LANES]);
    fn int_and(self, a: Self::Int, b: Self::Int) -> Self::Int;
    fn int_or(self, a: Self::Int, b: Self::Int) -> Self::Int;
    /// Wrapping sum of 32-bit lanes.
    fn int_add(self, a: Self::Int, b: Self::Int) -> Self::Int;
    /// For each lane: product of the two first `i16` plus product of the two second.
    fn pair_dot(self, a: Self::Int, b: Self::Int) -> Self::Int;
    /// For each lane of 16 bits: product of the two low bytes plus product of the two high ones, those
    /// of `a` unsigned and those of `b` signed; the sum must fit.
    fn byte_dot(self, a: Self::Int, b: Self::Int) -> Self::Int;
    /// Wrapping sum of 16-bit lanes.
    fn add16(self, a: Self::Int, b: Self::Int) -> Self::Int;
    /// Logical shift right of 16-bit lanes by less than 16.
    fn shr16(self, a: Self::Int, by: u8) -> Self::Int;
    /// Shift left of 16-bit lanes by less than 16.
    fn shl16(self, a: Self::Int, by: u8) -> Self::Int;
    /// Arithmetic shift right of 16-bit lanes by less than 16.
    fn sar16(self, a: Self::Int, by: u8) -> Self::Int;
    /// `i32` lanes to floats, ties to even.
    fn int_to_f32(self, a: Self::Int) -> Self::F32;
    /// Nearest integers, ties to even, for |a| < 2^22.
    fn round(self, a: Self::F32) -> Self::Int;
    /// 2^n for lanes in -126 ..= 127.
    fn exp2_int(self, n: Self::Int) -> Self::F32;
    /// Packs 8 `i32` that fit into `i16` as 4 pairs.
    fn store_pairs(self, a: Self::Int, out: &mut [u32; LANES / 2]);
    /// Wrapping sum of the `i32` lanes.
    fn int_sum(self, a: Self::Int) -> i32;

    /// Asks for the cache line at `address` to be brought near; any address is allowed.
    fn prefetch(self, address: *const u8);
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests;
