//! What the fuzz targets share.

use std::num::NonZeroUsize;
use std::sync::LazyLock;

use recipe_rs::Tokenizer;

/// A small byte-level tokenizer with the pre-tokenizer and the kinds of added tokens of the DeepSeek models.
pub static TOKENIZER: LazyLock<Tokenizer> = LazyLock::new(|| {
    Tokenizer::from_json(include_str!("../../tests/data/bpe_small.json"))
        .expect("the file belongs to the tests")
});

/// A thread count.
pub fn threads(count: usize) -> Option<NonZeroUsize> {
    NonZeroUsize::new(count)
}
