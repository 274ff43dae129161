//! Python classes of requests and of what they are converted to.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

use crate::error::Result;
use crate::json::Value;
use crate::python::conversation::PyConversation;
use crate::python::request_options::{PyConversionOptions, PyModelVersion};
use crate::python::response::{
    PyChatCompletionChunkGenerator, PyMessagesChunkGenerator, PyResponsesChunkGenerator,
};
use crate::python::responses_echo::PyResponsesEcho;
use crate::python::stream::PyParsingOptions;
use crate::python::value::{from_python, to_python};
use crate::request::{
    ChatCompletionRequest, ConversationRequest, InferenceOptions, MessagesRequest,
    OutputConstraint, ResponsesRequest, check_body, check_size, parse_body,
};

/// Reads a body given as bytes, str or dict, of at most `max_bytes` (of a dict, its JSON without blanks).
fn body_value(py: Python<'_>, body: &Bound<'_, PyAny>, max_bytes: Option<u64>) -> PyResult<Value> {
    let parse = |bytes: &[u8]| {
        check_size(bytes.len() as u64, max_bytes)?;
        py.detach(|| parse_body(bytes))
    };
    if let Ok(bytes) = body.cast::<PyBytes>() {
        return Ok(parse(bytes.as_bytes())?);
    }
    if let Ok(text) = body.cast::<PyString>() {
        return Ok(parse(text.to_str()?.as_bytes())?);
    }
    if body.is_instance_of::<PyDict>() {
        let value = from_python(body)?;
        if max_bytes.is_some() {
            check_size(crate::json::compact(&value).len() as u64, max_bytes)?;
        }
        return Ok(check_body(value)?);
    }
    Err(PyTypeError::new_err(format!(
        "body is {}; pass bytes, str or dict",
        body.get_type().name()?
    )))
}

/// A request that conversion takes out.
struct Consumable<T>(Mutex<Option<T>>);

impl<T> Consumable<T> {
    fn new(value: T) -> Self {
        Self(Mutex::new(Some(value)))
    }

    fn take(&self) -> PyResult<T> {
        let mut guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        guard.take().ok_or_else(consumed)
    }

    fn read<R>(&self, reader: impl FnOnce(&T) -> R) -> PyResult<R> {
        let guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        guard.as_ref().map(reader).ok_or_else(consumed)
    }
}

fn consumed() -> PyErr {
    PyRuntimeError::new_err("the request was converted already; build a new one from the body")
}

macro_rules! request_class {
    ($class:ident, $name:literal, $core:ty, $generator:ident, $doc:literal $(, { $($extra:tt)* })?) => {
        #[doc = $doc]
        #[pyclass(name = $name, module = "recipe_rs", frozen)]
        pub(super) struct $class(Consumable<$core>);

        #[pymethods]
        impl $class {
            /// Read a body; one of more than `max_bytes` is refused before it is parsed.
            #[new]
            #[pyo3(signature = (body, *, max_bytes = None))]
            fn new(
                py: Python<'_>,
                body: &Bound<'_, PyAny>,
                max_bytes: Option<u64>,
            ) -> PyResult<Self> {
                let body = body_value(py, body, max_bytes)?;
                let request: Result<$core> = py.detach(move || <$core>::from_value(&body));
                Ok(Self(Consumable::new(request?)))
            }

            #[getter]
            fn model(&self) -> PyResult<String> {
                self.0.read(|request| request.model().to_owned())
            }

            /// Convert the request, which is used up even if that fails.
            fn convert(
                &self,
                py: Python<'_>,
                options: &PyConversionOptions,
            ) -> PyResult<PyConversationRequest> {
                let request = self.0.take()?;
                let converted = py.detach(|| request.convert(&options.0))?;
                Ok(PyConversationRequest(Arc::new(converted)))
            }

            /// Return a generator of what one response to a converted request is streamed as.
            #[staticmethod]
            fn chunk_generator(
                request: &PyConversationRequest,
                id: String,
                model: String,
            ) -> $generator {
                $generator(Some(<$core>::chunk_generator(&request.0, id, model)))
            }

            $($($extra)*)?
        }
    };
}

request_class!(
    PyChatCompletionRequest,
    "ChatCompletionRequest",
    ChatCompletionRequest,
    PyChatCompletionChunkGenerator,
    "A Chat Completions request."
);

request_class!(
    PyResponsesRequest,
    "ResponsesRequest",
    ResponsesRequest,
    PyResponsesChunkGenerator,
    "A Responses request.",
    {
        /// Return the function names of tools in namespaces, each with namespace and own name.
        fn namespace_tool_map(
            &self,
            options: &PyConversionOptions,
        ) -> PyResult<BTreeMap<String, (String, String)>> {
            Ok(self
                .0
                .read(|request| request.namespace_tool_map(&options.0))??)
        }

        /// Return the settings that responses repeat, as the request gave them.
        fn echo(&self) -> PyResult<PyResponsesEcho> {
            self.0.read(ResponsesRequest::echo).map(PyResponsesEcho)
        }
    }
);
request_class!(
    PyMessagesRequest,
    "MessagesRequest",
    MessagesRequest,
    PyMessagesChunkGenerator,
    "A Messages request."
);

/// A converted request.
#[pyclass(name = "ConversationRequest", module = "recipe_rs", frozen)]
pub(super) struct PyConversationRequest(pub(super) Arc<ConversationRequest>);

#[pymethods]
impl PyConversationRequest {
    #[new]
    fn new(conversation: &PyConversation, model_version: PyModelVersion) -> Self {
        let conversation = conversation.0.as_ref().clone();
        Self(Arc::new(ConversationRequest::new(
            conversation,
            model_version.into(),
        )))
    }

    #[getter]
    fn conversation(&self) -> PyConversation {
        PyConversation(Arc::new(self.0.conversation.clone()))
    }

    #[getter]
    fn inference_options(&self) -> PyInferenceOptions {
        PyInferenceOptions(self.0.inference_options.clone())
    }

    #[getter]
    fn parsing_options(&self) -> PyParsingOptions {
        PyParsingOptions(self.0.parsing_options.clone())
    }

    #[getter]
    fn model_version(&self) -> PyModelVersion {
        self.0.model_version.into()
    }

    #[getter]
    fn stream(&self) -> bool {
        self.0.stream
    }

    #[getter]
    fn response_constraint(&self) -> Option<PyOutputConstraint> {
        self.0.response_constraint.clone().map(PyOutputConstraint)
    }

    #[getter]
    fn extra_sampling<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &Value::Object(self.0.extra_sampling.clone()))
    }

    #[getter]
    fn chat_template_kwargs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &Value::Object(self.0.chat_template_kwargs.clone()))
    }

    #[getter]
    fn n(&self) -> u32 {
        self.0.n
    }

    #[getter]
    fn reports_usage(&self) -> bool {
        self.0.reporting.usage
    }

    #[getter]
    fn ignored_fields(&self) -> Vec<String> {
        self.0.ignored_fields.clone()
    }

    /// Return the number of tokens to generate after a prompt of `prompt_tokens`.
    fn resolve_max_tokens(&self, prompt_tokens: u64, context_limit: u64) -> Result<u32> {
        self.0.resolve_max_tokens(prompt_tokens, context_limit)
    }
}

/// What the backend samples with.
#[pyclass(name = "InferenceOptions", module = "recipe_rs", frozen)]
pub(super) struct PyInferenceOptions(InferenceOptions);

#[pymethods]
impl PyInferenceOptions {
    #[getter]
    fn max_tokens(&self) -> Option<u32> {
        self.0.max_tokens
    }

    #[getter]
    fn temperature(&self) -> Option<f32> {
        self.0.temperature
    }

    #[getter]
    fn top_p(&self) -> Option<f32> {
        self.0.top_p
    }

    #[getter]
    fn logprobs(&self) -> bool {
        self.0.logprobs
    }

    #[getter]
    fn top_logprobs(&self) -> Option<u8> {
        self.0.top_logprobs
    }

    #[getter]
    fn seed(&self) -> Option<u64> {
        self.0.seed
    }

    #[getter]
    fn output_constraint(&self) -> Option<PyOutputConstraint> {
        self.0.output_constraint.clone().map(PyOutputConstraint)
    }
}

/// What a backend may enforce on the output.
#[pyclass(name = "OutputConstraint", module = "recipe_rs", frozen)]
pub(super) struct PyOutputConstraint(OutputConstraint);

#[pymethods]
impl PyOutputConstraint {
    #[getter]
    fn kind(&self) -> &'static str {
        self.0.kind()
    }

    #[getter]
    fn schema(&self) -> &str {
        self.0.schema()
    }

    fn __repr__(&self) -> String {
        format!(
            "OutputConstraint(kind={:?}, schema={:?})",
            self.0.kind(),
            self.0.schema()
        )
    }
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyConversationRequest>()?;
    module.add_class::<PyInferenceOptions>()?;
    module.add_class::<PyOutputConstraint>()?;
    module.add_class::<PyChatCompletionRequest>()?;
    module.add_class::<PyResponsesRequest>()?;
    module.add_class::<PyMessagesRequest>()
}
