//! Python classes of the output stream: chunks of the backend, options, and the processor.

use std::collections::BTreeMap;
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::response::{PyGenerator, PyProtocolChunk};
use super::special_tokens::PySpecialTokens;
use super::tokenizer::PyTokenizer;
use crate::stream::{
    InferenceChunk, InferenceFinishReason, OutputFormat, ParsingOptions, PromptUsage,
    ThinkingInitialStage, TokenBytes, TokenLogprob,
};

/// Token counts of the prompt, from the backend.
#[pyclass(name = "PromptUsage", module = "recipe_rs", frozen, eq, from_py_object)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct PyPromptUsage(PromptUsage);

#[pymethods]
impl PyPromptUsage {
    #[new]
    #[pyo3(signature = (*, prompt_tokens = 0, prompt_cache_hit_tokens = 0))]
    fn new(prompt_tokens: u64, prompt_cache_hit_tokens: u64) -> Self {
        Self(PromptUsage {
            prompt_tokens,
            prompt_cache_hit_tokens,
        })
    }

    #[getter]
    fn prompt_tokens(&self) -> u64 {
        self.0.prompt_tokens
    }

    #[getter]
    fn prompt_cache_hit_tokens(&self) -> u64 {
        self.0.prompt_cache_hit_tokens
    }

    fn __repr__(&self) -> String {
        format!(
            "PromptUsage(prompt_tokens={}, prompt_cache_hit_tokens={})",
            self.0.prompt_tokens, self.0.prompt_cache_hit_tokens
        )
    }
}

/// Why the backend stopped.
#[pyclass(
    name = "InferenceFinishReason",
    module = "recipe_rs",
    frozen,
    eq,
    hash,
    from_py_object
)]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum PyInferenceFinishReason {
    Stop,
    Length,
    ContentFilter,
}

impl From<PyInferenceFinishReason> for InferenceFinishReason {
    fn from(reason: PyInferenceFinishReason) -> Self {
        match reason {
            PyInferenceFinishReason::Stop => Self::Stop,
            PyInferenceFinishReason::Length => Self::Length,
            PyInferenceFinishReason::ContentFilter => Self::ContentFilter,
        }
    }
}

impl From<InferenceFinishReason> for PyInferenceFinishReason {
    fn from(reason: InferenceFinishReason) -> Self {
        match reason {
            InferenceFinishReason::Stop => Self::Stop,
            InferenceFinishReason::Length => Self::Length,
            InferenceFinishReason::ContentFilter => Self::ContentFilter,
        }
    }
}

/// One update from the backend.
#[pyclass(name = "InferenceChunk", module = "recipe_rs", frozen)]
pub(super) struct PyInferenceChunk(InferenceChunk);

type Logprobs = Vec<(f32, Vec<(u32, f32)>)>;

#[pymethods]
impl PyInferenceChunk {
    /// The prompt was accepted.
    #[staticmethod]
    #[pyo3(signature = (*, prompt_usage = None, system_fingerprint = None))]
    fn ready(prompt_usage: Option<PyPromptUsage>, system_fingerprint: Option<String>) -> Self {
        Self(InferenceChunk::Ready {
            prompt_usage: prompt_usage.map(|usage| usage.0),
            system_fingerprint,
        })
    }

    /// More output as text that stands for `token_count` tokens.
    #[staticmethod]
    #[pyo3(signature = (content, token_count = 0))]
    fn text(content: String, token_count: u64) -> Self {
        Self(InferenceChunk::text(content, token_count))
    }

    /// More output as ids; `logprobs` has one `(logprob, [(id, logprob), ...])` pair per id.
    #[staticmethod]
    #[pyo3(signature = (token_ids, logprobs = None))]
    fn tokens(token_ids: Vec<u32>, logprobs: Option<Logprobs>) -> Self {
        let logprobs = logprobs.map(|logprobs| {
            logprobs
                .into_iter()
                .map(|(logprob, top_logprobs)| TokenLogprob {
                    logprob,
                    top_logprobs,
                })
                .collect()
        });
        Self(InferenceChunk::Tokens {
            token_ids,
            logprobs,
        })
    }

    /// The output is complete.
    #[staticmethod]
    fn finish(finish_reason: PyInferenceFinishReason) -> Self {
        Self(InferenceChunk::finish(finish_reason.into()))
    }

    #[getter]
    fn kind(&self) -> &'static str {
        match self.0 {
            InferenceChunk::Ready { .. } => "ready",
            InferenceChunk::Text { .. } => "text",
            InferenceChunk::Tokens { .. } => "tokens",
            InferenceChunk::Finish { .. } => "finish",
        }
    }

    #[getter]
    fn content(&self) -> Option<&str> {
        match &self.0 {
            InferenceChunk::Text { content, .. } => Some(content),
            _ => None,
        }
    }

    #[getter]
    fn token_ids(&self) -> Option<Vec<u32>> {
        match &self.0 {
            InferenceChunk::Tokens { token_ids, .. } => Some(token_ids.clone()),
            _ => None,
        }
    }

    #[getter]
    fn token_count(&self) -> Option<u64> {
        match &self.0 {
            InferenceChunk::Text { token_count, .. } => Some(*token_count),
            _ => None,
        }
    }

    #[getter]
    fn finish_reason(&self) -> Option<PyInferenceFinishReason> {
        match &self.0 {
            InferenceChunk::Finish { finish_reason } => Some((*finish_reason).into()),
            _ => None,
        }
    }

    #[getter]
    fn prompt_usage(&self) -> Option<PyPromptUsage> {
        match &self.0 {
            InferenceChunk::Ready { prompt_usage, .. } => {
                Some(PyPromptUsage(prompt_usage.unwrap_or_default()))
            }
            _ => None,
        }
    }

    #[getter]
    fn system_fingerprint(&self) -> Option<&str> {
        match &self.0 {
            InferenceChunk::Ready {
                system_fingerprint, ..
            } => system_fingerprint.as_deref(),
            _ => None,
        }
    }
}

/// Where parsing begins in thinking mode.
#[pyclass(
    name = "ThinkingInitialStage",
    module = "recipe_rs",
    frozen,
    eq,
    hash,
    from_py_object
)]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum PyThinkingInitialStage {
    ReasoningStart,
    ReasoningContinuation,
    ContentContinuation,
}

impl From<PyThinkingInitialStage> for ThinkingInitialStage {
    fn from(stage: PyThinkingInitialStage) -> Self {
        match stage {
            PyThinkingInitialStage::ReasoningStart => Self::ReasoningStart,
            PyThinkingInitialStage::ReasoningContinuation => Self::ReasoningContinuation,
            PyThinkingInitialStage::ContentContinuation => Self::ContentContinuation,
        }
    }
}

impl From<ThinkingInitialStage> for PyThinkingInitialStage {
    fn from(stage: ThinkingInitialStage) -> Self {
        match stage {
            ThinkingInitialStage::ReasoningStart => Self::ReasoningStart,
            ThinkingInitialStage::ReasoningContinuation => Self::ReasoningContinuation,
            ThinkingInitialStage::ContentContinuation => Self::ContentContinuation,
        }
    }
}

#[pymethods]
impl PyThinkingInitialStage {
    /// Return whether parsing begins in reasoning.
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "methods of Python classes borrow self"
    )]
    fn starts_in_reasoning(&self) -> bool {
        ThinkingInitialStage::from(*self).starts_in_reasoning()
    }
}

/// Settings of one output stream.
#[pyclass(name = "ParsingOptions", module = "recipe_rs", eq, from_py_object)]
#[derive(Clone, PartialEq, Eq)]
pub(super) struct PyParsingOptions(pub(super) ParsingOptions);

#[pymethods]
impl PyParsingOptions {
    #[new]
    #[pyo3(signature = (
        *,
        parse_tool_calls = true,
        starts_in_tool_calls = false,
        parse_json_output = false,
        thinking_initial_stage = None,
        stop_sequences = None,
        special_tokens = None,
        output_format = "dsml",
        tool_parameters = None,
        compat = true,
    ))]
    #[expect(clippy::too_many_arguments, reason = "one keyword for each setting")]
    #[expect(
        clippy::fn_params_excessive_bools,
        reason = "keywords with the names of the official codec"
    )]
    fn new(
        parse_tool_calls: bool,
        starts_in_tool_calls: bool,
        parse_json_output: bool,
        thinking_initial_stage: Option<PyThinkingInitialStage>,
        stop_sequences: Option<Vec<String>>,
        special_tokens: Option<PySpecialTokens>,
        output_format: &str,
        tool_parameters: Option<BTreeMap<String, Vec<String>>>,
        compat: bool,
    ) -> PyResult<Self> {
        Ok(Self(ParsingOptions {
            parse_tool_calls,
            starts_in_tool_calls,
            parse_json_output,
            thinking_initial_stage: thinking_initial_stage.map(Into::into),
            stop_sequences: stop_sequences.unwrap_or_default(),
            special_tokens: special_tokens.map_or_else(Default::default, |tokens| tokens.inner),
            output_format: output_format_named(output_format)?,
            tool_parameters: tool_parameters.unwrap_or_default(),
            compat,
        }))
    }

    #[getter]
    fn parse_tool_calls(&self) -> bool {
        self.0.parse_tool_calls
    }

    #[setter]
    fn set_parse_tool_calls(&mut self, value: bool) {
        self.0.parse_tool_calls = value;
    }

    #[getter]
    fn starts_in_tool_calls(&self) -> bool {
        self.0.starts_in_tool_calls
    }

    #[setter]
    fn set_starts_in_tool_calls(&mut self, value: bool) {
        self.0.starts_in_tool_calls = value;
    }

    #[getter]
    fn parse_json_output(&self) -> bool {
        self.0.parse_json_output
    }

    #[setter]
    fn set_parse_json_output(&mut self, value: bool) {
        self.0.parse_json_output = value;
    }

    #[getter]
    fn thinking_initial_stage(&self) -> Option<PyThinkingInitialStage> {
        self.0.thinking_initial_stage.map(Into::into)
    }

    #[setter]
    fn set_thinking_initial_stage(&mut self, value: Option<PyThinkingInitialStage>) {
        self.0.thinking_initial_stage = value.map(Into::into);
    }

    #[getter]
    fn stop_sequences(&self) -> Vec<String> {
        self.0.stop_sequences.clone()
    }

    #[setter]
    fn set_stop_sequences(&mut self, value: Vec<String>) {
        self.0.stop_sequences = value;
    }

    #[getter]
    fn special_tokens(&self) -> PySpecialTokens {
        PySpecialTokens {
            inner: self.0.special_tokens.clone(),
        }
    }

    #[setter]
    fn set_special_tokens(&mut self, value: PySpecialTokens) {
        self.0.special_tokens = value.inner;
    }

    #[getter]
    fn output_format(&self) -> &'static str {
        self.0.output_format.name()
    }

    #[setter]
    fn set_output_format(&mut self, value: &str) -> PyResult<()> {
        self.0.output_format = output_format_named(value)?;
        Ok(())
    }

    #[getter]
    fn tool_parameters(&self) -> BTreeMap<String, Vec<String>> {
        self.0.tool_parameters.clone()
    }

    #[setter]
    fn set_tool_parameters(&mut self, value: BTreeMap<String, Vec<String>>) {
        self.0.tool_parameters = value;
    }

    #[getter]
    fn compat(&self) -> bool {
        self.0.compat
    }

    #[setter]
    fn set_compat(&mut self, value: bool) {
        self.0.compat = value;
    }
}

/// The format of this name.
///
/// # Errors
/// `ValueError` that lists the names.
pub(super) fn output_format_named(name: &str) -> PyResult<OutputFormat> {
    OutputFormat::from_name(name).ok_or_else(|| {
        let names: Vec<_> = OutputFormat::NAMES.map(|(name, _)| name).to_vec();
        PyValueError::new_err(format!(
            "output_format is {name:?}; it must be one of {}",
            names.join(", ")
        ))
    })
}

/// What became of the bytes and tokens of a stream.
#[pyclass(name = "StreamDiagnostics", module = "recipe_rs", frozen, get_all)]
#[expect(
    clippy::struct_field_names,
    reason = "counts are named num_ everywhere"
)]
pub(super) struct PyStreamDiagnostics {
    num_input_bytes: u64,
    num_visible_bytes: u64,
    num_markup_bytes: u64,
    num_dropped_bytes: u64,
    num_dropped_control_tokens: u64,
    num_repairs: u64,
}

/// Reads the output of one request and emits the chunks of a protocol.
#[pyclass(name = "StreamProcessor", module = "recipe_rs")]
pub(super) struct PyStreamProcessor(super::response::Processor);

#[pymethods]
impl PyStreamProcessor {
    /// Consume the generator; the tokenizer decodes chunks of token ids.
    #[new]
    #[pyo3(signature = (generator, options, tokenizer = None))]
    fn new(
        generator: PyGenerator<'_>,
        options: &PyParsingOptions,
        tokenizer: Option<PyTokenizer>,
    ) -> PyResult<Self> {
        let vocabulary =
            tokenizer.map(|tokenizer| tokenizer.stream_vocabulary() as Arc<dyn TokenBytes>);
        generator.into_processor(&options.0, vocabulary).map(Self)
    }

    /// Whether processing completed normally and the processor was not closed.
    #[getter]
    fn finished(&self) -> bool {
        self.0.is_finished()
    }

    /// What became of the bytes and tokens so far.
    #[getter]
    fn diagnostics(&self) -> PyStreamDiagnostics {
        let diagnostics = self.0.diagnostics();
        PyStreamDiagnostics {
            num_input_bytes: diagnostics.num_input_bytes,
            num_visible_bytes: diagnostics.num_visible_bytes,
            num_markup_bytes: diagnostics.num_markup_bytes,
            num_dropped_bytes: diagnostics.num_dropped_bytes,
            num_dropped_control_tokens: diagnostics.num_dropped_control_tokens,
            num_repairs: diagnostics.num_repairs,
        }
    }

    /// Process one chunk.
    ///
    /// Raises `StreamError`, a `RuntimeError`, after the end or `close`, for ids without a tokenizer,
    /// and when the number of log probabilities differs from that of the ids.
    fn push(&mut self, py: Python<'_>, chunk: &PyInferenceChunk) -> PyResult<Vec<PyProtocolChunk>> {
        let chunk = chunk.0.clone();
        let processor = &mut self.0;
        Ok(py.detach(|| processor.push(chunk))?)
    }

    /// Close the input and return what is left; after the end, nothing.
    fn finish(&mut self) -> PyResult<Vec<PyProtocolChunk>> {
        Ok(self.0.finish()?)
    }

    /// Give up the stream.
    fn close(&mut self) {
        self.0.close();
    }
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyPromptUsage>()?;
    module.add_class::<PyInferenceFinishReason>()?;
    module.add_class::<PyInferenceChunk>()?;
    module.add_class::<PyThinkingInitialStage>()?;
    module.add_class::<PyParsingOptions>()?;
    module.add_class::<PyStreamDiagnostics>()?;
    module.add_class::<PyStreamProcessor>()
}
