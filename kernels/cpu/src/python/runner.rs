//! Steps of a model.

#![expect(
    unsafe_code,
    reason = "writes logits into the memory of a Python buffer"
)]

use super::sampling::{SampleArguments, SampledToken, spec_of, token_of};
use super::weights::PyWeights;
use crate::{Activations, Error, Isa, KvStorage, Phase, Runner, RunnerOptions, StepInput};
use pyo3::buffer::{PyBuffer, PyUntypedBuffer};
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, PoisonError};

/// Computes steps of one model over a paged cache of keys and values.
#[pyclass(name = "Runner", module = "deepinfer_cpu", frozen)]
pub(crate) struct PyRunner {
    runner: Mutex<Runner>,
}

impl PyRunner {
    fn with<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut Runner) -> T + Send) -> T {
        py.detach(|| work(&mut self.runner.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

#[pymethods]
impl PyRunner {
    #[new]
    #[pyo3(signature = (weights, *, num_blocks, block_size, num_threads=None, instruction_set="auto",
        activations="exact", kv_storage="float16"))]
    fn new(
        weights: &PyWeights,
        num_blocks: usize,
        block_size: usize,
        num_threads: Option<usize>,
        instruction_set: &str,
        activations: &str,
        kv_storage: &str,
    ) -> PyResult<Self> {
        let options = RunnerOptions {
            num_blocks,
            block_size,
            num_threads,
            isa: Isa::from_name(instruction_set)?,
            activations: Activations::from_name(activations)?,
            kv_storage: KvStorage::from_name(kv_storage)?,
        };
        Ok(Self {
            runner: Mutex::new(Runner::new(Arc::clone(&weights.weights), options)?),
        })
    }

    /// Runs one step; returns the best token of each logit row, and the token of each sample with its
    /// log probability, rank and most likely tokens.
    #[pyo3(signature = (*, token_ids, row_starts, first_positions, table_starts, block_ids, logit_rows,
        samples=vec![], block_copies=vec![], logits=None))]
    #[expect(
        clippy::too_many_arguments,
        reason = "keyword arguments, one for each array of the plan"
    )]
    #[expect(clippy::needless_pass_by_value, reason = "arguments arrive by value")]
    fn step(
        &self,
        py: Python<'_>,
        token_ids: &Bound<'_, PyAny>,
        row_starts: &Bound<'_, PyAny>,
        first_positions: &Bound<'_, PyAny>,
        table_starts: &Bound<'_, PyAny>,
        block_ids: &Bound<'_, PyAny>,
        logit_rows: &Bound<'_, PyAny>,
        samples: Vec<SampleArguments>,
        block_copies: Vec<(u32, u32)>,
        logits: Option<PyBuffer<f32>>,
    ) -> PyResult<StepTokens> {
        let token_ids = read_words("token_ids", token_ids)?;
        let row_starts = read_words("row_starts", row_starts)?;
        let first_positions = read_words("first_positions", first_positions)?;
        let table_starts = read_words("table_starts", table_starts)?;
        let block_ids = read_words("block_ids", block_ids)?;
        let logit_rows = read_words("logit_rows", logit_rows)?;
        let logits: &mut [f32] = match &logits {
            None => &mut [],
            Some(buffer) if buffer.readonly() || !buffer.is_c_contiguous() => {
                return Err(Error::shape(
                    "logits",
                    "read-only or strided",
                    "a writable contiguous buffer",
                )
                .into());
            }
            // SAFETY: a writable contiguous buffer of floats, as `PyBuffer<f32>` has checked, which
            // stays exported until this function returns; the caller gives it up for the step.
            Some(buffer) => unsafe {
                std::slice::from_raw_parts_mut(buffer.buf_ptr().cast(), buffer.item_count())
            },
        };
        let input = StepInput {
            token_ids: &token_ids,
            row_starts: &row_starts,
            first_positions: &first_positions,
            table_starts: &table_starts,
            block_ids: &block_ids,
            logit_rows: &logit_rows,
            samples: &samples.into_iter().map(spec_of).collect::<Vec<_>>(),
            block_copies: &block_copies,
        };
        let output = self.with(py, |runner| runner.step(&input, logits))?;
        let tokens = output.sampled.into_iter().map(|token| token.map(token_of));
        Ok((output.best, tokens.collect()))
    }

    /// Name of the instruction set in use.
    #[getter]
    fn instruction_set(&self, py: Python<'_>) -> &'static str {
        self.with(py, |runner| runner.isa().name())
    }

    /// Threads in use.
    #[getter]
    fn num_threads(&self, py: Python<'_>) -> usize {
        self.with(py, |runner| runner.num_threads())
    }

    /// Starts (from zero) or stops counting the time of phases.
    fn profile(&self, py: Python<'_>, is_on: bool) {
        self.with(py, |runner| runner.profile().switch(is_on));
    }

    /// Seconds of the caller's thread in each kind of phase: (name, working, waiting).
    fn phase_seconds(&self, py: Python<'_>) -> Vec<(&'static str, f64, f64)> {
        self.with(py, |runner| {
            let times = |phase: Phase| {
                let (work, wait) = runner.profile().times(phase);
                (phase.name(), work.as_secs_f64(), wait.as_secs_f64())
            };
            Phase::ALL.map(times).to_vec()
        })
    }
}

/// Best tokens of the logit rows, and tokens of the samples.
type StepTokens = (Vec<Option<u32>>, Vec<Option<SampledToken>>);

/// Copies an array of native 32-bit unsigned integers.
fn read_words(field: &'static str, array: &Bound<'_, PyAny>) -> PyResult<Vec<u32>> {
    let buffer = PyUntypedBuffer::get(array)?;
    if buffer.item_count() == 0 {
        return Ok(Vec::new());
    }
    let format = buffer.format().to_string_lossy().into_owned();
    let buffer = buffer.into_typed::<u32>().map_err(|_| {
        Error::shape(
            field,
            format!("an array of format {format:?}"),
            "an array of 32-bit unsigned integers",
        )
    })?;
    buffer.to_vec(array.py())
}
