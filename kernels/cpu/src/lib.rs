//! CPU operators for packed language models.
//!
//! A model's weights stay packed as in its file; one call computes a step of any mix of decode rows
//! and prefill chunks over a paged cache of keys and values. A row's result has the same bits
//! whatever shares the step, however a prompt is cut, and however many threads compute.

#![expect(
    clippy::inline_always,
    reason = "kernels must be inlined into the function that enables their instructions"
)]
#![expect(
    clippy::needless_range_loop,
    reason = "kernels walk several arrays of constant length by one index"
)]

mod activation;
mod error;
mod format;
mod kernels;
mod limits;
mod matrix;
mod model;
mod operators;
mod pages;
#[cfg(feature = "python")]
mod python;
mod sampling;
mod shared;
mod simd;
mod threads;

pub use activation::Activations;
pub use error::{Error, Result};
pub use format::Storage;
pub use kernels::Isa;
pub use limits::Limits;
pub use matrix::{PackedMatrix, RawMatrix};
pub use model::{
    KvStorage, ModelShape, Phase, Profile, RawTensor, Runner, RunnerOptions, StepInput, StepOutput,
    Weights, WeightsBuilder, available_threads,
};
pub use operators::{AttentionShape, Operators};
pub use sampling::{SampleSpec, Sampled, TokenLogprob};
