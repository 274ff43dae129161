//! Python classes of image fetching and preprocessing.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBool;

use crate::conversation::ImageDetail;
use crate::python::image_source::PyImageSource;
use crate::python::tools::{by_name, name_of};
use crate::{
    HttpImageFetcher, ImageFetcher, ImageInfo, ImagePreprocessor, ImageQuota, ImageResolver,
    ImageSize, MultiModalData, PreprocessOptions, Result,
};

/// A preprocessed image.
#[pyclass(name = "ImageInfo", module = "recipe_rs", frozen, eq, from_py_object)]
#[derive(Clone, PartialEq)]
pub(super) struct PyImageInfo(ImageInfo);

#[pymethods]
impl PyImageInfo {
    #[new]
    fn new(data: &[u8], width: u32, height: u32) -> Self {
        Self(ImageInfo {
            data: data.to_vec(),
            size: ImageSize { width, height },
        })
    }

    #[getter]
    fn data(&self) -> &[u8] {
        &self.0.data
    }

    #[getter]
    fn width(&self) -> u32 {
        self.0.size.width
    }

    #[getter]
    fn height(&self) -> u32 {
        self.0.size.height
    }

    fn __repr__(&self) -> String {
        let ImageSize { width, height } = self.0.size;
        let length = self.0.data.len();
        format!("ImageInfo(<{length} bytes>, width={width}, height={height})")
    }
}

/// Images in the order of their placeholders in a prompt.
#[pyclass(name = "MultiModalData", module = "recipe_rs", frozen, eq)]
#[derive(PartialEq)]
pub(super) struct PyMultiModalData(MultiModalData);

#[pymethods]
impl PyMultiModalData {
    #[new]
    #[pyo3(signature = (images = None))]
    fn new(images: Option<Vec<PyImageInfo>>) -> Self {
        let images = images.unwrap_or_default();
        Self(MultiModalData {
            images: images.into_iter().map(|image| image.0).collect(),
        })
    }

    #[getter]
    fn images(&self) -> Vec<PyImageInfo> {
        self.0.images.iter().cloned().map(PyImageInfo).collect()
    }

    /// Return whether there are no images.
    fn is_empty(&self) -> bool {
        self.0.images.is_empty()
    }

    /// Return how many positions the images take at inference beyond the one of each placeholder.
    fn image_token_adjustment(&self) -> Result<u64> {
        self.0.image_token_adjustment()
    }

    fn __repr__(&self) -> String {
        format!("MultiModalData(<{} images>)", self.0.images.len())
    }
}

/// What the images of one request have taken so far.
#[pyclass(name = "ImageQuota", module = "recipe_rs", frozen)]
#[derive(Default)]
pub(super) struct PyImageQuota(Mutex<ImageQuota>);

impl PyImageQuota {
    fn get(&self) -> ImageQuota {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl PyImageQuota {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Return the number of images taken so far.
    fn image_count(&self) -> u64 {
        self.get().image_count()
    }

    /// Return the bytes of the encoded images taken so far.
    fn byte_size(&self) -> u64 {
        self.get().byte_size()
    }

    fn __repr__(&self) -> String {
        let quota = self.get();
        let (count, size) = (quota.image_count(), quota.byte_size());
        format!("ImageQuota(image_count={count}, byte_size={size})")
    }
}

/// How one image is preprocessed.
#[pyclass(name = "PreprocessOptions", module = "recipe_rs", frozen, eq)]
#[derive(PartialEq)]
pub(super) struct PyPreprocessOptions(PreprocessOptions);

#[pymethods]
impl PyPreprocessOptions {
    #[new]
    fn new(
        detail: &str,
        max_dimension_px: u32,
        low_detail_max_dimension_px: u32,
    ) -> PyResult<Self> {
        Ok(Self(PreprocessOptions {
            detail: by_name("detail", detail, &ImageDetail::NAMES)?,
            max_dimension_px,
            low_detail_max_dimension_px,
        }))
    }

    #[getter]
    fn detail(&self) -> &'static str {
        name_of(&self.0.detail, &ImageDetail::NAMES)
    }

    #[getter]
    fn max_dimension_px(&self) -> u32 {
        self.0.max_dimension_px
    }

    #[getter]
    fn low_detail_max_dimension_px(&self) -> u32 {
        self.0.low_detail_max_dimension_px
    }

    fn __repr__(&self) -> String {
        format!(
            "PreprocessOptions({:?}, max_dimension_px={}, low_detail_max_dimension_px={})",
            self.detail(),
            self.0.max_dimension_px,
            self.0.low_detail_max_dimension_px
        )
    }
}

/// Downloads images over http and https, by default from public addresses only.
#[pyclass(
    name = "ReqwestImageFetcher",
    module = "recipe_rs",
    frozen,
    from_py_object
)]
#[derive(Clone)]
pub(super) struct PyImageFetcher(HttpImageFetcher);

#[pymethods]
impl PyImageFetcher {
    #[new]
    fn new() -> Self {
        Self(HttpImageFetcher::default())
    }

    /// Return a fetcher that takes at most `max_bytes` of an image.
    #[staticmethod]
    fn with_max_bytes(max_bytes: u64) -> Self {
        Self(HttpImageFetcher::with_max_bytes(max_bytes))
    }

    /// Return a fetcher that connects where `destination_filter(host, address)` is True, and nowhere else.
    fn with_destination_filter(&self, destination_filter: &Bound<'_, PyAny>) -> PyResult<Self> {
        if !destination_filter.is_callable() {
            return Err(PyTypeError::new_err(
                "destination_filter must be callable with a host and an address",
            ));
        }
        let callable = destination_filter.clone().unbind();
        let filter = move |host: &str, address: IpAddr| {
            Python::attach(|py| is_allowed(callable.bind(py), host, address))
        };
        Ok(Self(
            self.0.clone().with_destination_filter(Arc::new(filter)),
        ))
    }

    /// Return the body of `url`.
    fn fetch(&self, py: Python<'_>, url: &str) -> Result<Vec<u8>> {
        py.detach(|| self.0.fetch(url))
    }
}

/// The answer of a Python filter; an exception and an answer that is no bool refuse the address.
fn is_allowed(filter: &Bound<'_, PyAny>, host: &str, address: IpAddr) -> bool {
    let answer = filter
        .call1((host, address.to_string()))
        .and_then(|answer| Ok(answer.cast::<PyBool>()?.is_true()));
    answer.unwrap_or_else(|error| {
        error.write_unraisable(filter.py(), Some(filter));
        false
    })
}

/// Decodes images, resizes them to the model's grid and stores them as lossless WEBP.
#[pyclass(
    name = "OpenCvImagePreprocessor",
    module = "recipe_rs",
    frozen,
    from_py_object
)]
#[derive(Clone)]
pub(super) struct PyImagePreprocessor(ImagePreprocessor);

#[pymethods]
impl PyImagePreprocessor {
    #[new]
    fn new() -> Self {
        Self(ImagePreprocessor)
    }

    /// Return the image that the model gets for the bytes of an image file.
    fn preprocess(
        &self,
        py: Python<'_>,
        data: &[u8],
        options: &PyPreprocessOptions,
    ) -> Result<PyImageInfo> {
        py.detach(|| self.0.preprocess(data, &options.0))
            .map(PyImageInfo)
    }
}

/// Reads and preprocesses the images of a request, within limits.
#[pyclass(name = "ImageResolver", module = "recipe_rs", frozen)]
pub(super) struct PyImageResolver(ImageResolver<HttpImageFetcher>);

#[pymethods]
impl PyImageResolver {
    #[new]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "objects are copied out of Python"
    )]
    fn new(fetcher: PyImageFetcher, preprocessor: PyImagePreprocessor) -> Self {
        Self(ImageResolver::new(fetcher.0, preprocessor.0))
    }

    /// Return the images of `sources` and add them to `quota`; a failed call adds nothing.
    fn resolve(
        &self,
        py: Python<'_>,
        sources: Vec<PyImageSource>,
        quota: &PyImageQuota,
    ) -> Result<PyMultiModalData> {
        let sources: Vec<_> = sources.into_iter().map(|source| source.0).collect();
        // Other calls may share the quota: what this one takes is added to what it holds by then.
        py.detach(|| {
            let mut taken = quota.get();
            let before = taken;
            let images = self.0.resolve(&sources, &mut taken)?;
            let mut held = quota.0.lock().unwrap_or_else(PoisonError::into_inner);
            *held = held.with(
                taken.image_count() - before.image_count(),
                taken.byte_size() - before.byte_size(),
                self.0.limits(),
            )?;
            Ok(images)
        })
        .map(PyMultiModalData)
    }
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyImageInfo>()?;
    module.add_class::<PyMultiModalData>()?;
    module.add_class::<PyImageQuota>()?;
    module.add_class::<PyPreprocessOptions>()?;
    module.add_class::<PyImageFetcher>()?;
    module.add_class::<PyImagePreprocessor>()?;
    module.add_class::<PyImageResolver>()
}
