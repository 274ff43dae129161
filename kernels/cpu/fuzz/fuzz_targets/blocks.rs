//! Matrices of arbitrary bytes: packed, or refused by name; a product with them has the same bits from
//! every instruction set, and is finite wherever weights and activations are small.

#![no_main]

use deepinfer_cpu::{Activations, Isa, Operators, PackedMatrix, RawMatrix, Storage};
use libfuzzer_sys::fuzz_target;

const STORAGES: [&str; 9] = [
    "f32", "f16", "bf16", "q4_0", "q4_1", "q8_0", "q4_k", "q5_k", "q6_k",
];

fuzz_target!(|input: (u8, u8, u8, bool, bool, Vec<u8>)| {
    let (storage, rows, columns, is_fast, is_interleaved, mut data) = input;
    let Some(storage) = Storage::from_name(STORAGES[storage as usize % STORAGES.len()]) else {
        return;
    };
    let rows = rows as usize % 40;
    let columns = (columns as usize % 9) * 32;
    let row_bytes = columns / storage.block_columns().max(1) * storage.block_bytes();
    // Most inputs get the length that is due, so that their contents matter.
    if data.len() % 8 != 0 {
        data.resize(rows * row_bytes, data.len() as u8);
    }
    let raw = RawMatrix {
        name: "fuzzed",
        storage,
        rows,
        columns,
        data: &data,
        num_interleaved_heads: if is_interleaved { 2 } else { 0 },
    };
    let matrix = match PackedMatrix::pack(&raw, 2) {
        Ok(matrix) => matrix,
        Err(error) => {
            assert!(error.to_string().contains("fuzzed"));
            return;
        }
    };
    let form = if is_fast { Activations::Fast } else { Activations::Exact };
    let x: Vec<f32> = (0..5 * columns).map(|i| ((i * 37 % 101) as f32 - 50.0) * 0.01).collect();
    let product = |isa: Isa| {
        let mut out = vec![f32::NAN; 5 * rows];
        let operators = Operators::new(isa, 2).expect("the instruction set was detected");
        operators.linear(&matrix, &x, form, &mut out).expect("lengths fit");
        out
    };
    let (portable, best) = (product(Isa::Portable), product(Isa::detect()));
    for (left, right) in portable.iter().zip(&best) {
        assert!(left.to_bits() == right.to_bits() || (left.is_nan() && right.is_nan()));
    }
});
