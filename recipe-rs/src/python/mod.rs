//! The Python module `recipe_rs._native`.

mod chat_template;
mod conversation;
mod error;
#[cfg(feature = "fetch")]
mod image;
mod image_source;
mod render;
mod request;
mod request_options;
mod response;
mod responses_echo;
mod special_tokens;
mod stream;
mod text_stream;
mod tokenizer;
mod tools;
mod value;

use pyo3::prelude::*;

/// The compiled part of `recipe_rs`.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    error::register(module)?;
    special_tokens::register(module)?;
    tokenizer::register(module)?;
    text_stream::register(module)?;
    chat_template::register(module)?;
    image_source::register(module)?;
    #[cfg(feature = "fetch")]
    image::register(module)?;
    tools::register(module)?;
    conversation::register(module)?;
    render::register(module)?;
    stream::register(module)?;
    response::register(module)?;
    responses_echo::register(module)?;
    request_options::register(module)?;
    request::register(module)
}
