//! Any text as a data URL or an external URL: refused or resolved, and a failed call leaves the quota alone.

#![no_main]

use libfuzzer_sys::fuzz_target;
use recipe_rs::{
    Error, ImageData, ImageDetail, ImageFetcher, ImagePreprocessor, ImageQuota, ImageResolver,
    ImageSource,
};

/// Connects nowhere and gives the URL back as the file.
struct Echo;

impl ImageFetcher for Echo {
    fn fetch(&self, url: &str) -> Result<Vec<u8>, Error> {
        assert!(url.len() <= 8192);
        Ok(url.as_bytes().to_vec())
    }
}

fuzz_target!(|text: &str| {
    let resolver = ImageResolver::new(Echo, ImagePreprocessor);
    for data in [
        ImageData::DataUrl(text.to_owned()),
        ImageData::Url(text.to_owned()),
    ] {
        let source = ImageSource {
            data,
            detail: ImageDetail::High,
            path: String::new(),
        };
        let mut quota = ImageQuota::default();
        let images = resolver.resolve(&[source], &mut quota);
        assert_eq!(quota.image_count(), u64::from(images.is_ok()));
    }
});
