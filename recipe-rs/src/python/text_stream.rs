//! Python classes of incremental decoding.

use pyo3::prelude::*;

use crate::python::tokenizer::PyTokenizer;
use crate::{Result, TextDelta, TextStream, TextStreamOptions};

/// What a push added to the text.
#[pyclass(name = "TextDelta", module = "recipe_rs", frozen, eq)]
#[derive(PartialEq)]
pub(super) struct PyTextDelta(TextDelta);

#[pymethods]
impl PyTextDelta {
    /// Text that is certain now: whole characters, nothing that may belong to a stop string.
    #[getter]
    fn text(&self) -> &str {
        &self.0.text
    }

    /// The stop string that ended the text.
    #[getter]
    fn stop(&self) -> Option<&str> {
        self.0.stop.as_deref()
    }

    /// Tokens taken so far; after a stop, up to and including the token that completed it.
    #[getter]
    fn num_tokens(&self) -> usize {
        self.0.num_tokens
    }

    /// Tokens whose text has been returned completely so far.
    #[getter]
    fn num_released_tokens(&self) -> usize {
        self.0.num_released_tokens
    }

    fn __repr__(&self) -> String {
        let TextDelta {
            text,
            stop,
            num_tokens,
            num_released_tokens,
        } = &self.0;
        let stop = stop
            .as_ref()
            .map_or_else(|| "None".to_owned(), |stop| format!("{stop:?}"));
        format!(
            "TextDelta(text={text:?}, stop={stop}, num_tokens={num_tokens}, num_released_tokens={num_released_tokens})"
        )
    }
}

/// Incremental decoder of one request, up to a stop string.
#[pyclass(name = "TextStream", module = "recipe_rs")]
pub(super) struct PyTextStream(TextStream);

#[pymethods]
impl PyTextStream {
    #[new]
    #[pyo3(signature = (tokenizer, *, stop=Vec::new(), skip_special_tokens=true, include_stop_str_in_output=false))]
    fn new(
        tokenizer: &PyTokenizer,
        stop: Vec<String>,
        skip_special_tokens: bool,
        include_stop_str_in_output: bool,
    ) -> Result<Self> {
        let options = TextStreamOptions {
            stop,
            skip_special_tokens,
            include_stop_str_in_output,
        };
        TextStream::new(tokenizer.0.clone(), options).map(Self)
    }

    /// Add token ids; those behind the one that completes a stop string are not looked at.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "lists are copied out of Python"
    )]
    fn push(&mut self, py: Python<'_>, token_ids: Vec<u32>) -> Result<PyTextDelta> {
        // Giving up the interpreter lock costs more than decoding a few tokens.
        let delta = if token_ids.len() < 64 {
            self.0.push(&token_ids)
        } else {
            py.detach(|| self.0.push(&token_ids))
        };
        delta.map(PyTextDelta)
    }

    /// End the text and return what was held back.
    fn finish(&mut self) -> Result<PyTextDelta> {
        self.0.finish().map(PyTextDelta)
    }
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyTextDelta>()?;
    module.add_class::<PyTextStream>()
}
