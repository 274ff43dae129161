//! The exception classes, and the one place where errors become exceptions.

use pyo3::exceptions::{PyException, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};

use crate::Error;
use crate::request::{ERROR_CODE, anthropic_error_body, openai_error_body};

/// The exception classes of the module.
struct Exceptions {
    base: Py<PyType>,
    tokenizer: Py<PyType>,
    render: Py<PyType>,
    stream: Py<PyType>,
    conversion: Py<PyType>,
    image: Py<PyType>,
    image_size: Py<PyType>,
}

static EXCEPTIONS: PyOnceLock<Exceptions> = PyOnceLock::new();

impl Exceptions {
    fn get(py: Python<'_>) -> PyResult<&Self> {
        EXCEPTIONS.get_or_try_init(py, || Self::new(py))
    }

    fn new(py: Python<'_>) -> PyResult<Self> {
        let exception = py.get_type::<PyException>();
        let base = new_class(
            py,
            "RecipeError",
            "Base of the codec's errors.",
            &[exception],
            &[],
        )?;
        let value_error = py.get_type::<PyValueError>();
        let runtime_error = py.get_type::<PyRuntimeError>();
        let class = |name, doc, builtin: &Bound<'_, PyType>, fields: &[&str]| {
            let parents = [base.bind(py).clone(), builtin.clone()];
            new_class(py, name, doc, &parents, fields)
        };
        Ok(Self {
            tokenizer: class(
                "TokenizerError",
                "A vocabulary file or an encode call is at fault.",
                &value_error,
                &["offset"],
            )?,
            render: class(
                "RenderError",
                "A conversation cannot be rendered.",
                &value_error,
                &["message_index"],
            )?,
            stream: class(
                "StreamError",
                "An output stream was used after its end, or its input is inconsistent.",
                &runtime_error,
                &["state"],
            )?,
            conversion: class(
                "ConversionError",
                "A request body is invalid or asks for something unsupported.",
                &value_error,
                &[
                    "status_code",
                    "body",
                    "anthropic_body",
                    "param",
                    "code",
                    "message",
                ],
            )?,
            image: class(
                "ImageError",
                "An image cannot be fetched, decoded or accepted.",
                &value_error,
                &["kind", "is_retryable"],
            )?,
            image_size: class(
                "CalcResizeError",
                "Fitting the size of an image does not settle.",
                &value_error,
                &[],
            )?,
            base,
        })
    }
}

/// Creates an exception class whose `fields` are None until an error sets them.
fn new_class(
    py: Python<'_>,
    name: &str,
    doc: &str,
    parents: &[Bound<'_, PyType>],
    fields: &[&str],
) -> PyResult<Py<PyType>> {
    let attributes = PyDict::new(py);
    attributes.set_item("__module__", "recipe_rs")?;
    attributes.set_item("__doc__", doc)?;
    for field in fields {
        attributes.set_item(field, py.None())?;
    }
    let parents = PyTuple::new(py, parents)?;
    let class = py.get_type::<PyType>().call1((name, parents, attributes))?;
    Ok(class.cast_into::<PyType>()?.unbind())
}

impl From<Error> for PyErr {
    fn from(error: Error) -> Self {
        Python::attach(|py| to_exception(py, &error).unwrap_or_else(|failure| failure))
    }
}

fn to_exception(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    let exceptions = Exceptions::get(py)?;
    let new = |class: &Py<PyType>| class.bind(py).call1((error.to_string(),));
    let value = match error {
        Error::Tokenizer { offset, .. } => {
            let value = new(&exceptions.tokenizer)?;
            value.setattr("offset", offset)?;
            value
        }
        Error::Render { message_index, .. } => {
            let value = new(&exceptions.render)?;
            value.setattr("message_index", message_index)?;
            value
        }
        Error::Stream { state, .. } => {
            let value = new(&exceptions.stream)?;
            value.setattr("state", state)?;
            value
        }
        Error::Conversion {
            message,
            param,
            status_code,
        } => {
            let value = new(&exceptions.conversion)?;
            value.setattr("message", message)?;
            value.setattr("param", param)?;
            value.setattr("status_code", status_code)?;
            value.setattr("code", ERROR_CODE)?;
            value.setattr("body", openai_error_body(error))?;
            value.setattr("anthropic_body", anthropic_error_body(error))?;
            value
        }
        Error::Image {
            kind, is_retryable, ..
        } => {
            let value = new(&exceptions.image)?;
            value.setattr("kind", format!("{kind:?}"))?;
            value.setattr("is_retryable", is_retryable)?;
            value
        }
        Error::ImageSize { .. } => new(&exceptions.image_size)?,
    };
    Ok(PyErr::from_value(value))
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let exceptions = Exceptions::get(py)?;
    for class in [
        &exceptions.base,
        &exceptions.tokenizer,
        &exceptions.render,
        &exceptions.stream,
        &exceptions.conversion,
        &exceptions.image,
        &exceptions.image_size,
    ] {
        let class = class.bind(py);
        module.add(class.name()?.to_str()?, class)?;
    }
    Ok(())
}
