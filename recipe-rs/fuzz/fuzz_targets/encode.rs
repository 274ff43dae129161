//! Any text: decoding gives it back, and neither threads nor special ranges change the ids of plain text.

#![no_main]

use fuzz_support::{TOKENIZER, threads};
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;

#[derive(Debug, Arbitrary)]
struct Input<'a> {
    text: &'a str,
    repeat: u8,
    ranges: Vec<(u16, u16)>,
}

fuzz_target!(|input: Input<'_>| {
    // Repetition reaches the length from which texts are cut for threads.
    let text = input.text.repeat(usize::from(input.repeat) + 1);
    let serial = TOKENIZER.encode_plain(&text, threads(1)).unwrap();
    assert_eq!(TOKENIZER.decode(&serial, false).unwrap(), text);
    assert_eq!(TOKENIZER.encode_plain(&text, threads(3)).unwrap(), serial);

    let full = TOKENIZER.encode(&text).unwrap();
    assert_eq!(TOKENIZER.decode(&full, false).unwrap(), text);

    let ranges: Vec<_> = input
        .ranges
        .iter()
        .map(|&(start, end)| usize::from(start)..usize::from(end))
        .collect();
    let one = TOKENIZER.encode_ranges(&text, &ranges, threads(1));
    assert_eq!(TOKENIZER.encode_ranges(&text, &ranges, threads(3)), one);
    if let Ok(ids) = one {
        assert_eq!(TOKENIZER.decode(&ids, false).unwrap(), text);
    }
});
