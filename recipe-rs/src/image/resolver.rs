//! From the image sources of a request to preprocessed images.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::conversation::{ImageData, ImageSource};
use crate::error::{Error, Result};
use crate::image::info::MultiModalData;
use crate::image::preprocess::{ImagePreprocessor, PreprocessOptions};
use crate::image::quota::{ImageLimits, ImageQuota};
use crate::image::source::{check_file_size, check_url, read_data_url};

/// Images that are fetched at a time.
const MAX_CONNECTIONS: usize = 8;

/// Gets the bytes of an external image.
pub trait ImageFetcher: Send + Sync {
    /// Returns the body of `url`.
    ///
    /// # Errors
    /// [`Error::Image`] when it cannot be had.
    fn fetch(&self, url: &str) -> Result<Vec<u8>>;
}

/// Reads and preprocesses the images of a request, within limits.
#[derive(Debug, Clone)]
pub struct ImageResolver<F> {
    fetcher: F,
    preprocessor: ImagePreprocessor,
    limits: ImageLimits,
}

impl<F: ImageFetcher> ImageResolver<F> {
    /// A resolver with the default limits.
    #[must_use]
    pub fn new(fetcher: F, preprocessor: ImagePreprocessor) -> Self {
        Self {
            fetcher,
            preprocessor,
            limits: ImageLimits::default(),
        }
    }

    /// The same resolver with other limits.
    #[must_use]
    pub fn with_limits(mut self, limits: ImageLimits) -> Self {
        self.limits = limits;
        self
    }

    /// The limits in force.
    #[must_use]
    pub fn limits(&self) -> &ImageLimits {
        &self.limits
    }

    /// Reads and preprocesses `sources`, and adds them to `quota`; a failed call adds nothing.
    ///
    /// Counts and forms are checked before the first connection, and total size before the first
    /// image is decoded.
    ///
    /// # Errors
    /// [`Error::Image`] with the path of the source at fault in the message.
    pub fn resolve(
        &self,
        sources: &[ImageSource],
        quota: &mut ImageQuota,
    ) -> Result<MultiModalData> {
        let count = sources.len() as u64;
        quota.with(count, 0, &self.limits)?;
        for (index, source) in sources.iter().enumerate() {
            if let ImageData::Url(url) = &source.data {
                check_url(url, &self.limits).map_err(|error| at(source, index, error))?;
            }
        }
        let mut fetched = self.fetch_all(sources, *quota);
        let mut files = Vec::with_capacity(sources.len());
        let mut total = 0;
        for (index, source) in sources.iter().enumerate() {
            let file = match &source.data {
                ImageData::Bytes(data) => Ok(Cow::from(data)),
                ImageData::DataUrl(url) => read_data_url(url).map(Cow::from),
                ImageData::Url(_) => match fetched.remove(&index) {
                    Some(result) => result.map(Cow::from),
                    // Not begun: the files before it were too large together.
                    None => quota
                        .with(count, u64::MAX, &self.limits)
                        .map(|_| Cow::default()),
                },
            };
            let file = file
                .and_then(|file| {
                    check_file_size(&file, self.limits.max_image_bytes)?;
                    Ok(file)
                })
                .map_err(|error| at(source, index, error))?;
            total += file.len() as u64;
            quota.with(count, total, &self.limits)?;
            files.push(file);
        }
        let images = sources
            .iter()
            .zip(files)
            .enumerate()
            .map(|(index, (source, file))| {
                let options = PreprocessOptions {
                    detail: source.detail,
                    max_dimension_px: self.limits.max_dimension_px,
                    low_detail_max_dimension_px: self.limits.low_detail_max_dimension_px,
                };
                self.preprocessor
                    .preprocess(&file, &options)
                    .map_err(|error| at(source, index, error))
            })
            .collect::<Result<_>>()?;
        *quota = quota.with(count, total, &self.limits)?;
        Ok(MultiModalData { images })
    }

    /// Fetches the external images, several at a time, and returns the results by index of the source.
    ///
    /// After a failure, or when the sum exceeds the limit, no further fetch begins; every source
    /// before one with a result has a result too.
    fn fetch_all(
        &self,
        sources: &[ImageSource],
        quota: ImageQuota,
    ) -> HashMap<usize, Result<Vec<u8>>> {
        let urls: Vec<(usize, &str)> = sources
            .iter()
            .enumerate()
            .filter_map(|(index, source)| match &source.data {
                ImageData::Url(url) => Some((index, url.as_str())),
                _ => None,
            })
            .collect();
        let next = AtomicUsize::new(0);
        let failed = AtomicBool::new(false);
        let sum = AtomicU64::new(quota.byte_size());
        let results = Mutex::new(HashMap::new());
        let work = || {
            while !failed.load(Ordering::Relaxed)
                && sum.load(Ordering::Relaxed) <= self.limits.max_total_bytes
            {
                let Some(&(index, url)) = urls.get(next.fetch_add(1, Ordering::Relaxed)) else {
                    return;
                };
                let result = self.fetcher.fetch(url);
                match &result {
                    Ok(data) => _ = sum.fetch_add(data.len() as u64, Ordering::Relaxed),
                    Err(_) => failed.store(true, Ordering::Relaxed),
                }
                results
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .insert(index, result);
            }
        };
        thread::scope(|scope| {
            for _ in 1..urls.len().min(MAX_CONNECTIONS) {
                scope.spawn(work);
            }
            work();
        });
        results.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The error with the place of its source in front.
fn at(source: &ImageSource, index: usize, error: Error) -> Error {
    match error {
        Error::Image {
            kind,
            message,
            is_retryable,
        } => Error::Image {
            kind,
            message: if source.path.is_empty() {
                format!("image[{index}]: {message}")
            } else {
                format!("{}: {message}", source.path)
            },
            is_retryable,
        },
        error => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::ImageDetail;
    use crate::error::ImageErrorKind;

    /// Serves a small file, or fails for URLs that say so; counts its calls.
    #[derive(Default)]
    struct Shelf {
        calls: AtomicUsize,
    }

    impl ImageFetcher for &Shelf {
        fn fetch(&self, url: &str) -> Result<Vec<u8>> {
            self.calls.fetch_add(1, Ordering::Relaxed);
            if url.ends_with("bad") {
                return Err(crate::image::refusal(ImageErrorKind::Fetch, url));
            }
            let mut file = std::io::Cursor::new(Vec::new());
            ::image::RgbImage::new(url.len() as u32, 20)
                .write_to(&mut file, ::image::ImageFormat::Png)
                .unwrap();
            Ok(file.into_inner())
        }
    }

    fn urls(names: impl IntoIterator<Item = String>) -> Vec<ImageSource> {
        names
            .into_iter()
            .map(|name| ImageSource {
                data: ImageData::Url(format!("http://a/{name}")),
                detail: ImageDetail::High,
                path: String::new(),
            })
            .collect()
    }

    #[test]
    fn images_come_in_the_order_of_their_sources() {
        let shelf = Shelf::default();
        let resolver = ImageResolver::new(&shelf, ImagePreprocessor);
        let mut quota = ImageQuota::default();
        let sources = urls((1..20).map(|length| "x".repeat(length)));
        let images = resolver.resolve(&sources, &mut quota).unwrap().images;
        let sizes: Vec<_> = images.iter().map(|image| image.size).collect();
        let expected: Vec<_> = (10..29)
            .map(|width| crate::ImageSize { width, height: 20 }.fitted().unwrap())
            .collect();
        assert_eq!(sizes, expected);
        assert_eq!(quota.image_count(), 19);
    }

    #[test]
    fn a_failure_ends_fetching() {
        let shelf = Shelf::default();
        let resolver = ImageResolver::new(&shelf, ImagePreprocessor);
        let mut quota = ImageQuota::default();
        let sources = urls((0..500).map(|index| format!("{index}bad")));
        let error = resolver.resolve(&sources, &mut quota).unwrap_err();
        assert!(error.to_string().starts_with("image[0]: "), "{error}");
        assert!(shelf.calls.load(Ordering::Relaxed) <= MAX_CONNECTIONS);
        assert_eq!(quota, ImageQuota::default());
    }

    #[test]
    fn a_sum_that_is_too_large_ends_fetching() {
        let shelf = Shelf::default();
        let limits = ImageLimits {
            max_total_bytes: 200,
            ..ImageLimits::default()
        };
        let resolver = ImageResolver::new(&shelf, ImagePreprocessor).with_limits(limits);
        let error = resolver
            .resolve(
                &urls((0..500).map(|index| index.to_string())),
                &mut ImageQuota::default(),
            )
            .unwrap_err();
        let Error::Image { kind, .. } = error else {
            panic!("{error:?}")
        };
        assert_eq!(kind, ImageErrorKind::TotalSizeTooLarge);
        assert!(shelf.calls.load(Ordering::Relaxed) <= 4 + MAX_CONNECTIONS);
    }
}
