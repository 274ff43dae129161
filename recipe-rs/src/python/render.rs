//! Python classes of the prompt encodings.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::Result;
use crate::python::conversation::PyConversation;
use crate::python::image_source::image_source_objects;
use crate::python::special_tokens::PySpecialTokens;
use crate::python::tokenizer::{PyTokenizer, id_bytes};
use crate::render::{DeepseekV4Renderer, DeepseekV41Renderer, RenderedPrompt};
use crate::tokenizer::Tokenizer;

/// A prompt, the places of its special tokens, and its images.
#[pyclass(name = "RenderedPrompt", module = "recipe_rs", frozen)]
pub(super) struct PyRenderedPrompt(pub(super) RenderedPrompt);

#[pymethods]
impl PyRenderedPrompt {
    #[getter]
    fn prompt(&self) -> &str {
        &self.0.prompt
    }

    #[getter]
    fn special_ranges(&self) -> Vec<(usize, usize)> {
        code_point_ranges(&self.0)
    }

    #[getter]
    fn image_sources(&self, py: Python<'_>) -> PyResult<Vec<Py<PyAny>>> {
        image_source_objects(py, &self.0.image_sources)
    }

    fn __repr__(&self) -> String {
        format!(
            "RenderedPrompt(prompt=<{} characters>, image_sources={})",
            self.0.prompt.chars().count(),
            self.0.image_sources.len()
        )
    }
}

/// The special ranges in code points, as Python indexes a str.
fn code_point_ranges(rendered: &RenderedPrompt) -> Vec<(usize, usize)> {
    let count = |start: usize, end: usize| rendered.prompt[start..end].chars().count();
    let (mut byte, mut point) = (0, 0);
    rendered
        .special_ranges
        .iter()
        .map(|range| {
            let start = point + count(byte, range.start);
            let end = start + count(range.start, range.end);
            (byte, point) = (range.end, end);
            (start, end)
        })
        .collect()
}

fn attached(tokenizer: Option<&Tokenizer>) -> PyResult<&Tokenizer> {
    tokenizer.ok_or_else(|| {
        PyRuntimeError::new_err("the encoding has no tokenizer; attach one by with_tokenizer")
    })
}

fn encode_prompt(tokenizer: &Tokenizer, rendered: &RenderedPrompt) -> Result<Vec<u32>> {
    tokenizer.encode_ranges(&rendered.prompt, &rendered.special_ranges, None)
}

macro_rules! encoding_class {
    ($class:ident, $name:literal, $renderer:ty, $doc:literal) => {
        #[doc = $doc]
        #[pyclass(name = $name, module = "recipe_rs", frozen)]
        pub(super) struct $class {
            renderer: $renderer,
            tokenizer: Option<Tokenizer>,
        }

        #[pymethods]
        impl $class {
            #[new]
            fn new() -> Self {
                Self {
                    renderer: <$renderer>::default(),
                    tokenizer: None,
                }
            }

            /// Return an encoding that renders with other spellings of the special tokens.
            fn with_special_tokens(&self, special_tokens: &PySpecialTokens) -> Self {
                let renderer = self
                    .renderer
                    .clone()
                    .with_special_tokens(special_tokens.inner.clone());
                Self {
                    renderer,
                    tokenizer: self.tokenizer.clone(),
                }
            }

            /// Return an encoding that follows the official codec also where that is at fault, or not.
            fn with_compat(&self, compat: bool) -> Self {
                Self {
                    renderer: self.renderer.clone().with_compat(compat),
                    tokenizer: self.tokenizer.clone(),
                }
            }

            /// Return an encoding that turns prompts into ids with `tokenizer`.
            fn with_tokenizer(&self, tokenizer: &PyTokenizer) -> Self {
                Self {
                    renderer: self.renderer.clone(),
                    tokenizer: Some(tokenizer.0.clone()),
                }
            }

            /// Render a conversation and encode it into a list of ids.
            fn encode(&self, py: Python<'_>, conversation: &PyConversation) -> PyResult<Vec<u32>> {
                let tokenizer = attached(self.tokenizer.as_ref())?;
                py.detach(|| encode_prompt(tokenizer, &self.renderer.render(&conversation.0)))
                    .map_err(|error| PyRuntimeError::new_err(error.to_string()))
            }

            /// Encode a rendered prompt into a buffer of native 32-bit ids.
            fn encode_rendered<'py>(
                &self,
                py: Python<'py>,
                rendered: &PyRenderedPrompt,
            ) -> PyResult<Bound<'py, PyBytes>> {
                let tokenizer = attached(self.tokenizer.as_ref())?;
                let ids = py
                    .detach(|| encode_prompt(tokenizer, &rendered.0))
                    .map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
                id_bytes(py, &ids)
            }

            /// Render a conversation into prompt text.
            fn render_conversation(
                &self,
                py: Python<'_>,
                conversation: &PyConversation,
            ) -> PyRenderedPrompt {
                PyRenderedPrompt(py.detach(|| self.renderer.render(&conversation.0)))
            }
        }
    };
}

encoding_class!(
    PyDeepseekV4Encoding,
    "DeepseekV4Encoding",
    DeepseekV4Renderer,
    "The prompt encoding of DeepSeek V4."
);
encoding_class!(
    PyDeepseekV41Encoding,
    "DeepseekV41Encoding",
    DeepseekV41Renderer,
    "The prompt encoding of DeepSeek V4.1."
);

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyRenderedPrompt>()?;
    module.add_class::<PyDeepseekV4Encoding>()?;
    module.add_class::<PyDeepseekV41Encoding>()
}
