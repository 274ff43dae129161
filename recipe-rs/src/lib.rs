//! Codec between chat requests, prompts, token ids and protocol events.
//!
//! Requests of three protocols become one conversation, a conversation becomes a prompt whose
//! special tokens stand only where the template put them, a prompt becomes token ids, and the
//! model's output stream becomes protocol events.

mod error;

pub use error::{Error, Result};
