//! The Python class of the request settings that Responses objects repeat.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::json::Value;
use crate::python::value::{from_python, to_python};
use crate::response::ResponsesEcho;

/// Request settings that Responses objects report; a server sets those that it decides itself.
#[pyclass(name = "ResponsesEcho", module = "recipe_rs")]
pub(super) struct PyResponsesEcho(pub(super) ResponsesEcho);

#[pymethods]
impl PyResponsesEcho {
    /// The settings of a request that set none.
    #[new]
    fn new() -> Self {
        Self(ResponsesEcho::default())
    }

    #[getter]
    fn instructions(&self) -> Option<&str> {
        self.0.instructions.as_deref()
    }

    #[setter]
    fn set_instructions(&mut self, value: Option<String>) {
        self.0.instructions = value;
    }

    #[getter]
    fn max_output_tokens(&self) -> Option<u64> {
        self.0.max_output_tokens
    }

    #[setter]
    fn set_max_output_tokens(&mut self, value: Option<u64>) {
        self.0.max_output_tokens = value;
    }

    #[getter]
    fn temperature(&self) -> f32 {
        self.0.temperature
    }

    #[setter]
    fn set_temperature(&mut self, value: f32) {
        self.0.temperature = value;
    }

    #[getter]
    fn top_p(&self) -> f32 {
        self.0.top_p
    }

    #[setter]
    fn set_top_p(&mut self, value: f32) {
        self.0.top_p = value;
    }

    #[getter]
    fn top_logprobs(&self) -> u64 {
        self.0.top_logprobs
    }

    #[setter]
    fn set_top_logprobs(&mut self, value: u64) {
        self.0.top_logprobs = value;
    }

    #[getter]
    fn user(&self) -> Option<&str> {
        self.0.user.as_deref()
    }

    #[setter]
    fn set_user(&mut self, value: Option<String>) {
        self.0.user = value;
    }

    #[getter]
    fn reasoning<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.0.reasoning)
    }

    #[setter]
    fn set_reasoning(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.0.reasoning = from_python(value)?;
        Ok(())
    }

    #[getter]
    fn text<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.0.text)
    }

    #[setter]
    fn set_text(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.0.text = from_python(value)?;
        Ok(())
    }

    #[getter]
    fn tool_choice<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.0.tool_choice)
    }

    #[setter]
    fn set_tool_choice(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.0.tool_choice = from_python(value)?;
        Ok(())
    }

    #[getter]
    fn tools<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.0.tools)
    }

    #[setter]
    fn set_tools(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.0.tools = from_python(value)?;
        Ok(())
    }

    #[getter]
    fn store(&self) -> bool {
        self.0.store
    }

    #[setter]
    fn set_store(&mut self, value: bool) {
        self.0.store = value;
    }

    #[getter]
    fn background(&self) -> bool {
        self.0.background
    }

    #[setter]
    fn set_background(&mut self, value: bool) {
        self.0.background = value;
    }

    #[getter]
    fn parallel_tool_calls(&self) -> bool {
        self.0.parallel_tool_calls
    }

    #[setter]
    fn set_parallel_tool_calls(&mut self, value: bool) {
        self.0.parallel_tool_calls = value;
    }

    #[getter]
    fn previous_response_id(&self) -> Option<&str> {
        self.0.previous_response_id.as_deref()
    }

    #[setter]
    fn set_previous_response_id(&mut self, value: Option<String>) {
        self.0.previous_response_id = value;
    }

    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &Value::Object(self.0.metadata.clone()))
    }

    #[setter]
    fn set_metadata(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let Value::Object(metadata) = from_python(value)? else {
            return Err(PyTypeError::new_err("metadata must be a dict"));
        };
        self.0.metadata = metadata;
        Ok(())
    }
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyResponsesEcho>()
}
