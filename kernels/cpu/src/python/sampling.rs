//! Samples as Python tuples, and the choice from one row.

#![expect(
    unsafe_code,
    reason = "reads the memory of a Python buffer without a copy"
)]

use crate::kernels::Isa;
use crate::sampling::{SampleSpec, Sampled, sample as choose};
use crate::{Error, Result};
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;

/// (logit row, temperature, top k, top p, min p, key, token, number of most likely tokens).
pub(super) type SampleArguments = (u32, f64, u32, f64, f64, u64, Option<u32>, Option<u32>);

/// (token, (log probability, rank, most likely tokens)).
pub(super) type SampledToken = (u32, Option<(f64, u32, Vec<(u32, f64)>)>);

pub(super) fn spec_of(arguments: SampleArguments) -> SampleSpec {
    let (logit_row, temperature, top_k, top_p, min_p, key, token, num_top) = arguments;
    SampleSpec {
        logit_row,
        temperature,
        top_k,
        top_p,
        min_p,
        key,
        token,
        num_top,
    }
}

pub(super) fn token_of(sampled: Sampled) -> SampledToken {
    let logprob = sampled.logprob;
    (
        sampled.token,
        logprob.map(|entry| (entry.logprob, entry.rank, entry.top)),
    )
}

/// A contiguous buffer of floats as a slice, for as long as `buffer` lives.
pub(super) fn floats<'a>(field: &'static str, buffer: &'a PyBuffer<f32>) -> Result<&'a [f32]> {
    if !buffer.is_c_contiguous() {
        return Err(Error::shape(field, "strided", "a contiguous buffer"));
    }
    // SAFETY: contiguous floats, as `PyBuffer<f32>` has checked, exported as long as `buffer` lives;
    // the caller gives them up for the call.
    Ok(unsafe { std::slice::from_raw_parts(buffer.buf_ptr().cast(), buffer.item_count()) })
}

/// Chooses a token from one row of logits as `Runner.step` does; None where no logit is usable.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments arrive by value")]
pub(super) fn sample_row(
    py: Python<'_>,
    logits: PyBuffer<f32>,
    sample: SampleArguments,
) -> PyResult<Option<SampledToken>> {
    let logits = floats("logits", &logits)?;
    let spec = spec_of(sample);
    spec.check(0, 1, logits.len())?;
    let kernels = Isa::detect().kernels()?;
    let sampled = py.detach(|| choose(&*kernels, logits, &spec));
    Ok(sampled.map(token_of))
}
