//! A Llama-type model as one call per step.

mod attention;
mod ends;
mod input;
mod kv;
mod phases;
mod plan;
mod profile;
mod runner;
mod shape;
mod step;
mod weights;
mod workspace;

pub use plan::{StepInput, StepOutput};
pub use profile::{Phase, Profile};
pub use runner::{Runner, RunnerOptions, available_threads};
pub use shape::ModelShape;
pub use weights::{RawTensor, Weights, WeightsBuilder};

pub(crate) use kv::KvCache;
pub use kv::KvStorage;
pub(crate) use plan::StepPlan;
