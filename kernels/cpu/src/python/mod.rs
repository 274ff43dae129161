//! The Python module.

mod error;
mod operators;
mod runner;
mod sampling;
mod weights;

use pyo3::prelude::*;

/// CPU operators for packed language models.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::error::{CpuError, PlanError, ShapeError, TensorError, ThreadError};
    #[pymodule_export]
    use super::operators::{PyMatrix, PyOperators};
    #[pymodule_export]
    use super::runner::PyRunner;
    #[pymodule_export]
    use super::sampling::sample_row;
    #[pymodule_export]
    use super::weights::{PyWeights, PyWeightsBuilder};

    use super::{PyResult, detected_isa};
    use pyo3::prelude::*;

    /// Name of the fastest instruction set that this processor has kernels for.
    #[pyfunction]
    fn instruction_set() -> &'static str {
        detected_isa()
    }

    /// Threads that this process may use: its affinity and its control group's quota count.
    #[pyfunction]
    fn available_threads() -> usize {
        crate::model::available_threads()
    }

    /// (bytes read from memory, 16-bit multiplications with their additions) in a second, at most.
    #[pyfunction]
    #[pyo3(signature = (num_threads=None))]
    fn measure_limits(py: Python<'_>, num_threads: Option<usize>) -> PyResult<(f64, f64)> {
        let num_threads = num_threads
            .unwrap_or_else(crate::model::available_threads)
            .max(1);
        let limits = py.detach(|| crate::Limits::measure(crate::Isa::detect(), num_threads))?;
        Ok((limits.read_bytes, limits.multiply_adds))
    }

    /// Whether weights stored as `storage` (`q4_1`, `f32`, ...) can be computed with.
    #[pyfunction]
    fn covers_storage(storage: &str) -> bool {
        crate::Storage::from_name(storage).is_some()
    }

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}

fn detected_isa() -> &'static str {
    crate::Isa::detect().name()
}
