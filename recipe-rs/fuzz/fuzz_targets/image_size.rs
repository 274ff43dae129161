//! Any size settles, within the positions of an image and the sides of a file.

#![no_main]

use libfuzzer_sys::fuzz_target;
use recipe_rs::ImageSize;

fuzz_target!(|sides: (u32, u32, u32)| {
    let size = ImageSize {
        width: sides.0,
        height: sides.1,
    };
    for size in [size, size.limited_to(sides.2)] {
        let fitted = size.fitted().unwrap();
        assert_eq!(fitted.fitted(), Ok(fitted));
        assert!(fitted.num_tokens() <= 1024);
        let stored = size.fitted_for_file().unwrap();
        assert_eq!(stored.fitted(), Ok(stored));
        assert!(stored.width.max(stored.height) <= 16_383);
    }
});
