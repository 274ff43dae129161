//! Any bytes as an image file: refused, or an image of the size that the rule says.

#![no_main]

use libfuzzer_sys::fuzz_target;
use recipe_rs::{ImageDetail, ImagePreprocessor, PreprocessOptions};

fuzz_target!(|data: &[u8]| {
    for detail in [ImageDetail::High, ImageDetail::Low] {
        // Small files only: time and memory of large ones are those of their pixels.
        let options = PreprocessOptions {
            detail,
            max_dimension_px: 256,
            low_detail_max_dimension_px: 64,
        };
        if let Ok(image) = ImagePreprocessor.preprocess(data, &options) {
            assert_eq!(image.size.fitted(), Ok(image.size));
            assert!(image.data.starts_with(b"RIFF"));
        }
    }
});
