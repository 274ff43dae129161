//! Any file: it is refused, or gives a tokenizer that encodes and decodes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use recipe_rs::Tokenizer;

fuzz_target!(|json: &str| {
    let Ok(tokenizer) = Tokenizer::from_json(json) else {
        return;
    };
    for text in [
        "",
        "Hello, world 123",
        "<think>\u{4f60}\u{597d}</think>\n \u{1f600}",
    ] {
        if let Ok(ids) = tokenizer.encode(text) {
            let _ = tokenizer.decode(&ids, false);
            let _ = tokenizer.decode(&ids, true);
        }
    }
});
