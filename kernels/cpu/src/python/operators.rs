//! Single operators over Python buffers.

#![expect(unsafe_code, reason = "reads and writes the memory of Python buffers")]

use super::sampling::floats;
use crate::model::available_threads;
use crate::{Activations, AttentionShape, Error, Isa, Operators, PackedMatrix, RawMatrix, Storage};
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;

/// A weight matrix, repacked from the bytes of a model file.
#[pyclass(name = "Matrix", module = "deepinfer_cpu", frozen)]
pub(crate) struct PyMatrix {
    matrix: PackedMatrix,
}

#[pymethods]
impl PyMatrix {
    #[new]
    #[expect(clippy::needless_pass_by_value, reason = "arguments arrive by value")]
    fn new(
        py: Python<'_>,
        storage: &str,
        rows: usize,
        columns: usize,
        data: PyBuffer<u8>,
    ) -> PyResult<Self> {
        let name = "data";
        let Some(form) = Storage::from_name(storage) else {
            return Err(Error::tensor(name, format!("storage {storage} is not covered")).into());
        };
        if !data.is_c_contiguous() {
            return Err(Error::tensor(name, "it is not contiguous").into());
        }
        // SAFETY: contiguous bytes that stay exported until this function returns; the caller gives
        // them up for the call.
        let bytes =
            unsafe { std::slice::from_raw_parts(data.buf_ptr().cast::<u8>(), data.len_bytes()) };
        let raw = RawMatrix {
            name,
            storage: form,
            rows,
            columns,
            data: bytes,
            num_interleaved_heads: 0,
        };
        let matrix = py.detach(|| PackedMatrix::pack(&raw, available_threads()))?;
        Ok(Self { matrix })
    }

    /// (outputs, inputs).
    #[getter]
    fn shape(&self) -> (usize, usize) {
        (self.matrix.rows(), self.matrix.columns())
    }
}

/// Single operators.
#[pyclass(name = "Operators", module = "deepinfer_cpu", frozen)]
pub(crate) struct PyOperators {
    operators: Operators,
}

#[pymethods]
#[expect(clippy::needless_pass_by_value, reason = "arguments arrive by value")]
impl PyOperators {
    #[new]
    #[pyo3(signature = (*, num_threads=None, instruction_set="auto"))]
    fn new(num_threads: Option<usize>, instruction_set: &str) -> PyResult<Self> {
        let num_threads = num_threads.unwrap_or_else(available_threads);
        let operators = Operators::new(Isa::from_name(instruction_set)?, num_threads)?;
        Ok(Self { operators })
    }

    #[pyo3(signature = (matrix, x, out, *, activations="exact"))]
    fn linear(
        &self,
        py: Python<'_>,
        matrix: &PyMatrix,
        x: PyBuffer<f32>,
        out: PyBuffer<f32>,
        activations: &str,
    ) -> PyResult<()> {
        let form = Activations::from_name(activations)?;
        let (x, out) = (floats("x", &x)?, floats_mut("out", &out)?);
        Ok(py.detach(|| self.operators.linear(&matrix.matrix, x, form, out))?)
    }

    #[pyo3(signature = (matrices, starts, x, out, *, activations="exact"))]
    fn grouped_linear(
        &self,
        py: Python<'_>,
        matrices: Vec<Py<PyMatrix>>,
        starts: Vec<usize>,
        x: PyBuffer<f32>,
        out: PyBuffer<f32>,
        activations: &str,
    ) -> PyResult<()> {
        let form = Activations::from_name(activations)?;
        let (x, out) = (floats("x", &x)?, floats_mut("out", &out)?);
        let matrices: Vec<&PackedMatrix> = matrices.iter().map(|each| &each.get().matrix).collect();
        let work = || {
            self.operators
                .grouped_linear(&matrices, &starts, x, form, out)
        };
        Ok(py.detach(work)?)
    }

    fn rms_norm(
        &self,
        x: PyBuffer<f32>,
        weight: PyBuffer<f32>,
        eps: f32,
        out: PyBuffer<f32>,
    ) -> PyResult<()> {
        let (x, weight) = (floats("x", &x)?, floats("weight", &weight)?);
        Ok(self
            .operators
            .rms_norm(x, weight, eps, floats_mut("out", &out)?)?)
    }

    fn silu_and_mul(
        &self,
        gate_up: PyBuffer<f32>,
        width: usize,
        out: PyBuffer<f32>,
    ) -> PyResult<()> {
        let gate_up = floats("gate_up", &gate_up)?;
        let out = floats_mut("out", &out)?;
        Ok(self.operators.silu_and_mul(gate_up, width, out)?)
    }

    fn rope(
        &self,
        x: PyBuffer<f32>,
        head_dim: usize,
        cosines: PyBuffer<f32>,
        sines: PyBuffer<f32>,
    ) -> PyResult<()> {
        let (cosines, sines) = (floats("cosines", &cosines)?, floats("sines", &sines)?);
        let x = floats_mut("x", &x)?;
        Ok(self.operators.rope(x, head_dim, cosines, sines)?)
    }

    #[pyo3(signature = (queries, keys, values, out, *, num_qo_heads, num_kv_heads, head_dim, softmax_scale,
        sliding_window=None))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments")]
    fn attention(
        &self,
        py: Python<'_>,
        queries: PyBuffer<f32>,
        keys: PyBuffer<f32>,
        values: PyBuffer<f32>,
        out: PyBuffer<f32>,
        num_qo_heads: usize,
        num_kv_heads: usize,
        head_dim: usize,
        softmax_scale: f32,
        sliding_window: Option<usize>,
    ) -> PyResult<()> {
        let shape = AttentionShape {
            num_qo_heads,
            num_kv_heads,
            head_dim,
            softmax_scale,
            sliding_window,
        };
        let queries = floats("queries", &queries)?;
        let (keys, values) = (floats("keys", &keys)?, floats("values", &values)?);
        let out = floats_mut("out", &out)?;
        Ok(py.detach(|| self.operators.attention(shape, queries, keys, values, out))?)
    }
}

/// A writable contiguous buffer of floats as a slice, for as long as `buffer` lives.
#[expect(
    clippy::mut_from_ref,
    reason = "a buffer hands out its memory, not itself"
)]
fn floats_mut<'a>(field: &'static str, buffer: &'a PyBuffer<f32>) -> crate::Result<&'a mut [f32]> {
    if buffer.readonly() || !buffer.is_c_contiguous() {
        let rule = "a writable contiguous buffer";
        return Err(Error::shape(field, "read-only or strided", rule));
    }
    // SAFETY: writable contiguous floats, as `PyBuffer<f32>` has checked, exported as long as `buffer`
    // lives; the caller gives them up for the call, and passes no memory twice.
    Ok(unsafe { std::slice::from_raw_parts_mut(buffer.buf_ptr().cast(), buffer.item_count()) })
}
