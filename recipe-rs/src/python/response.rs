//! Python classes of the protocols: generators, chunks, and whole responses.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use super::responses_echo::PyResponsesEcho;
use super::stream::PyThinkingInitialStage;
use crate::error::Result;
use crate::response::{
    CallIds, ChatCompletionChunk, ChatCompletionChunkGenerator, ChatCompletionResponse,
    MessagesChunkGenerator, MessagesResponse, MessagesStreamEvent, ResponsesChunkGenerator,
    ResponsesResponse, ResponsesStreamEvent, UsageStyle,
};
use crate::stream::{
    InferenceChunk, ParsingOptions, PromptUsage, StreamDiagnostics, StreamProcessor, TokenBytes,
};

/// Takes the value out of an object that is consumed by use.
fn take<T>(slot: &mut Option<T>, what: &str) -> PyResult<T> {
    slot.take()
        .ok_or_else(|| PyRuntimeError::new_err(format!("this {what} was already used")))
}

fn used<'a, T>(slot: Option<&'a T>, what: &str) -> PyResult<&'a T> {
    slot.ok_or_else(|| PyRuntimeError::new_err(format!("this {what} was already used")))
}

/// Makes Chat Completions chunks; a stream processor consumes it.
#[pyclass(name = "ChatCompletionChunkGenerator", module = "recipe_rs")]
pub(crate) struct PyChatCompletionChunkGenerator(pub(crate) Option<ChatCompletionChunkGenerator>);

#[pymethods]
impl PyChatCompletionChunkGenerator {
    /// Make a generator without a converted request.
    ///
    /// `usage` says where usage is reported: `finish`, `finish_with_nulls`, `separate` or `none`.
    #[new]
    #[pyo3(signature = (
        id, model, thinking_initial_stage = None, *,
        usage = "finish", choice_index = 0, created = None, call_id_seed = None,
    ))]
    fn new(
        id: String,
        model: String,
        thinking_initial_stage: Option<PyThinkingInitialStage>,
        usage: &str,
        choice_index: u32,
        created: Option<i64>,
        call_id_seed: Option<u64>,
    ) -> PyResult<Self> {
        let mut generator = ChatCompletionChunkGenerator::new(id, model)
            .with_thinking(thinking_initial_stage.map(Into::into))
            .with_usage_style(usage_style_named(usage)?)
            .with_choice_index(choice_index);
        if let Some(created) = created {
            generator = generator.with_created(created);
        }
        if let Some(seed) = call_id_seed {
            generator = generator.with_call_ids(CallIds::seeded(seed));
        }
        Ok(Self(Some(generator)))
    }

    /// Consume this generator and make one whose call ids depend on the seed only.
    fn with_call_id_seed(&mut self, seed: u64) -> PyResult<Self> {
        let generator = take(&mut self.0, "chunk generator")?;
        Ok(Self(Some(generator.with_call_ids(CallIds::seeded(seed)))))
    }

    /// Consume this generator and make one for the choice of this index.
    fn with_choice_index(&mut self, index: u32) -> PyResult<Self> {
        let generator = take(&mut self.0, "chunk generator")?;
        Ok(Self(Some(generator.with_choice_index(index))))
    }

    /// Consume this generator and make one that reports usage elsewhere.
    fn with_usage(&mut self, usage: &str) -> PyResult<Self> {
        let style = usage_style_named(usage)?;
        let generator = take(&mut self.0, "chunk generator")?;
        Ok(Self(Some(generator.with_usage_style(style))))
    }
}

fn usage_style_named(name: &str) -> PyResult<UsageStyle> {
    match name {
        "finish" => Ok(UsageStyle::OnFinish),
        "finish_with_nulls" => Ok(UsageStyle::OnFinishWithNulls),
        "separate" => Ok(UsageStyle::SeparateChunk),
        "none" => Ok(UsageStyle::Omitted),
        _ => Err(PyValueError::new_err(format!(
            "usage is {name:?}; it must be finish, finish_with_nulls, separate or none"
        ))),
    }
}

/// Makes Responses events; a stream processor consumes it.
#[pyclass(name = "ResponsesChunkGenerator", module = "recipe_rs")]
pub(crate) struct PyResponsesChunkGenerator(pub(crate) Option<ResponsesChunkGenerator>);

#[pymethods]
impl PyResponsesChunkGenerator {
    /// Make a generator without a converted request.
    ///
    /// `custom_tools` names the tools whose calls carry raw input; `compat` keeps `phase` and finished
    /// arguments as the official codec has them.
    #[new]
    #[pyo3(signature = (
        id, model, thinking_mode = false, *,
        custom_tools = None, has_tool_search = false, compat = true, created = None,
        call_id_seed = None,
    ))]
    #[expect(clippy::too_many_arguments, reason = "one keyword for each setting")]
    fn new(
        id: String,
        model: String,
        thinking_mode: bool,
        custom_tools: Option<BTreeSet<String>>,
        has_tool_search: bool,
        compat: bool,
        created: Option<i64>,
        call_id_seed: Option<u64>,
    ) -> Self {
        let mut generator = ResponsesChunkGenerator::new(id, model)
            .with_thinking(thinking_mode)
            .with_custom_tools(custom_tools.unwrap_or_default())
            .with_tool_search(has_tool_search)
            .with_compat(compat);
        if let Some(created) = created {
            generator = generator.with_created(created);
        }
        if let Some(seed) = call_id_seed {
            generator = generator.with_call_ids(CallIds::seeded(seed));
        }
        Self(Some(generator))
    }

    /// Consume this generator and make one that splits namespace tool names.
    fn with_namespace_tool_map(
        &mut self,
        namespace_tool_map: BTreeMap<String, (String, String)>,
    ) -> PyResult<Self> {
        let generator = take(&mut self.0, "chunk generator")?;
        Ok(Self(Some(
            generator.with_namespace_tool_map(namespace_tool_map),
        )))
    }

    /// Consume this generator and make one whose responses report the request settings.
    fn with_echo(&mut self, echo: &PyResponsesEcho) -> PyResult<Self> {
        let generator = take(&mut self.0, "chunk generator")?;
        Ok(Self(Some(generator.with_echo(&echo.0))))
    }

    /// Consume this generator and make one whose call ids depend on the seed only.
    fn with_call_id_seed(&mut self, seed: u64) -> PyResult<Self> {
        let generator = take(&mut self.0, "chunk generator")?;
        Ok(Self(Some(generator.with_call_ids(CallIds::seeded(seed)))))
    }

    /// Consume this generator and make one with or without the official quirks.
    fn with_compat(&mut self, compat: bool) -> PyResult<Self> {
        let generator = take(&mut self.0, "chunk generator")?;
        Ok(Self(Some(generator.with_compat(compat))))
    }
}

/// Makes Messages events; a stream processor consumes it.
#[pyclass(name = "MessagesChunkGenerator", module = "recipe_rs")]
pub(crate) struct PyMessagesChunkGenerator(pub(crate) Option<MessagesChunkGenerator>);

#[pymethods]
impl PyMessagesChunkGenerator {
    #[new]
    #[pyo3(signature = (id, model, thinking_mode, *, call_id_seed = None))]
    fn new(id: String, model: String, thinking_mode: bool, call_id_seed: Option<u64>) -> Self {
        let mut generator = MessagesChunkGenerator::new(id, model, thinking_mode);
        if let Some(seed) = call_id_seed {
            generator = generator.with_call_ids(CallIds::seeded(seed));
        }
        Self(Some(generator))
    }

    /// Consume this generator and make one with this signature at the end of thinking blocks.
    fn with_signature(&mut self, signature: String) -> PyResult<Self> {
        let generator = take(&mut self.0, "chunk generator")?;
        Ok(Self(Some(generator.with_signature(signature))))
    }

    /// Consume this generator and make one whose call ids depend on the seed only.
    fn with_call_id_seed(&mut self, seed: u64) -> PyResult<Self> {
        let generator = take(&mut self.0, "chunk generator")?;
        Ok(Self(Some(generator.with_call_ids(CallIds::seeded(seed)))))
    }
}

macro_rules! protocol_class {
    ($chunk_class:ident, $chunk_name:literal, $chunk:ty, $chunk_doc:literal,
     $response_class:ident, $response_name:literal, $response:ty, $response_doc:literal,
     $new:expr, $event_name:expr, $done:expr) => {
        #[doc = $chunk_doc]
        #[pyclass(name = $chunk_name, module = "recipe_rs")]
        pub(crate) struct $chunk_class(Option<$chunk>);

        #[pymethods]
        impl $chunk_class {
            /// Return the JSON text of this chunk.
            fn to_json(&self) -> PyResult<String> {
                Ok(used(self.0.as_ref(), "protocol chunk")?.to_json())
            }
        }

        #[doc = $response_doc]
        #[pyclass(name = $response_name, module = "recipe_rs")]
        pub(crate) struct $response_class($response);

        #[pymethods]
        impl $response_class {
            #[new]
            fn new(
                id: &str,
                model: &str,
                created: i64,
                prompt_tokens: u64,
                prompt_cache_hit_tokens: u64,
            ) -> Self {
                let usage = PromptUsage {
                    prompt_tokens,
                    prompt_cache_hit_tokens,
                };
                let new: fn(&str, &str, i64, PromptUsage) -> $response = $new;
                Self(new(id, model, created, usage))
            }

            /// Consume the chunk and add it to the response.
            fn accumulate(&mut self, chunk: &mut $chunk_class) -> PyResult<()> {
                self.0.accumulate(take(&mut chunk.0, "protocol chunk")?);
                Ok(())
            }

            /// Return the JSON text of the response so far.
            fn to_json(&self) -> String {
                self.0.to_json()
            }

            /// Return the SSE event name of a chunk, or None for unnamed data.
            #[staticmethod]
            fn sse_event_name(chunk: &$chunk_class) -> PyResult<Option<&'static str>> {
                let name: fn(&$chunk) -> Option<&'static str> = $event_name;
                Ok(name(used(chunk.0.as_ref(), "protocol chunk")?))
            }

            /// Return the data of the last SSE message, or None if there is none.
            #[staticmethod]
            #[allow(
                clippy::unnecessary_wraps,
                reason = "the protocols differ in whether there is one"
            )]
            fn sse_done_data() -> Option<&'static str> {
                $done
            }
        }
    };
}

protocol_class!(
    PyChatCompletionChunk,
    "ChatCompletionChunk",
    ChatCompletionChunk,
    "One chunk of a Chat Completions stream; accumulation consumes it.",
    PyChatCompletionResponse,
    "ChatCompletionResponse",
    ChatCompletionResponse,
    "A Chat Completions response, built from its chunks.",
    |id, model, created, _| ChatCompletionResponse::new(id, model, created),
    |_| None,
    Some("[DONE]")
);
protocol_class!(
    PyResponsesStreamEvent,
    "ResponsesStreamEvent",
    ResponsesStreamEvent,
    "One event of a Responses stream; accumulation consumes it.",
    PyResponsesResponse,
    "ResponsesResponse",
    ResponsesResponse,
    "A Responses response, built from its events.",
    |id, model, created, _| ResponsesResponse::new(id, model, created),
    |event| Some(event.name()),
    None
);
protocol_class!(
    PyMessagesStreamEvent,
    "MessagesStreamEvent",
    MessagesStreamEvent,
    "One event of a Messages stream; accumulation consumes it.",
    PyMessagesResponse,
    "MessagesResponse",
    MessagesResponse,
    "A Messages response, built from its events.",
    |id, model, _, usage| MessagesResponse::new(id, model, usage),
    |event| Some(event.name()),
    None
);

/// Any of the three generators.
#[derive(FromPyObject)]
pub(super) enum PyGenerator<'py> {
    Chat(PyRefMut<'py, PyChatCompletionChunkGenerator>),
    Responses(PyRefMut<'py, PyResponsesChunkGenerator>),
    Messages(PyRefMut<'py, PyMessagesChunkGenerator>),
}

/// A chunk of any of the three protocols.
#[derive(IntoPyObject)]
pub(super) enum PyProtocolChunk {
    Chat(PyChatCompletionChunk),
    Responses(PyResponsesStreamEvent),
    Messages(PyMessagesStreamEvent),
}

/// A stream processor of any of the three protocols.
pub(super) enum Processor {
    Chat(Box<StreamProcessor<ChatCompletionChunkGenerator>>),
    Responses(Box<StreamProcessor<ResponsesChunkGenerator>>),
    Messages(Box<StreamProcessor<MessagesChunkGenerator>>),
}

impl PyGenerator<'_> {
    /// Consumes the generator.
    pub(super) fn into_processor(
        self,
        options: &ParsingOptions,
        vocabulary: Option<Arc<dyn TokenBytes>>,
    ) -> PyResult<Processor> {
        let what = "chunk generator";
        Ok(match self {
            Self::Chat(mut generator) => Processor::Chat(Box::new(StreamProcessor::new(
                take(&mut generator.0, what)?,
                options,
                vocabulary,
            ))),
            Self::Responses(mut generator) => Processor::Responses(Box::new(StreamProcessor::new(
                take(&mut generator.0, what)?,
                options,
                vocabulary,
            ))),
            Self::Messages(mut generator) => Processor::Messages(Box::new(StreamProcessor::new(
                take(&mut generator.0, what)?,
                options,
                vocabulary,
            ))),
        })
    }
}

/// Calls the same method of whichever processor it is.
macro_rules! each {
    ($self:expr, $processor:ident => $call:expr) => {
        match $self {
            Processor::Chat($processor) => wrap($call, |chunk| {
                PyProtocolChunk::Chat(PyChatCompletionChunk(Some(chunk)))
            }),
            Processor::Responses($processor) => wrap($call, |chunk| {
                PyProtocolChunk::Responses(PyResponsesStreamEvent(Some(chunk)))
            }),
            Processor::Messages($processor) => wrap($call, |chunk| {
                PyProtocolChunk::Messages(PyMessagesStreamEvent(Some(chunk)))
            }),
        }
    };
}

fn wrap<T>(chunks: Result<Vec<T>>, make: fn(T) -> PyProtocolChunk) -> Result<Vec<PyProtocolChunk>> {
    Ok(chunks?.into_iter().map(make).collect())
}

impl Processor {
    pub(super) fn push(&mut self, chunk: InferenceChunk) -> Result<Vec<PyProtocolChunk>> {
        each!(self, processor => processor.push(chunk))
    }

    pub(super) fn finish(&mut self) -> Result<Vec<PyProtocolChunk>> {
        each!(self, processor => processor.finish())
    }

    pub(super) fn close(&mut self) {
        match self {
            Self::Chat(processor) => processor.close(),
            Self::Responses(processor) => processor.close(),
            Self::Messages(processor) => processor.close(),
        }
    }

    pub(super) fn is_finished(&self) -> bool {
        match self {
            Self::Chat(processor) => processor.is_finished(),
            Self::Responses(processor) => processor.is_finished(),
            Self::Messages(processor) => processor.is_finished(),
        }
    }

    pub(super) fn diagnostics(&self) -> StreamDiagnostics {
        match self {
            Self::Chat(processor) => processor.diagnostics(),
            Self::Responses(processor) => processor.diagnostics(),
            Self::Messages(processor) => processor.diagnostics(),
        }
    }
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyChatCompletionChunkGenerator>()?;
    module.add_class::<PyResponsesChunkGenerator>()?;
    module.add_class::<PyMessagesChunkGenerator>()?;
    module.add_class::<PyChatCompletionChunk>()?;
    module.add_class::<PyResponsesStreamEvent>()?;
    module.add_class::<PyMessagesStreamEvent>()?;
    module.add_class::<PyChatCompletionResponse>()?;
    module.add_class::<PyResponsesResponse>()?;
    module.add_class::<PyMessagesResponse>()
}
