"""CPU operators for packed language models. Standard library only: arrays pass through the buffer protocol."""

from deepinfer_cpu._native import (
    CpuError,
    Matrix,
    Operators,
    PlanError,
    Runner,
    ShapeError,
    TensorError,
    ThreadError,
    Weights,
    WeightsBuilder,
    __version__,
    available_threads,
    covers_storage,
    instruction_set,
    measure_limits,
    sample_row,
)

__all__ = [
    "CpuError",
    "Matrix",
    "Operators",
    "PlanError",
    "Runner",
    "ShapeError",
    "TensorError",
    "ThreadError",
    "Weights",
    "WeightsBuilder",
    "__version__",
    "available_threads",
    "covers_storage",
    "instruction_set",
    "measure_limits",
    "sample_row",
]
