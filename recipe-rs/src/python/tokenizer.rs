//! Python class of the tokenizer.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyFrozenSet};

use crate::{Error, GgufVocabulary, GrowingPrompt, Result, StreamVocabulary, Tokenizer};

/// Text to token ids and back.
#[pyclass(name = "Tokenizer", module = "recipe_rs", frozen, from_py_object)]
#[derive(Clone)]
pub(super) struct PyTokenizer(
    pub(super) Tokenizer,
    /// What streams look up, made once for all of them.
    Arc<OnceLock<Arc<StreamVocabulary>>>,
);

impl From<Tokenizer> for PyTokenizer {
    fn from(tokenizer: Tokenizer) -> Self {
        Self(tokenizer, Arc::default())
    }
}

impl PyTokenizer {
    pub(super) fn stream_vocabulary(&self) -> Arc<StreamVocabulary> {
        let make = || Arc::new(StreamVocabulary::new(self.0.clone()));
        Arc::clone(self.1.get_or_init(make))
    }
}

#[pymethods]
impl PyTokenizer {
    /// Read a Hugging Face `tokenizer.json`.
    #[staticmethod]
    fn from_file(py: Python<'_>, path: std::path::PathBuf) -> Result<Self> {
        py.detach(|| Tokenizer::from_file(path)).map(Self::from)
    }

    /// Read the `tokenizer.json` of a model repository, through the package `huggingface_hub` and its cache.
    #[staticmethod]
    #[pyo3(signature = (identifier, revision = None, token = None))]
    fn from_pretrained(
        py: Python<'_>,
        identifier: &str,
        revision: Option<&str>,
        token: Option<&str>,
    ) -> PyResult<Self> {
        let failed = |what: String| Error::Tokenizer {
            message: format!("tokenizer.json of {identifier:?} {what}"),
            offset: None,
        };
        let hub = py.import("huggingface_hub").map_err(|_| {
            failed("needs the package huggingface_hub; install it, or use from_file".to_owned())
        })?;
        let options = PyDict::new(py);
        options.set_item("revision", revision)?;
        options.set_item("token", token)?;
        let path: std::path::PathBuf = hub
            .call_method(
                "hf_hub_download",
                (identifier, "tokenizer.json"),
                Some(&options),
            )
            .map_err(|error| failed(format!("cannot be fetched: {}", error.value(py))))?
            .extract()?;
        Ok(Self::from_file(py, path)?)
    }

    /// Build a tokenizer from the text of a Hugging Face `tokenizer.json`.
    #[staticmethod]
    fn from_str(py: Python<'_>, json: &str) -> Result<Self> {
        py.detach(|| Tokenizer::from_json(json)).map(Self::from)
    }

    /// Build a tokenizer from the vocabulary of a GGUF file.
    #[staticmethod]
    #[pyo3(signature = (*, model, pre, tokens, merges, scores, token_types, add_space_prefix=false))]
    #[expect(
        clippy::too_many_arguments,
        reason = "one keyword for each key of the file"
    )]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "lists are copied out of Python"
    )]
    fn from_gguf_vocabulary(
        py: Python<'_>,
        model: &str,
        pre: &str,
        tokens: Vec<String>,
        merges: Vec<String>,
        scores: Option<Vec<f32>>,
        token_types: Vec<i32>,
        add_space_prefix: bool,
    ) -> Result<Self> {
        let vocabulary = GgufVocabulary {
            model,
            pre,
            tokens: &tokens,
            merges: &merges,
            scores: scores.as_deref(),
            token_types: &token_types,
            add_space_prefix,
        };
        py.detach(|| Tokenizer::from_gguf_vocabulary(vocabulary))
            .map(Self::from)
    }

    /// Return the ids of `text`; spellings of added tokens are those tokens.
    fn encode(&self, py: Python<'_>, text: &str) -> Result<Vec<u32>> {
        py.detach(|| self.0.encode(text))
    }

    /// Return the ids of `text` as native u32; spellings of added tokens are plain text.
    #[pyo3(signature = (text, *, num_threads=None))]
    fn encode_plain<'py>(
        &self,
        py: Python<'py>,
        text: &str,
        num_threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let num_threads = thread_count(num_threads)?;
        let ids = py.detach(|| self.0.encode_plain(text, num_threads))?;
        id_bytes(py, &ids)
    }

    /// Return the ids of `text` as native u32; exactly `special_ranges`, in code points, are added tokens.
    #[pyo3(signature = (text, special_ranges, *, num_threads=None))]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "lists are copied out of Python"
    )]
    fn encode_ranges<'py>(
        &self,
        py: Python<'py>,
        text: &str,
        special_ranges: Vec<(usize, usize)>,
        num_threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let num_threads = thread_count(num_threads)?;
        let ids = py.detach(|| {
            let ranges = byte_ranges(text, &special_ranges)?;
            self.0.encode_ranges(text, &ranges, num_threads)
        })?;
        id_bytes(py, &ids)
    }

    /// Return the text of `ids`; bytes that are no UTF-8 become U+FFFD.
    #[pyo3(signature = (ids, *, skip_special_tokens=false))]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "lists are copied out of Python"
    )]
    fn decode(&self, py: Python<'_>, ids: Vec<u32>, skip_special_tokens: bool) -> Result<String> {
        py.detach(|| self.0.decode(&ids, skip_special_tokens))
    }

    /// Return the bytes that `id` contributes to a decoded text.
    fn token_bytes<'py>(&self, py: Python<'py>, id: u32) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.0.token_bytes(id)?))
    }

    /// Return the id of the token that the vocabulary file spells `token`.
    fn token_to_id(&self, token: &str) -> Option<u32> {
        self.0.token_to_id(token)
    }

    /// Return the spelling of `id` in the vocabulary file.
    fn id_to_token(&self, id: u32) -> Option<&str> {
        self.0.id_to_token(id)
    }

    /// Number of ids: one more than the largest.
    #[getter]
    fn vocab_size(&self) -> usize {
        self.0.vocab_size()
    }

    /// Ids of the added tokens that `skip_special_tokens` leaves out.
    #[getter]
    fn special_token_ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyFrozenSet>> {
        PyFrozenSet::new(py, self.0.special_token_ids())
    }

    /// Ids of the added tokens by their spelling.
    #[getter]
    fn added_tokens(&self) -> std::collections::BTreeMap<&str, u32> {
        self.0
            .added_tokens()
            .map(|token| (token.content.as_str(), token.id))
            .collect()
    }

    fn __repr__(&self) -> String {
        format!("Tokenizer(vocab_size={})", self.0.vocab_size())
    }
}

/// A prompt that text is appended to; only its tail is encoded again.
#[pyclass(name = "GrowingPrompt", module = "recipe_rs")]
pub(super) struct PyGrowingPrompt(GrowingPrompt);

#[pymethods]
impl PyGrowingPrompt {
    #[new]
    fn new(tokenizer: &PyTokenizer) -> Self {
        Self(GrowingPrompt::new(tokenizer.0.clone()))
    }

    /// Append text in which exactly `special_ranges` are added tokens; return how many ids stayed.
    #[pyo3(signature = (text, special_ranges=Vec::new()))]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "lists are copied out of Python"
    )]
    fn append(
        &mut self,
        py: Python<'_>,
        text: &str,
        special_ranges: Vec<(usize, usize)>,
    ) -> Result<usize> {
        py.detach(|| {
            let ranges = byte_ranges(text, &special_ranges)?;
            self.0.append(text, &ranges)
        })
    }

    /// Return the ids of the text so far as native u32.
    fn token_ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        id_bytes(py, self.0.token_ids())
    }

    fn __len__(&self) -> usize {
        self.0.token_ids().len()
    }
}

/// The thread count of a keyword; None lets the codec choose.
fn thread_count(num_threads: Option<usize>) -> PyResult<Option<NonZeroUsize>> {
    match num_threads {
        None => Ok(None),
        Some(count) => NonZeroUsize::new(count).map(Some).ok_or_else(|| {
            PyValueError::new_err("num_threads is 0; give at least 1 or leave it out")
        }),
    }
}

/// Ids as the bytes of native u32.
pub(super) fn id_bytes<'py>(py: Python<'py>, ids: &[u32]) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, size_of_val(ids), |data| {
        for (bytes, id) in data.as_chunks_mut().0.iter_mut().zip(ids) {
            *bytes = id.to_ne_bytes();
        }
        Ok(())
    })
}

/// Byte ranges of ranges in code points.
///
/// # Errors
/// [`Error::Tokenizer`] when they are out of order or go beyond the text.
fn byte_ranges(text: &str, ranges: &[(usize, usize)]) -> Result<Vec<Range<usize>>> {
    let mut boundaries = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    let (mut point, mut byte) = (0, boundaries.next().unwrap_or(0));
    let mut byte_of = |target: usize, range: (usize, usize)| -> Result<usize> {
        if target < point {
            return Err(Error::Tokenizer {
                message: format!(
                    "special range {}..{} overlaps the one before it or is reversed; give ranges in order",
                    range.0, range.1
                ),
                offset: Some(byte),
            });
        }
        while point < target {
            byte = boundaries.next().ok_or_else(|| Error::Tokenizer {
                message: format!(
                    "special range {}..{} ends beyond the text of {point} characters",
                    range.0, range.1
                ),
                offset: Some(text.len()),
            })?;
            point += 1;
        }
        Ok(byte)
    };
    ranges
        .iter()
        .map(|&range| Ok(byte_of(range.0, range)?..byte_of(range.1, range)?))
        .collect()
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyTokenizer>()?;
    module.add_class::<PyGrowingPrompt>()
}
