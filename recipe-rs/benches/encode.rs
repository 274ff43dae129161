//! Encoding of prose-like text with a small vocabulary: one thread, two threads, and decoding.
#![allow(
    clippy::unwrap_used,
    missing_docs,
    reason = "a benchmark fails by panic"
)]

use std::num::NonZeroUsize;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use recipe_rs::Tokenizer;

const SMALL: &str = include_str!("../tests/data/bpe_small.json");

fn encode(criterion: &mut Criterion) {
    let tokenizer = Tokenizer::from_json(SMALL).unwrap();
    let line = "The quick brown fox, and it's done: def main(argc) = [1, 2, 345];\n\u{543e}\u{8f29}\u{306f}\u{732b}\u{3067}\u{3042}\u{308b}\u{3002}\n";
    let text = line.repeat(4000);
    let ids = tokenizer.encode_plain(&text, None).unwrap();
    let mut group = criterion.benchmark_group("encode");
    group.throughput(Throughput::Bytes(text.len() as u64));
    for num_threads in [1, 2] {
        group.bench_function(format!("{num_threads} threads"), |bencher| {
            bencher.iter(|| {
                tokenizer
                    .encode_plain(&text, NonZeroUsize::new(num_threads))
                    .unwrap()
            });
        });
    }
    group.bench_function("decode", |bencher| {
        bencher.iter(|| tokenizer.decode(&ids, false).unwrap());
    });
    group.finish();
}

criterion_group!(benches, encode);
criterion_main!(benches);
