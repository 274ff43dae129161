//! Errors as Python exceptions: the one place that maps them.

use crate::Error;
use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

create_exception!(
    deepinfer_cpu,
    CpuError,
    PyException,
    "Base of all errors of this package."
);
create_exception!(
    deepinfer_cpu,
    ShapeError,
    CpuError,
    "A size or option is impossible or not covered."
);
create_exception!(
    deepinfer_cpu,
    TensorError,
    CpuError,
    "A tensor is missing, damaged, or stored in a form not covered."
);
create_exception!(
    deepinfer_cpu,
    PlanError,
    CpuError,
    "A step's plan does not fit the model or the cache."
);
create_exception!(
    deepinfer_cpu,
    ThreadError,
    CpuError,
    "The compute threads are gone."
);

impl From<Error> for PyErr {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        match error {
            Error::Shape { .. } => ShapeError::new_err(message),
            Error::Tensor { .. } => TensorError::new_err(message),
            Error::Plan { .. } => PlanError::new_err(message),
            Error::Forked { .. } | Error::ThreadStopped => ThreadError::new_err(message),
        }
    }
}
