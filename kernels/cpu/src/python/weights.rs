//! Weights of a model, given tensor by tensor.

#![expect(
    unsafe_code,
    reason = "reads the memory of Python buffers without a copy"
)]

use crate::model::available_threads;
use crate::{Error, ModelShape, RawTensor, Weights, WeightsBuilder};
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use std::sync::Arc;

/// A complete model.
#[pyclass(name = "Weights", module = "deepinfer_cpu", frozen)]
pub(crate) struct PyWeights {
    pub(super) weights: Arc<Weights>,
}

#[pymethods]
impl PyWeights {
    /// Bytes of memory that the matrices take.
    #[getter]
    fn num_bytes(&self) -> usize {
        self.weights.num_bytes()
    }
}

/// Takes tensors in any order and repacks each at once.
#[pyclass(name = "WeightsBuilder", module = "deepinfer_cpu")]
pub(crate) struct PyWeightsBuilder {
    builder: Option<WeightsBuilder>,
}

#[pymethods]
impl PyWeightsBuilder {
    #[new]
    #[pyo3(signature = (*, vocab_size, hidden_size, intermediate_size, num_layers, num_qo_heads, num_kv_heads,
        head_dim, rms_norm_eps, rotary_frequencies, sliding_window=None, num_threads=None))]
    #[expect(
        clippy::too_many_arguments,
        reason = "keyword arguments, one for each field of the shape"
    )]
    fn new(
        vocab_size: usize,
        hidden_size: usize,
        intermediate_size: usize,
        num_layers: usize,
        num_qo_heads: usize,
        num_kv_heads: usize,
        head_dim: usize,
        rms_norm_eps: f32,
        rotary_frequencies: Vec<f32>,
        sliding_window: Option<usize>,
        num_threads: Option<usize>,
    ) -> PyResult<Self> {
        let shape = ModelShape {
            vocab_size,
            hidden_size,
            intermediate_size,
            num_layers,
            num_qo_heads,
            num_kv_heads,
            head_dim,
            rms_norm_eps,
            rotary_frequencies,
            sliding_window,
        };
        let builder = WeightsBuilder::new(shape, num_threads.unwrap_or_else(available_threads))?;
        Ok(Self {
            builder: Some(builder),
        })
    }

    /// Takes one tensor; `data` holds its bytes as they lie in the file.
    #[pyo3(signature = (name, storage, shape, data, num_interleaved_heads=0))]
    #[expect(clippy::needless_pass_by_value, reason = "arguments arrive by value")]
    fn insert(
        &mut self,
        py: Python<'_>,
        name: &str,
        storage: &str,
        shape: Vec<usize>,
        data: PyBuffer<u8>,
        num_interleaved_heads: usize,
    ) -> PyResult<()> {
        let builder = self.builder.as_mut().ok_or_else(finished)?;
        if !data.is_c_contiguous() {
            return Err(Error::tensor(name, "its data is not contiguous").into());
        }
        // SAFETY: the buffer is contiguous and stays exported until this function returns; model files
        // are not written while they load.
        let bytes =
            unsafe { std::slice::from_raw_parts(data.buf_ptr().cast::<u8>(), data.len_bytes()) };
        let raw = RawTensor {
            name,
            storage,
            shape: &shape,
            data: bytes,
            num_interleaved_heads,
        };
        Ok(py.detach(|| builder.insert(&raw))?)
    }

    /// The model, once every tensor was given; the builder is empty afterwards.
    fn finish(&mut self) -> PyResult<PyWeights> {
        let builder = self.builder.take().ok_or_else(finished)?;
        Ok(PyWeights {
            weights: Arc::new(builder.finish()?),
        })
    }
}

fn finished() -> PyErr {
    Error::shape(
        "state of the builder",
        "finished",
        "open: finish() may be called once, and last",
    )
    .into()
}
