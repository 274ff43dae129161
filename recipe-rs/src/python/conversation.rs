//! Python classes of messages and of the conversation itself.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::conversation::{
    AssistantMessage, Content, Conversation, Message, ReasoningEffort, ResponseFormat,
    SystemMessage, ToolChoice, ToolMessage,
};
use crate::python::image_source::{PyImageSource, image_source_objects};
use crate::python::tools::{
    PyToolCall, PyToolDefinition, by_name, name_of, optional_bool_repr, optional_repr,
    tool_definitions, tool_objects,
};
use crate::python::value::{from_python, to_python};
use crate::special_tokens::SpecialToken;

/// One message of a conversation; the classes of the roles derive from it.
#[pyclass(
    name = "Message",
    module = "recipe_rs",
    frozen,
    subclass,
    from_py_object
)]
#[derive(Clone)]
pub(super) struct PyMessage(Message);

#[pymethods]
impl PyMessage {
    #[getter]
    fn role(&self) -> &'static str {
        self.0.role()
    }

    #[getter]
    fn content(&self) -> &str {
        self.0.text()
    }

    #[getter]
    fn reasoning_content(&self) -> Option<&str> {
        match &self.0 {
            Message::Assistant(message) => message.reasoning_content.as_deref(),
            _ => None,
        }
    }

    #[getter]
    fn tool_calls(&self) -> Option<Vec<PyToolCall>> {
        match &self.0 {
            Message::Assistant(message) => {
                let calls = message.tool_calls.as_ref()?;
                Some(calls.iter().cloned().map(PyToolCall).collect())
            }
            _ => None,
        }
    }

    #[getter]
    fn tool_call_id(&self) -> Option<&str> {
        match &self.0 {
            Message::Tool(message) => message.tool_call_id.as_deref(),
            _ => None,
        }
    }

    #[getter]
    fn image_sources(&self, py: Python<'_>) -> PyResult<Vec<Py<PyAny>>> {
        image_source_objects(py, self.0.image_sources())
    }

    #[getter]
    fn prefix(&self) -> bool {
        matches!(&self.0, Message::Assistant(message) if message.prefix)
    }

    fn __repr__(&self) -> String {
        let images = self.0.image_sources().len();
        match &self.0 {
            Message::System(_) => format!("SystemMessage({:?})", self.0.text()),
            Message::User(content) => {
                format!("UserMessage({:?}, image_sources={images})", content.text())
            }
            Message::Assistant(message) => format!(
                "AssistantMessage({:?}, reasoning_content={}, tool_calls={}, prefix={})",
                message.content,
                optional_bool_repr(Some(message.reasoning_content.is_some())),
                message.tool_calls.as_ref().map_or(0, Vec::len),
                optional_bool_repr(Some(message.prefix)),
            ),
            Message::Tool(message) => format!(
                "ToolMessage({:?}, tool_call_id={}, image_sources={images})",
                message.content.text(),
                optional_repr(message.tool_call_id.as_deref()),
            ),
            Message::LatestReminder(text) => format!("LatestReminderMessage({text:?})"),
        }
    }
}

fn content(
    text: &str,
    image_sources: Option<Vec<PyImageSource>>,
    image_token: Option<&str>,
) -> PyResult<Content> {
    let image_token = image_token.unwrap_or(SpecialToken::Image.default_str());
    if image_token.is_empty() {
        return Err(PyValueError::new_err(
            "image_token is empty; name the spelling of the image marks",
        ));
    }
    let sources = image_sources
        .unwrap_or_default()
        .into_iter()
        .map(|source| source.0);
    Ok(Content::with_images(text, sources.collect(), image_token))
}

/// Instructions to the model.
#[pyclass(name = "SystemMessage", module = "recipe_rs", frozen, extends = PyMessage)]
pub(super) struct PySystemMessage;

#[pymethods]
impl PySystemMessage {
    #[new]
    #[pyo3(signature = (content, image_sources = None, tools = None, *, image_token = None))]
    fn new(
        content: &str,
        image_sources: Option<Vec<PyImageSource>>,
        tools: Option<Vec<PyToolDefinition>>,
        image_token: Option<&str>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let message = SystemMessage {
            content: self::content(content, image_sources, image_token)?,
            tools: tool_definitions(tools),
        };
        Ok(PyClassInitializer::from(PyMessage(Message::System(message))).add_subclass(Self))
    }

    #[getter]
    fn tools(slf: &Bound<'_, Self>) -> Option<Vec<PyToolDefinition>> {
        match &slf.as_super().get().0 {
            Message::System(message) => message.tools.as_deref().map(tool_objects),
            _ => None,
        }
    }
}

/// What the user said.
#[pyclass(name = "UserMessage", module = "recipe_rs", frozen, extends = PyMessage)]
pub(super) struct PyUserMessage;

#[pymethods]
impl PyUserMessage {
    #[new]
    #[pyo3(signature = (content, image_sources = None, *, image_token = None))]
    fn new(
        content: &str,
        image_sources: Option<Vec<PyImageSource>>,
        image_token: Option<&str>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let content = self::content(content, image_sources, image_token)?;
        Ok(PyClassInitializer::from(PyMessage(Message::User(content))).add_subclass(Self))
    }
}

/// What the assistant said, thought and called.
#[pyclass(name = "AssistantMessage", module = "recipe_rs", frozen, extends = PyMessage)]
pub(super) struct PyAssistantMessage;

#[pymethods]
impl PyAssistantMessage {
    #[new]
    #[pyo3(signature = (content, reasoning_content = None, tool_calls = None, prefix = false))]
    fn new(
        content: String,
        reasoning_content: Option<String>,
        tool_calls: Option<Vec<PyToolCall>>,
        prefix: bool,
    ) -> PyClassInitializer<Self> {
        let message = AssistantMessage {
            content,
            reasoning_content,
            tool_calls: tool_calls.map(|calls| calls.into_iter().map(|call| call.0).collect()),
            prefix,
        };
        PyClassInitializer::from(PyMessage(Message::Assistant(message))).add_subclass(Self)
    }
}

/// The result of a call.
#[pyclass(name = "ToolMessage", module = "recipe_rs", frozen, extends = PyMessage)]
pub(super) struct PyToolMessage;

#[pymethods]
impl PyToolMessage {
    #[new]
    #[pyo3(signature = (content, tool_call_id = None, image_sources = None, *, image_token = None))]
    fn new(
        content: &str,
        tool_call_id: Option<String>,
        image_sources: Option<Vec<PyImageSource>>,
        image_token: Option<&str>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let message = ToolMessage {
            content: self::content(content, image_sources, image_token)?,
            tool_call_id,
        };
        Ok(PyClassInitializer::from(PyMessage(Message::Tool(message))).add_subclass(Self))
    }
}

/// Extra instructions at the place where they stand.
#[pyclass(name = "LatestReminderMessage", module = "recipe_rs", frozen, extends = PyMessage)]
pub(super) struct PyLatestReminderMessage;

#[pymethods]
impl PyLatestReminderMessage {
    #[new]
    fn new(content: String) -> PyClassInitializer<Self> {
        PyClassInitializer::from(PyMessage(Message::LatestReminder(content))).add_subclass(Self)
    }
}

fn message_object(py: Python<'_>, message: &Message) -> PyResult<Py<PyAny>> {
    let base = PyClassInitializer::from(PyMessage(message.clone()));
    Ok(match message {
        Message::System(_) => Py::new(py, base.add_subclass(PySystemMessage))?.into_any(),
        Message::User(_) => Py::new(py, base.add_subclass(PyUserMessage))?.into_any(),
        Message::Assistant(_) => Py::new(py, base.add_subclass(PyAssistantMessage))?.into_any(),
        Message::Tool(_) => Py::new(py, base.add_subclass(PyToolMessage))?.into_any(),
        Message::LatestReminder(_) => {
            Py::new(py, base.add_subclass(PyLatestReminderMessage))?.into_any()
        }
    })
}

/// The messages and what shapes the prompt besides them.
#[pyclass(name = "Conversation", module = "recipe_rs", frozen, from_py_object)]
#[derive(Clone)]
pub(super) struct PyConversation(pub(super) std::sync::Arc<Conversation>);

#[pymethods]
impl PyConversation {
    #[new]
    #[pyo3(signature = (
        messages = None, *, thinking_mode = true, tools = None, tool_choice = "auto", reasoning_effort = None,
        response_format = "text", response_schema = None, response_regex = None,
    ))]
    #[expect(clippy::too_many_arguments, reason = "keywords of the official class")]
    fn new(
        messages: Option<Vec<PyMessage>>,
        thinking_mode: bool,
        tools: Option<Vec<PyToolDefinition>>,
        tool_choice: &str,
        reasoning_effort: Option<&Bound<'_, PyAny>>,
        response_format: &str,
        response_schema: Option<&Bound<'_, PyAny>>,
        response_regex: Option<String>,
    ) -> PyResult<Self> {
        let plain_formats = [("text", false), ("json_object", true)];
        let json_object = by_name("response_format", response_format, &plain_formats)?;
        let response_format = match (response_schema, response_regex) {
            (Some(_), Some(_)) => {
                return Err(PyValueError::new_err(
                    "response_schema and response_regex exclude each other; give one",
                ));
            }
            (Some(_), None) | (None, Some(_)) if json_object => {
                return Err(PyValueError::new_err(
                    "response_format \"json_object\" excludes response_schema and response_regex; give one of the three",
                ));
            }
            (Some(schema), None) => ResponseFormat::JsonSchema(from_python(schema)?),
            (None, Some(regex)) => ResponseFormat::Regex(regex),
            (None, None) if json_object => ResponseFormat::JsonObject,
            (None, None) => ResponseFormat::Text,
        };
        let conversation = Conversation {
            messages: messages
                .unwrap_or_default()
                .into_iter()
                .map(|message| message.0)
                .collect(),
            thinking_mode,
            tools: tool_definitions(tools).unwrap_or_default(),
            tool_choice: by_name("tool_choice", tool_choice, &ToolChoice::NAMES)?,
            reasoning_effort: reasoning_effort.map(effort_from_python).transpose()?,
            response_format,
        };
        Ok(Self(std::sync::Arc::new(conversation)))
    }

    #[getter]
    fn messages(&self, py: Python<'_>) -> PyResult<Vec<Py<PyAny>>> {
        self.0
            .messages
            .iter()
            .map(|message| message_object(py, message))
            .collect()
    }

    #[getter]
    fn thinking_mode(&self) -> bool {
        self.0.thinking_mode
    }

    #[getter]
    fn tools(&self) -> Vec<PyToolDefinition> {
        tool_objects(&self.0.tools)
    }

    #[getter]
    fn tool_choice(&self) -> &'static str {
        name_of(&self.0.tool_choice, &ToolChoice::NAMES)
    }

    #[getter]
    fn reasoning_effort<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.0.reasoning_effort {
            None => Ok(py.None().into_bound(py)),
            Some(ReasoningEffort::Level(level)) => Ok(level.into_pyobject(py)?.into_any()),
            Some(effort) => Ok(name_of(&effort, &ReasoningEffort::NAMES)
                .into_pyobject(py)?
                .into_any()),
        }
    }

    #[getter]
    fn response_format(&self) -> &'static str {
        self.0.response_format.name()
    }

    #[getter]
    fn response_schema<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        match &self.0.response_format {
            ResponseFormat::JsonSchema(schema) => to_python(py, schema).map(Some),
            _ => Ok(None),
        }
    }

    #[getter]
    fn response_regex(&self) -> Option<&str> {
        match &self.0.response_format {
            ResponseFormat::Regex(regex) => Some(regex),
            _ => None,
        }
    }

    fn __repr__(&self) -> String {
        let effort = match self.0.reasoning_effort {
            None => "None".to_owned(),
            Some(ReasoningEffort::Level(level)) => level.to_string(),
            Some(effort) => format!("{:?}", name_of(&effort, &ReasoningEffort::NAMES)),
        };
        format!(
            "Conversation(messages={}, thinking_mode={}, tools={}, tool_choice={:?}, reasoning_effort={effort}, \
             response_format={:?})",
            self.0.messages.len(),
            optional_bool_repr(Some(self.0.thinking_mode)),
            self.0.tools.len(),
            self.tool_choice(),
            self.0.response_format.name(),
        )
    }
}

/// An effort by name, or as a level from 1 to 100.
fn effort_from_python(effort: &Bound<'_, PyAny>) -> PyResult<ReasoningEffort> {
    if let Ok(level) = effort.extract::<u8>() {
        if (1..=100).contains(&level) {
            return Ok(ReasoningEffort::Level(level));
        }
        return Err(PyValueError::new_err(format!(
            "reasoning_effort is {level}; a level is from 1 to 100"
        )));
    }
    by_name(
        "reasoning_effort",
        effort.extract()?,
        &ReasoningEffort::NAMES,
    )
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyMessage>()?;
    module.add_class::<PySystemMessage>()?;
    module.add_class::<PyUserMessage>()?;
    module.add_class::<PyAssistantMessage>()?;
    module.add_class::<PyToolMessage>()?;
    module.add_class::<PyLatestReminderMessage>()?;
    module.add_class::<PyConversation>()
}
