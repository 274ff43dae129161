//! Python classes of the special tokens.

use pyo3::prelude::*;

use crate::special_tokens::{SpecialToken, SpecialTokens};

macro_rules! special_token_class {
    ($($kind:ident $keyword:ident),+ $(,)?) => {
        /// A kind of special token.
        #[pyclass(name = "SpecialToken", module = "recipe_rs", frozen, eq, hash, from_py_object)]
        #[derive(Clone, Copy, PartialEq, Eq, Hash)]
        pub(super) enum PySpecialToken {
            $($kind),+
        }

        impl From<PySpecialToken> for SpecialToken {
            fn from(kind: PySpecialToken) -> Self {
                match kind {
                    $(PySpecialToken::$kind => Self::$kind),+
                }
            }
        }

        #[pymethods]
        impl PySpecialTokens {
            #[new]
            #[pyo3(signature = (*, $($keyword = None),+))]
            #[expect(clippy::too_many_arguments, reason = "one keyword for each kind")]
            fn new($($keyword: Option<&str>),+) -> Self {
                let mut tokens = SpecialTokens::default();
                $(if let Some(spelling) = $keyword {
                    tokens = tokens.with_token(SpecialToken::$kind, spelling);
                })+
                Self { inner: tokens }
            }

            /// Return the spelling of `token`.
            fn token(&self, token: PySpecialToken) -> &str {
                self.inner.token(token.into())
            }
        }
    };
}

special_token_class! {
    Bos bos,
    Eos eos,
    ThinkingStart thinking_start,
    ThinkingEnd thinking_end,
    System system,
    User user,
    Assistant assistant,
    LatestReminder latest_reminder,
    Dsml dsml,
    Image image,
    Ref r#ref,
    RefEnd ref_end,
    Box r#box,
    BoxEnd box_end,
    Point point,
    PointEnd point_end,
    Polygon polygon,
    PolygonEnd polygon_end,
}

#[pymethods]
impl PySpecialToken {
    /// Return the spelling of this token in DeepSeek's vocabularies.
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "methods of Python classes borrow self"
    )]
    fn default_str(&self) -> &'static str {
        SpecialToken::from(*self).default_str()
    }
}

/// The spelling of each special token.
#[pyclass(name = "SpecialTokens", module = "recipe_rs", frozen, from_py_object)]
#[derive(Clone)]
pub(super) struct PySpecialTokens {
    pub(super) inner: SpecialTokens,
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PySpecialToken>()?;
    module.add_class::<PySpecialTokens>()?;
    module.add(
        "IMAGE_SPECIAL_TOKEN_ID",
        crate::special_tokens::IMAGE_SPECIAL_TOKEN_ID,
    )?;
    module.add(
        "SYSTEM_PLACEHOLDER",
        crate::special_tokens::SYSTEM_PLACEHOLDER,
    )
}
