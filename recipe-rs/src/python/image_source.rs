//! Python classes of the images that a conversation refers to.

use pyo3::prelude::*;

use crate::conversation::{ImageData, ImageDetail, ImageSource};
use crate::python::tools::{by_name, name_of};

/// One image of a conversation, not yet fetched or decoded.
#[pyclass(
    name = "ImageSource",
    module = "recipe_rs",
    frozen,
    subclass,
    from_py_object
)]
#[derive(Clone)]
pub(super) struct PyImageSource(pub(super) ImageSource);

#[pymethods]
impl PyImageSource {
    #[getter]
    fn kind(&self) -> &'static str {
        match &self.0.data {
            ImageData::DataUrl(_) => "data_url",
            ImageData::Url(_) => "url",
            ImageData::Bytes(_) => "bytes",
        }
    }

    #[getter]
    fn detail(&self) -> &'static str {
        name_of(&self.0.detail, &ImageDetail::NAMES)
    }

    #[getter]
    fn data_url(&self) -> Option<&str> {
        match &self.0.data {
            ImageData::DataUrl(data_url) => Some(data_url),
            _ => None,
        }
    }

    #[getter]
    fn url(&self) -> Option<&str> {
        match &self.0.data {
            ImageData::Url(url) => Some(url),
            _ => None,
        }
    }

    #[getter]
    fn data(&self) -> Option<&[u8]> {
        match &self.0.data {
            ImageData::Bytes(data) => Some(data),
            _ => None,
        }
    }

    #[getter]
    fn path(&self) -> &str {
        &self.0.path
    }

    fn __repr__(&self) -> String {
        let (class, shown) = match &self.0.data {
            ImageData::DataUrl(data_url) => ("DataUrlImageSource", format!("{data_url:?}")),
            ImageData::Url(url) => ("UrlImageSource", format!("{url:?}")),
            ImageData::Bytes(data) => ("BytesImageSource", format!("<{} bytes>", data.len())),
        };
        format!(
            "{class}({shown}, detail={:?}, path={:?})",
            self.detail(),
            self.0.path
        )
    }
}

fn source(data: ImageData, detail: &str, path: String) -> PyResult<PyImageSource> {
    let detail = by_name("detail", detail, &ImageDetail::NAMES)?;
    Ok(PyImageSource(ImageSource { data, detail, path }))
}

/// An image in a `data:` URL.
#[pyclass(name = "DataUrlImageSource", module = "recipe_rs", frozen, extends = PyImageSource)]
pub(super) struct PyDataUrlImageSource;

#[pymethods]
impl PyDataUrlImageSource {
    #[new]
    #[pyo3(signature = (data_url, detail = "high", *, path = String::new()))]
    fn new(data_url: String, detail: &str, path: String) -> PyResult<PyClassInitializer<Self>> {
        Ok(
            PyClassInitializer::from(source(ImageData::DataUrl(data_url), detail, path)?)
                .add_subclass(Self),
        )
    }
}

/// An image at an external URL.
#[pyclass(name = "UrlImageSource", module = "recipe_rs", frozen, extends = PyImageSource)]
pub(super) struct PyUrlImageSource;

#[pymethods]
impl PyUrlImageSource {
    #[new]
    #[pyo3(signature = (url, detail = "high", *, path = String::new()))]
    fn new(url: String, detail: &str, path: String) -> PyResult<PyClassInitializer<Self>> {
        Ok(PyClassInitializer::from(source(ImageData::Url(url), detail, path)?).add_subclass(Self))
    }
}

/// An image as the bytes of its file.
#[pyclass(name = "BytesImageSource", module = "recipe_rs", frozen, extends = PyImageSource)]
pub(super) struct PyBytesImageSource;

#[pymethods]
impl PyBytesImageSource {
    #[new]
    #[pyo3(signature = (data, detail = "high", *, path = String::new()))]
    fn new(data: &[u8], detail: &str, path: String) -> PyResult<PyClassInitializer<Self>> {
        Ok(
            PyClassInitializer::from(source(ImageData::Bytes(data.to_vec()), detail, path)?)
                .add_subclass(Self),
        )
    }
}

/// Builds the Python objects of image sources, each of the class of its kind.
pub(super) fn image_source_objects(
    py: Python<'_>,
    sources: &[ImageSource],
) -> PyResult<Vec<Py<PyAny>>> {
    sources
        .iter()
        .map(|source| {
            let base = PyClassInitializer::from(PyImageSource(source.clone()));
            Ok(match &source.data {
                ImageData::DataUrl(_) => {
                    Py::new(py, base.add_subclass(PyDataUrlImageSource))?.into_any()
                }
                ImageData::Url(_) => Py::new(py, base.add_subclass(PyUrlImageSource))?.into_any(),
                ImageData::Bytes(_) => {
                    Py::new(py, base.add_subclass(PyBytesImageSource))?.into_any()
                }
            })
        })
        .collect()
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyImageSource>()?;
    module.add_class::<PyDataUrlImageSource>()?;
    module.add_class::<PyUrlImageSource>()?;
    module.add_class::<PyBytesImageSource>()
}
