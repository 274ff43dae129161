//! Norms, activations, rotation, and the choice of the best logit.

use super::{Best, math};
use crate::simd::{LANES, Op, Simd};

pub(super) struct RmsNorm<'a> {
    pub(super) x: &'a [f32],
    pub(super) weight: &'a [f32],
    pub(super) eps: f32,
    pub(super) out: &'a mut [f32],
}

impl Op for RmsNorm<'_> {
    type Output = ();

    #[inline(always)]
    fn call<S: Simd>(self, s: S) {
        let mut sums = [s.splat(0.0); 4];
        for vectors in self.x.as_chunks::<LANES>().0.chunks(sums.len()) {
            for (sum, vector) in sums.iter_mut().zip(vectors) {
                let x = s.load(vector);
                *sum = s.mul_add(x, x, *sum);
            }
        }
        let sum = s.sum(s.add(s.add(sums[0], sums[1]), s.add(sums[2], sums[3])));
        #[expect(
            clippy::cast_precision_loss,
            reason = "a model's width is far below 2^24"
        )]
        let factor = s.splat(1.0 / (sum / self.x.len() as f32 + self.eps).sqrt());
        let inputs = self
            .x
            .as_chunks::<LANES>()
            .0
            .iter()
            .zip(self.weight.as_chunks::<LANES>().0);
        for ((x, weight), out) in inputs.zip(self.out.as_chunks_mut::<LANES>().0) {
            s.store(s.mul(s.mul(s.load(x), factor), s.load(weight)), out);
        }
    }
}

pub(super) struct SiluAndMul<'a> {
    pub(super) gate: &'a [f32],
    pub(super) up: &'a [f32],
    pub(super) out: &'a mut [f32],
}

impl Op for SiluAndMul<'_> {
    type Output = ();

    #[inline(always)]
    fn call<S: Simd>(self, s: S) {
        let inputs = self
            .gate
            .as_chunks::<LANES>()
            .0
            .iter()
            .zip(self.up.as_chunks::<LANES>().0);
        for ((gate, up), out) in inputs.zip(self.out.as_chunks_mut::<LANES>().0) {
            let gate = s.load(gate);
            let divisor = s.add(s.splat(1.0), math::exp(s, s.sub(s.splat(0.0), gate)));
            s.store(s.mul(s.div(gate, divisor), s.load(up)), out);
        }
    }
}

pub(super) struct Add<'a> {
    pub(super) x: &'a mut [f32],
    pub(super) y: &'a [f32],
}

impl Op for Add<'_> {
    type Output = ();

    #[inline(always)]
    fn call<S: Simd>(self, s: S) {
        for (x, y) in self
            .x
            .as_chunks_mut::<LANES>()
            .0
            .iter_mut()
            .zip(self.y.as_chunks::<LANES>().0)
        {
            s.store(s.add(s.load(x), s.load(y)), x);
        }
    }
}

pub(super) struct Rotate<'a> {
    pub(super) head: &'a mut [f32],
    pub(super) cosines: &'a [f32],
    pub(super) sines: &'a [f32],
    pub(super) factor: f32,
}

impl Op for Rotate<'_> {
    type Output = ();

    #[inline(always)]
    fn call<S: Simd>(self, s: S) {
        let (first, second) = self.head.split_at_mut(self.cosines.len());
        let halves = first
            .as_chunks_mut::<LANES>()
            .0
            .iter_mut()
            .zip(second.as_chunks_mut::<LANES>().0);
        let angles = self
            .cosines
            .as_chunks::<LANES>()
            .0
            .iter()
            .zip(self.sines.as_chunks::<LANES>().0);
        let factor = s.splat(self.factor);
        for ((first, second), (cosine, sine)) in halves.zip(angles) {
            let (a, b, cosine, sine) =
                (s.load(first), s.load(second), s.load(cosine), s.load(sine));
            let turned_a = s.sub(s.mul(a, cosine), s.mul(b, sine));
            let turned_b = s.add(s.mul(b, cosine), s.mul(a, sine));
            s.store(s.mul(turned_a, factor), first);
            s.store(s.mul(turned_b, factor), second);
        }
    }
}

pub(super) struct Narrow<'a> {
    pub(super) values: &'a [f32],
    pub(super) out: &'a mut [u16],
}

impl Op for Narrow<'_> {
    type Output = ();

    #[inline(always)]
    fn call<S: Simd>(self, s: S) {
        for (values, out) in self
            .values
            .as_chunks::<LANES>()
            .0
            .iter()
            .zip(self.out.as_chunks_mut::<LANES>().0)
        {
            s.store_f16(s.load(values), out);
        }
    }
}

pub(super) struct NarrowToBytes<'a> {
    pub(super) values: &'a [f32],
    pub(super) out: &'a mut [i8],
}

impl Op for NarrowToBytes<'_> {
    type Output = f32;

    #[inline(always)]
    fn call<S: Simd>(self, s: S) -> f32 {
        /// Rows whose numbers are all smaller than this count as zeros: their scale could not be inverted.
        const SMALLEST: f32 = 1e-30;
        const MAX_CODE: f32 = 127.0;
        let (vectors, _) = self.values.as_chunks::<LANES>();
        let (mut largest, mut poison) = (s.splat(0.0), s.splat(0.0));
        for vector in vectors {
            let x = s.load(vector);
            largest = s.max(s.abs(x), largest);
            poison = s.mul_add(x, s.splat(0.0), poison);
        }
        let (largest, poison) = (s.largest(largest), s.sum(poison));
        let is_usable = largest > SMALLEST && poison == 0.0;
        if !is_usable {
            self.out.fill(0);
            return poison;
        }
        let factor = s.splat(MAX_CODE / largest);
        for (vector, out) in vectors.iter().zip(self.out.as_chunks_mut::<LANES>().0) {
            let mut codes = [0; LANES];
            s.int_store(s.round(s.mul(s.load(vector), factor)), &mut codes);
            *out = codes.map(|code| code as i8);
        }
        largest / MAX_CODE
    }
}

pub(super) struct Argmax<'a> {
    pub(super) logits: &'a [f32],
}

impl Op for Argmax<'_> {
    type Output = Best;

    #[inline(always)]
    fn call<S: Simd>(self, s: S) -> Best {
        let mut best = Best::NONE;
        let mut poison = s.splat(0.0);
        let (vectors, rest) = self.logits.as_chunks::<LANES>();
        let mut consider = |index: usize, value: f32| {
            if value > best.value {
                (best.index, best.value) = (index, value);
            }
        };
        let mut bound = f32::NEG_INFINITY;
        for (at, vector) in vectors.iter().enumerate() {
            let logits = s.load(vector);
            poison = s.mul_add(logits, s.splat(0.0), poison);
            let largest = s.largest(logits);
            if largest > bound {
                bound = largest;
                vector
                    .iter()
                    .enumerate()
                    .for_each(|(lane, value)| consider(at * LANES + lane, *value));
            }
        }
        let mut rest_poison = 0.0;
        for (lane, value) in rest.iter().enumerate() {
            rest_poison += value * 0.0;
            consider(vectors.len() * LANES + lane, *value);
        }
        best.all_finite = s.sum(poison) == 0.0 && rest_poison == 0.0;
        best
    }
}

pub(super) struct ExpSum<'a> {
    pub(super) values: &'a [f32],
    pub(super) origin: f32,
}

impl Op for ExpSum<'_> {
    type Output = f64;

    #[inline(always)]
    fn call<S: Simd>(self, s: S) -> f64 {
        /// Vectors summed in single precision before they join the total.
        const RUN: usize = 16;
        let origin = s.splat(self.origin);
        let mut total = 0.0;
        let (vectors, rest) = self.values.as_chunks::<LANES>();
        for run in vectors.chunks(RUN) {
            let mut sum = s.splat(0.0);
            for vector in run {
                sum = s.add(sum, math::exp(s, s.sub(s.load(vector), origin)));
            }
            total += f64::from(s.sum(sum));
        }
        let mut last = [f32::NEG_INFINITY; LANES];
        last[..rest.len()].copy_from_slice(rest);
        let mut powers = [0.0; LANES];
        s.store(math::exp(s, s.sub(s.load(&last), origin)), &mut powers);
        total
            + powers[..rest.len()]
                .iter()
                .map(|power| f64::from(*power))
                .sum::<f64>()
    }
}
