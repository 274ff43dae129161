//! Python class of the chat-template encoding.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::json::{Map, Value};
use crate::python::render::PyRenderedPrompt;
use crate::python::tokenizer::{PyTokenizer, id_bytes};
use crate::{ChatTemplateEncoding, ChatTemplateInput, Error, Result};

/// The prompt encoding of a model that brings its own chat template.
#[pyclass(name = "ChatTemplateEncoding", module = "recipe_rs", frozen)]
pub(super) struct PyChatTemplateEncoding(ChatTemplateEncoding);

#[pymethods]
impl PyChatTemplateEncoding {
    #[new]
    #[pyo3(signature = (template, tokenizer, *, bos_token="", eos_token=""))]
    fn new(
        template: &str,
        tokenizer: &PyTokenizer,
        bos_token: &str,
        eos_token: &str,
    ) -> Result<Self> {
        ChatTemplateEncoding::new(template, tokenizer.0.clone(), bos_token, eos_token).map(Self)
    }

    /// Render a conversation; messages, tools and further variables of the template are JSON texts.
    #[pyo3(signature = (messages_json, *, tools_json=None, kwargs_json=None, add_generation_prompt=true,
                        continue_final_message=false))]
    fn render(
        &self,
        py: Python<'_>,
        messages_json: &str,
        tools_json: Option<&str>,
        kwargs_json: Option<&str>,
        add_generation_prompt: bool,
        continue_final_message: bool,
    ) -> Result<PyRenderedPrompt> {
        py.detach(|| {
            let messages: Value = parse("messages", messages_json)?;
            let tools: Option<Value> = tools_json.map(|text| parse("tools", text)).transpose()?;
            let kwargs: Option<Map<String, Value>> = kwargs_json
                .map(|text| parse("chat_template_kwargs", text))
                .transpose()?;
            self.0.render(ChatTemplateInput {
                messages: &messages,
                tools: tools.as_ref(),
                kwargs: kwargs.as_ref(),
                add_generation_prompt,
                continue_final_message,
            })
        })
        .map(PyRenderedPrompt)
    }

    /// Return the ids of a rendered prompt as native u32.
    fn encode<'py>(
        &self,
        py: Python<'py>,
        rendered: &PyRenderedPrompt,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let prompt = &rendered.0;
        let ids = py.detach(|| {
            self.0
                .tokenizer()
                .encode_ranges(&prompt.prompt, &prompt.special_ranges, None)
        })?;
        id_bytes(py, &ids)
    }
}

fn parse<T: serde::de::DeserializeOwned>(name: &str, text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| Error::Render {
        message: format!("{name} cannot be read as JSON: {error}"),
        message_index: None,
    })
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyChatTemplateEncoding>()
}
