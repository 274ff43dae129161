//! Python classes of tools and calls, and what all classes of conversations share.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::conversation::{ToolCall, ToolDefinition};
use crate::json::Value;
use crate::python::value::{from_python, to_python};

/// Looks up the value of a named option.
///
/// # Errors
/// `ValueError` that lists the names.
pub(super) fn by_name<T: Copy>(field: &str, name: &str, names: &[(&str, T)]) -> PyResult<T> {
    names
        .iter()
        .find_map(|(known, value)| (*known == name).then_some(*value))
        .ok_or_else(|| {
            let accepted: Vec<String> = names
                .iter()
                .map(|(known, _)| format!("{known:?}"))
                .collect();
            PyValueError::new_err(format!("{field} is {name:?}; use {}", accepted.join(", ")))
        })
}

/// The name of an option.
pub(super) fn name_of<T: PartialEq>(value: &T, names: &[(&'static str, T)]) -> &'static str {
    names
        .iter()
        .find_map(|(name, known)| (known == value).then_some(*name))
        .unwrap_or_default()
}

/// A call that the assistant made earlier.
#[pyclass(name = "ToolCall", module = "recipe_rs", frozen, from_py_object)]
#[derive(Clone)]
pub(super) struct PyToolCall(pub(super) ToolCall);

#[pymethods]
impl PyToolCall {
    #[new]
    fn new(id: String, name: String, arguments: String) -> Self {
        Self(ToolCall {
            id,
            name,
            arguments,
        })
    }

    #[getter]
    fn id(&self) -> &str {
        &self.0.id
    }

    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    #[getter]
    fn arguments(&self) -> &str {
        &self.0.arguments
    }

    fn __repr__(&self) -> String {
        let ToolCall {
            id,
            name,
            arguments,
        } = &self.0;
        format!("ToolCall(id={id:?}, name={name:?}, arguments={arguments:?})")
    }
}

/// A tool that the model may call.
#[pyclass(name = "ToolDefinition", module = "recipe_rs", frozen, from_py_object)]
#[derive(Clone)]
pub(super) struct PyToolDefinition(pub(super) ToolDefinition);

#[pymethods]
impl PyToolDefinition {
    #[new]
    #[pyo3(signature = (name, description = None, parameters = None, strict = None, defer_loading = false))]
    fn new(
        name: String,
        description: Option<String>,
        parameters: Option<&Bound<'_, PyAny>>,
        strict: Option<bool>,
        defer_loading: bool,
    ) -> PyResult<Self> {
        Ok(Self(ToolDefinition {
            name,
            description,
            parameters: parameters.map_or(Ok(Value::Null), from_python)?,
            strict,
            defer_loading,
        }))
    }

    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    #[getter]
    fn description(&self) -> Option<&str> {
        self.0.description.as_deref()
    }

    #[getter]
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.0.parameters)
    }

    #[getter]
    fn strict(&self) -> Option<bool> {
        self.0.strict
    }

    #[getter]
    fn defer_loading(&self) -> bool {
        self.0.defer_loading
    }

    fn __repr__(&self) -> String {
        format!(
            "ToolDefinition(name={:?}, description={}, strict={})",
            self.0.name,
            optional_repr(self.0.description.as_deref()),
            optional_bool_repr(self.0.strict),
        )
    }
}

pub(super) fn optional_repr(text: Option<&str>) -> String {
    text.map_or_else(|| "None".to_owned(), |text| format!("{text:?}"))
}

pub(super) fn optional_bool_repr(flag: Option<bool>) -> &'static str {
    match flag {
        None => "None",
        Some(true) => "True",
        Some(false) => "False",
    }
}

pub(super) fn tool_definitions(
    tools: Option<Vec<PyToolDefinition>>,
) -> Option<Vec<ToolDefinition>> {
    tools.map(|tools| tools.into_iter().map(|tool| tool.0).collect())
}

pub(super) fn tool_objects(tools: &[ToolDefinition]) -> Vec<PyToolDefinition> {
    tools.iter().cloned().map(PyToolDefinition).collect()
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyToolCall>()?;
    module.add_class::<PyToolDefinition>()
}
