//! Every operation gives the same bits from plain Rust and from AVX2.

use super::{Avx2, LANES, Portable, Simd};
use proptest::prelude::*;

/// Bits of the results of all operations on some inputs.
fn results<S: Simd>(
    s: S,
    a: [f32; LANES],
    b: [f32; LANES],
    i: [u32; LANES],
    j: [u32; LANES],
) -> Vec<u32> {
    let (x, y, n, m) = (s.load(&a), s.load(&b), s.int_load(&i), s.int_load(&j));
    let mut bits = Vec::new();
    let mut floats = |value: S::F32| {
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
        s.add(x, y),
        s.sub(x, y),
        s.mul(x, y),
        s.div(x, y),
        s.max(x, y),
        s.min(x, y),
        s.abs(x),
        s.splat(a[0]),
    ] {
        floats(value);
    }
    floats(s.mul_add(x, y, s.splat(b[1])));
    floats(s.int_to_f32(n));
    let small = a.map(|value| value.clamp(-4.0e6, 4.0e6));
    let small = small.map(|value| if value.is_nan() { 0.0 } else { value });
    floats(s.exp2_int(s.int_load(&i.map(|value| (value % 254).wrapping_sub(126)))));
    let halves = std::array::from_fn(|lane| i[lane] as u16);
    floats(s.load_f16(&halves));
    let mut narrow = [0; LANES];
    s.store_f16(s.load(&small), &mut narrow);
    bits.extend(narrow.map(u32::from));
    bits.extend([
        s.sum(s.load(&small)).to_bits(),
        s.largest(s.load(&small)).to_bits(),
        s.int_sum(n).cast_unsigned(),
    ]);
    let integers = [
        s.int_and(n, m),
        s.int_add(n, m),
        s.pair_dot(n, m),
        s.shr16::<4>(n),
        s.shr16::<12>(n),
        s.shl16::<8>(n),
        s.sar16::<8>(n),
        s.round(s.load(&small)),
        s.int_splat(i[3]),
    ];
    for value in integers {
        let mut lanes = [0; LANES];
        s.int_store(value, &mut lanes);
        bits.extend(lanes);
    }
    let mut pairs = [0; LANES / 2];
    s.store_pairs(
        s.int_load(&i.map(|value| i32::from(value as i16).cast_unsigned())),
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
        prop_assert_eq!(results(Portable, a, b, i, j), results(avx2, a, b, i, j));
    }
}
