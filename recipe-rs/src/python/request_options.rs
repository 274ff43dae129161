//! Python classes of the options of conversion.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::python::special_tokens::PySpecialTokens;
use crate::python::stream::output_format_named;
use crate::request::{
    ConversionOptions, GenericModel, ModelVersion, ReasoningContentBehavior, WebSearchBehavior,
};

macro_rules! mirrored_enum {
    ($(#[$meta:meta])* $class:ident, $name:literal, $core:ident { $($kind:ident),+ }) => {
        $(#[$meta])*
        #[pyclass(name = $name, module = "recipe_rs", frozen, eq, eq_int, hash, from_py_object)]
        #[derive(Clone, Copy, PartialEq, Eq, Hash)]
        pub(super) enum $class {
            $($kind),+
        }

        impl From<$class> for $core {
            fn from(value: $class) -> Self {
                match value {
                    $($class::$kind => Self::$kind),+
                }
            }
        }

        impl From<$core> for $class {
            fn from(value: $core) -> Self {
                match value {
                    $($core::$kind => Self::$kind),+
                }
            }
        }
    };
}

mirrored_enum! {
    /// The model family that a request is for.
    PyModelVersion, "ModelVersion", ModelVersion { DeepseekV4Pro, DeepseekV41Flash, Generic }
}
mirrored_enum! {
    /// What to do with web search tools.
    PyWebSearchBehavior, "WebSearchBehavior", WebSearchBehavior { Drop, Reject }
}
mirrored_enum! {
    /// What to do when assistant history lacks its reasoning.
    PyReasoningContentBehavior, "ReasoningContentBehavior", ReasoningContentBehavior { FillEmpty, Reject }
}

/// Options of conversion; each `with_*` method returns new options.
#[pyclass(name = "ConversionOptions", module = "recipe_rs", frozen)]
pub(super) struct PyConversionOptions(pub(super) ConversionOptions);

impl PyConversionOptions {
    fn with(&self, change: impl FnOnce(ConversionOptions) -> ConversionOptions) -> Self {
        Self(change(self.0.clone()))
    }
}

#[pymethods]
impl PyConversionOptions {
    #[new]
    #[pyo3(signature = (
        *, default_thinking_mode = true, reasoning_content_behavior = PyReasoningContentBehavior::FillEmpty,
        responses_web_search = PyWebSearchBehavior::Drop, messages_web_search = PyWebSearchBehavior::Reject,
        thinking_max_tokens_upper_bound = 393_216, non_thinking_max_tokens_upper_bound = 393_216,
    ))]
    fn new(
        default_thinking_mode: bool,
        reasoning_content_behavior: PyReasoningContentBehavior,
        responses_web_search: PyWebSearchBehavior,
        messages_web_search: PyWebSearchBehavior,
        thinking_max_tokens_upper_bound: u32,
        non_thinking_max_tokens_upper_bound: u32,
    ) -> Self {
        Self(
            ConversionOptions::default()
                .with_default_thinking_mode(default_thinking_mode)
                .with_reasoning_content_behavior(reasoning_content_behavior.into())
                .with_responses_web_search(responses_web_search.into())
                .with_messages_web_search(messages_web_search.into())
                .with_thinking_max_tokens_upper_bound(thinking_max_tokens_upper_bound)
                .with_non_thinking_max_tokens_upper_bound(non_thinking_max_tokens_upper_bound),
        )
    }

    #[getter]
    fn default_thinking_mode(&self) -> bool {
        self.0.default_thinking_mode
    }

    #[getter]
    fn model_versions_by_name<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let versions = PyDict::new(py);
        for (name, version) in self.0.model_versions_by_name() {
            versions.set_item(name, PyModelVersion::from(version))?;
        }
        Ok(versions)
    }

    #[getter]
    fn thinking_max_tokens_upper_bound(&self) -> u32 {
        self.0.thinking_max_tokens_upper_bound
    }

    #[getter]
    fn non_thinking_max_tokens_upper_bound(&self) -> u32 {
        self.0.non_thinking_max_tokens_upper_bound
    }

    #[getter]
    fn reasoning_content_behavior(&self) -> PyReasoningContentBehavior {
        self.0.reasoning_content_behavior.into()
    }

    #[getter]
    fn responses_web_search(&self) -> PyWebSearchBehavior {
        self.0.responses_web_search.into()
    }

    #[getter]
    fn messages_web_search(&self) -> PyWebSearchBehavior {
        self.0.messages_web_search.into()
    }

    #[getter]
    fn special_tokens(&self) -> PySpecialTokens {
        PySpecialTokens {
            inner: self.0.special_tokens.clone(),
        }
    }

    #[getter]
    fn compat(&self) -> bool {
        self.0.compat
    }

    /// Return options with this default for requests that do not speak of thinking.
    fn with_default_thinking_mode(&self, default_thinking_mode: bool) -> Self {
        self.with(|options| options.with_default_thinking_mode(default_thinking_mode))
    }

    /// Return options that treat missing reasoning this way.
    fn with_reasoning_content_behavior(
        &self,
        reasoning_content_behavior: PyReasoningContentBehavior,
    ) -> Self {
        self.with(|options| {
            options.with_reasoning_content_behavior(reasoning_content_behavior.into())
        })
    }

    /// Return options that treat web search in Responses this way.
    fn with_responses_web_search(&self, responses_web_search: PyWebSearchBehavior) -> Self {
        self.with(|options| options.with_responses_web_search(responses_web_search.into()))
    }

    /// Return options that treat web search in Messages this way.
    fn with_messages_web_search(&self, messages_web_search: PyWebSearchBehavior) -> Self {
        self.with(|options| options.with_messages_web_search(messages_web_search.into()))
    }

    /// Return options with other spellings of the special tokens.
    fn with_special_tokens(&self, special_tokens: &PySpecialTokens) -> Self {
        self.with(|options| options.with_special_tokens(special_tokens.inner.clone()))
    }

    /// Return options that accept `model` as a name of `model_version`.
    fn with_model_alias(&self, model: &str, model_version: PyModelVersion) -> Self {
        self.with(|options| options.with_model_alias(model, model_version.into()))
    }

    /// Return options whose accepted names are exactly those of the mapping.
    fn with_model_versions_by_name(
        &self,
        model_versions_by_name: &Bound<'_, PyDict>,
    ) -> PyResult<Self> {
        let mut versions = Vec::with_capacity(model_versions_by_name.len());
        for (name, version) in model_versions_by_name.iter() {
            let version: PyModelVersion = version.extract()?;
            versions.push((name.extract::<String>()?, version.into()));
        }
        Ok(self.with(|options| options.with_model_versions_by_name(versions)))
    }

    /// Return options that accept `model` as a name of a model with its own chat template.
    #[pyo3(signature = (
        model, *, temperature = None, top_p = None, supports_thinking = false, supports_images = false,
        output_format = "none",
    ))]
    fn with_generic_model(
        &self,
        model: &str,
        temperature: Option<f32>,
        top_p: Option<f32>,
        supports_thinking: bool,
        supports_images: bool,
        output_format: &str,
    ) -> PyResult<Self> {
        let generic = GenericModel {
            temperature,
            top_p,
            supports_thinking,
            supports_images,
            output_format: output_format_named(output_format)?,
        };
        Ok(self.with(|options| options.with_generic_model(model, generic)))
    }

    /// Return options with this bound of `max_tokens` in thinking mode.
    fn with_thinking_max_tokens_upper_bound(&self, thinking_max_tokens_upper_bound: u32) -> Self {
        self.with(|options| {
            options.with_thinking_max_tokens_upper_bound(thinking_max_tokens_upper_bound)
        })
    }

    /// Return options with this bound of `max_tokens` outside thinking mode.
    fn with_non_thinking_max_tokens_upper_bound(
        &self,
        non_thinking_max_tokens_upper_bound: u32,
    ) -> Self {
        self.with(|options| {
            options.with_non_thinking_max_tokens_upper_bound(non_thinking_max_tokens_upper_bound)
        })
    }

    /// Return options with another description of the tool `apply_patch`.
    fn with_apply_patch_description(&self, apply_patch_description: &str) -> Self {
        self.with(|options| options.with_apply_patch_description(apply_patch_description))
    }

    /// Return options that follow the official codec also where that is at fault, or not.
    fn with_compat(&self, compat: bool) -> Self {
        self.with(|options| options.with_compat(compat))
    }
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyModelVersion>()?;
    module.add_class::<PyWebSearchBehavior>()?;
    module.add_class::<PyReasoningContentBehavior>()?;
    module.add_class::<PyConversionOptions>()
}
