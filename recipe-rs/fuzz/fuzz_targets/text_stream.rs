//! Any ids in any pieces: the text is that of the whole, up to the first stop string.

#![no_main]

use fuzz_support::TOKENIZER;
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use recipe_rs::{TextStream, TextStreamOptions};

#[derive(Debug, Arbitrary)]
struct Input {
    ids: Vec<u16>,
    cuts: Vec<u8>,
    stop: Vec<String>,
    skip_special_tokens: bool,
    include_stop_str_in_output: bool,
}

/// Text, stop string and number of tokens of a stream that gets its ids in pieces.
fn run(
    ids: &[u32],
    pieces: impl Iterator<Item = usize>,
    options: TextStreamOptions,
) -> Option<(String, Option<String>, usize)> {
    let mut stream = TextStream::new(TOKENIZER.clone(), options).ok()?;
    let mut text = String::new();
    let mut rest = ids;
    for length in pieces.chain([usize::MAX]) {
        let (piece, after) = rest.split_at(length.min(rest.len()));
        rest = after;
        let delta = stream.push(piece).unwrap();
        text += &delta.text;
        if delta.stop.is_some() {
            return Some((text, delta.stop, delta.num_tokens));
        }
    }
    let delta = stream.finish().unwrap();
    text += &delta.text;
    Some((text, delta.stop, delta.num_tokens))
}

fuzz_target!(|input: Input| {
    let size = TOKENIZER.vocab_size() as u32;
    let ids: Vec<u32> = input.ids.iter().map(|&id| u32::from(id) % size).collect();
    let options = TextStreamOptions {
        stop: input.stop,
        skip_special_tokens: input.skip_special_tokens,
        include_stop_str_in_output: input.include_stop_str_in_output,
    };
    let whole = run(&ids, std::iter::empty(), options.clone());
    let pieces = input.cuts.iter().map(|&cut| usize::from(cut % 8));
    assert_eq!(run(&ids, pieces, options.clone()), whole);
    let single = std::iter::repeat_n(1, ids.len());
    assert_eq!(run(&ids, single, options.clone()), whole);
    if let Some((text, None, _)) = whole {
        let skip = options.skip_special_tokens;
        assert_eq!(text, TOKENIZER.decode(&ids, skip).unwrap());
    }
});
