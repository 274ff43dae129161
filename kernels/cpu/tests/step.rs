//! Whole steps of a small model through the public interface; also what sanitizers run.

use deepinfer_cpu::{
    Activations, Isa, KvStorage, ModelShape, RawTensor, Result, Runner, RunnerOptions, StepInput,
    WeightsBuilder,
};
use proptest::prelude::*;
use std::sync::Arc;

const VOCAB: usize = 40;
const HIDDEN: usize = 64;
const INNER: usize = 96;
const HEADS: usize = 4;
const KV_HEADS: usize = 2;
const HEAD_DIM: usize = 16;
const LAYERS: usize = 2;
const BLOCK_SIZE: usize = 16;
const BLOCKS_PER_SEQUENCE: u32 = 24;

type Form = (Activations, KvStorage);
const FORMS: [Form; 4] = [
    (Activations::Exact, KvStorage::F16),
    (Activations::Fast, KvStorage::F16),
    (Activations::Exact, KvStorage::Int8),
    (Activations::Fast, KvStorage::Int8),
];

/// A reproducible stream of bytes.
struct Noise(u64);

impl Noise {
    fn byte(&mut self) -> u8 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 56) as u8
    }

    /// Blocks of `Q8_0` or `Q4_1` whose scales are small powers of two.
    fn blocks(&mut self, storage: &str, rows: usize, columns: usize) -> Vec<u8> {
        let mut data = Vec::new();
        for _ in 0..rows * columns / 32 {
            let (scale, codes): (&[u8], usize) = match storage {
                "q8_0" => (&[0, 0x10], 32),
                _ => (&[0, 0x20, 0, 0xA8], 16),
            };
            data.extend_from_slice(scale);
            data.extend((0..codes).map(|_| self.byte()));
        }
        data
    }
}

fn shape() -> ModelShape {
    ModelShape {
        vocab_size: VOCAB,
        hidden_size: HIDDEN,
        intermediate_size: INNER,
        num_layers: LAYERS,
        num_qo_heads: HEADS,
        num_kv_heads: KV_HEADS,
        head_dim: HEAD_DIM,
        rms_norm_eps: 1e-5,
        rotary_frequencies: std::iter::successors(Some(1.0), |frequency| Some(frequency * 0.5))
            .take(HEAD_DIM / 2)
            .collect(),
        sliding_window: None,
    }
}

fn runner(num_threads: usize, isa: Isa, (activations, kv_storage): Form) -> Result<Runner> {
    let mut noise = Noise(7);
    let mut builder = WeightsBuilder::new(shape(), num_threads)?;
    let mut insert = |name: &str, sizes: &[usize]| {
        let (storage, data) = match *sizes {
            [rows, columns] => {
                let storage = if name.contains("down") || name.contains("embed") {
                    "q8_0"
                } else {
                    "q4_1"
                };
                (storage, noise.blocks(storage, rows, columns))
            }
            _ => ("f32", 1.0_f32.to_le_bytes().repeat(sizes[0])),
        };
        let raw = RawTensor {
            name,
            storage,
            shape: sizes,
            data: &data,
            num_interleaved_heads: 0,
        };
        builder.insert(&raw)
    };
    insert("embed_tokens", &[VOCAB, HIDDEN])?;
    insert("final_norm", &[HIDDEN])?;
    for layer in 0..LAYERS {
        let mut insert =
            |field: &str, sizes: &[usize]| insert(&format!("layers.{layer}.{field}"), sizes);
        insert("attn_norm", &[HIDDEN])?;
        insert("mlp_norm", &[HIDDEN])?;
        insert("q_proj", &[HEADS * HEAD_DIM, HIDDEN])?;
        insert("k_proj", &[KV_HEADS * HEAD_DIM, HIDDEN])?;
        insert("v_proj", &[KV_HEADS * HEAD_DIM, HIDDEN])?;
        insert("o_proj", &[HIDDEN, HEADS * HEAD_DIM])?;
        insert("gate_proj", &[INNER, HIDDEN])?;
        insert("up_proj", &[INNER, HIDDEN])?;
        insert("down_proj", &[HIDDEN, INNER])?;
    }
    let options = RunnerOptions {
        num_blocks: 48,
        block_size: BLOCK_SIZE,
        num_threads: Some(num_threads),
        isa,
        activations,
        kv_storage,
    };
    Runner::new(Arc::new(builder.finish()?), options)
}

/// Bits of the logits of every token of two sequences, cut into the given steps.
fn logits(mut runner: Runner, steps: &[(usize, usize)]) -> Result<[Vec<u32>; 2]> {
    let mut bits = [Vec::new(), Vec::new()];
    let mut lengths = [0_u32; 2];
    for &(first, second) in steps {
        let counts = [first as u32, second as u32];
        let present: Vec<usize> = (0..2).filter(|sequence| counts[*sequence] > 0).collect();
        let mut plan: [Vec<u32>; 5] = [vec![], vec![0], vec![], vec![0], vec![]];
        for &sequence in &present {
            let tokens = (0..counts[sequence])
                .map(|i| ((lengths[sequence] + i) * 7 + sequence as u32) % VOCAB as u32);
            plan[0].extend(tokens);
            plan[1].push(plan[0].len() as u32);
            plan[2].push(lengths[sequence]);
            plan[4].extend((0..BLOCKS_PER_SEQUENCE).map(|block| 2 * block + sequence as u32));
            plan[3].push(plan[4].len() as u32);
        }
        let logit_rows: Vec<u32> = (0..plan[0].len() as u32).collect();
        let mut rows = vec![f32::NAN; logit_rows.len() * VOCAB];
        let [
            token_ids,
            row_starts,
            first_positions,
            table_starts,
            block_ids,
        ] = &plan;
        let input = StepInput {
            token_ids,
            row_starts,
            first_positions,
            table_starts,
            block_ids,
            logit_rows: &logit_rows,
            samples: &[],
            block_copies: &[],
        };
        let best = runner.step(&input, &mut rows)?.best;
        assert!(best.iter().all(Option::is_some));
        for (index, &sequence) in present.iter().enumerate() {
            let range = row_starts[index] as usize * VOCAB..row_starts[index + 1] as usize * VOCAB;
            bits[sequence].extend(rows[range].iter().map(|logit| logit.to_bits()));
            lengths[sequence] += counts[sequence];
        }
    }
    Ok(bits)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 16 }))]
    #[test]
    fn bits_depend_on_neither_steps_nor_threads_nor_instructions(
        steps in prop::collection::vec((0_usize..12, 0_usize..12).prop_filter("some rows", |(a, b)| a + b > 0), 1..6),
        threads in 1_usize..4,
        form in prop::sample::select(FORMS.to_vec()),
    ) {
        let totals = steps.iter().fold((0, 0), |sum, step| (sum.0 + step.0, sum.1 + step.1));
        let expected = logits(runner(1, Isa::Portable, form)?, &[totals])?;
        prop_assert_eq!(&logits(runner(threads, Isa::Portable, form)?, &steps)?, &expected);
        prop_assert_eq!(&logits(runner(threads, Isa::detect(), form)?, &steps)?, &expected);
    }
}

#[test]
fn long_contexts_spread_over_threads() -> Result<()> {
    let form = (Activations::Exact, KvStorage::F16);
    let expected = logits(runner(1, Isa::detect(), form)?, &[(300, 40)])?;
    let steps: Vec<(usize, usize)> = std::iter::once((290, 30))
        .chain(std::iter::repeat_n((1, 1), 10))
        .collect();
    assert_eq!(logits(runner(3, Isa::detect(), form)?, &steps)?, expected);
    Ok(())
}
