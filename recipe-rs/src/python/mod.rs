//! The Python module `recipe_rs._native`.

mod conversation;
mod image_source;
mod render;
mod special_tokens;
mod value;

use pyo3::prelude::*;

/// The compiled part of `recipe_rs`.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    special_tokens::register(module)?;
    image_source::register(module)?;
    conversation::register(module)?;
    render::register(module)
}
