//! Floats to the quantised activations of [`crate::activation`].

use crate::activation::{ByteCodes, QuantRowMut};
use crate::format::BLOCK;
use crate::format::PAIRS;
use crate::simd::{LANES, Op, Simd};

/// Blocks whose numbers are all smaller than this count as zeros: their scale could not be inverted.
const SMALLEST: f32 = 1e-30;

pub(super) struct Quantise<'a> {
    pub(super) values: &'a [f32],
    pub(super) out: QuantRowMut<'a>,
}

impl Op for Quantise<'_> {
    type Output = ();

    #[inline(always)]
    fn call<S: Simd>(self, s: S) {
        let QuantRowMut {
            values,
            pairs,
            bytes,
            max_code,
            scales,
            sums,
            part_sums,
        } = self.out;
        if !values.is_empty() {
            values.copy_from_slice(self.values);
        }
        let (blocks, _) = self.values.as_chunks::<BLOCK>();
        let mut bytes = bytes.iter_mut();
        let outputs = pairs
            .iter_mut()
            .zip(scales)
            .zip(sums.iter_mut().zip(part_sums));
        for (block, ((pairs, scale), (sum, parts))) in blocks.iter().zip(outputs) {
            let (vectors, _) = block.as_chunks::<LANES>();
            let x = [
                s.load(&vectors[0]),
                s.load(&vectors[1]),
                s.load(&vectors[2]),
                s.load(&vectors[3]),
            ];
            let mut largest = s.abs(x[0]);
            let mut poison = s.mul(x[0], s.splat(0.0));
            for x in &x[1..] {
                largest = s.max(s.abs(*x), largest);
                poison = s.mul_add(*x, s.splat(0.0), poison);
            }
            let largest = s.largest(largest);
            let poison = s.sum(poison);
            let is_usable = largest > SMALLEST && poison == 0.0;
            let factor = s.splat(if is_usable { max_code / largest } else { 0.0 });
            let mut codes = [s.int_splat(0); 4];
            if is_usable {
                for (codes, x) in codes.iter_mut().zip(x) {
                    *codes = s.round(s.mul(x, factor));
                }
            }
            let (quarters, _) = pairs.as_chunks_mut::<{ LANES / 2 }>();
            for (quarter, codes) in quarters.iter_mut().zip(codes) {
                s.store_pairs(codes, quarter);
            }
            if let Some(bytes) = bytes.next() {
                *bytes = narrow(pairs);
            }
            *parts = [
                s.int_sum(s.int_add(codes[0], codes[1])),
                s.int_sum(s.int_add(codes[2], codes[3])),
            ];
            *scale = largest / max_code + poison;
            #[expect(
                clippy::cast_precision_loss,
                reason = "32 codes of 15 bits sum to less than 2^24"
            )]
            let total = (parts[0] + parts[1]) as f32;
            *sum = *scale * total;
        }
    }
}

/// The pairs of a block, whose codes fit into 8 bits, as bytes.
#[inline(always)]
fn narrow(pairs: &[u32; PAIRS]) -> ByteCodes {
    /// The low byte of each code.
    const LOW: u32 = 0x00FF_00FF;
    std::array::from_fn(|eighth| {
        std::array::from_fn(|word| {
            let (first, second) = (pairs[4 * eighth + word], pairs[4 * eighth + 2 + word]);
            first & LOW | (second & LOW) << 8
        })
    })
}
