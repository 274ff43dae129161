//! Every operation gives the same bits from plain Rust and from AVX2.

use super::{Avx2, LANES, Portable, Simd};
use proptest::prelude::*;

/// Bits of the results of all operations on some inputs.
fn results<S: Simd>(s: S, floats: [[f32; LANES]; 2], words: [[u32; LANES]; 2]) -> Vec<u32> {
    let (first, second) = (s.load(&floats[0]), s.load(&floats[1]));
    let (left, right) = (s.int_load(&words[0]), s.int_load(&words[1]));
    let (some_floats, some_words) = (floats[0], words[0]);
    let mut bits = Vec::new();
    let mut keep = |value: S::F32| {
        let mut lanes = [0.0; LANES];
        s.store(value, &mut lanes);
        // Which NaN comes out is not defined; that one comes out is.
        bits.extend(lanes.map(|lane| {
            if lane.is_nan() {
                f32::NAN.to_bits()
            } else {
                lane.to_bits()
            }
        }));
    };
    for value in [
        s.add(first, second),
        s.sub(first, second),
        s.mul(first, second),
        s.div(first, second),
        s.max(first, second),
        s.min(first, second),
        s.abs(first),
        s.splat(some_floats[0]),
    ] {
        keep(value);
    }
    keep(s.mul_add(first, second, s.splat(floats[1][1])));
    keep(s.int_to_f32(left));
    let small = some_floats.map(|value| value.clamp(-4.0e6, 4.0e6));
    let small = small.map(|value| if value.is_nan() { 0.0 } else { value });
    keep(s.exp2_int(s.int_load(&some_words.map(|value| (value % 254).wrapping_sub(126)))));
    let halves = std::array::from_fn(|lane| some_words[lane] as u16);
    keep(s.load_f16(&halves));
    keep(s.load_bf16(&halves));
    keep(s.load_u8(some_words.map(|value| value as u8)));
    keep(s.load_i8(some_words.map(|value| value as i8)));
    let mut narrow = [0; LANES];
    s.store_f16(s.load(&small), &mut narrow);
    bits.extend(narrow.map(u32::from));
    bits.extend([
        s.sum(s.load(&small)).to_bits(),
        s.largest(s.load(&small)).to_bits(),
        s.int_sum(left).cast_unsigned(),
    ]);
    let integers = [
        s.int_and(left, right),
        s.int_or(left, right),
        s.int_add(left, right),
        s.pair_dot(left, right),
        s.byte_dot(left, right),
        s.add16(left, right),
        s.shr16(left, 4),
        s.shr16(left, 12),
        s.shl16(left, 8),
        s.sar16(left, 8),
        s.round(s.load(&small)),
        s.int_splat(some_words[3]),
    ];
    for value in integers {
        let mut lanes = [0; LANES];
        s.int_store(value, &mut lanes);
        bits.extend(lanes);
    }
    let mut pairs = [0; LANES / 2];
    s.store_pairs(
        s.int_load(&some_words.map(|value| i32::from(value as i16).cast_unsigned())),
        &mut pairs,
    );
    bits.extend(pairs);
    bits
}

fn any_float() -> impl Strategy<Value = f32> {
    prop_oneof![
        4 => -100.0_f32..100.0,
        2 => prop::num::f32::ANY,
        1 => prop::sample::select(vec![0.0, -0.0, 0.5, 1.5, 2.5, -0.5, 65504.0, 65520.0, 1e-8, f32::INFINITY, f32::NAN]),
    ]
}

proptest! {
    #[test]
    fn the_bits_are_the_same(
        a in prop::array::uniform8(any_float()),
        b in prop::array::uniform8(any_float()),
        i in prop::array::uniform8(any::<u32>()),
        j in prop::array::uniform8(any::<u32>()),
    ) {
        let Some(avx2) = Avx2::detect() else { return Ok(()) };
        prop_assert_eq!(results(Portable, [a, b], [i, j]), results(avx2, [a, b], [i, j]));
    }
}
