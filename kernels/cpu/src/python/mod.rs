//! The Python module.

mod error;
mod runner;
mod weights;

use pyo3::prelude::*;

/// CPU operators for packed language models.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::error::{CpuError, PlanError, ShapeError, TensorError, ThreadError};
    #[pymodule_export]
    use super::runner::PyRunner;
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
