"""Time operators on a CUDA device."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch

from deepinfer_kernels.errors import KernelUnavailableError
from deepinfer_kernels.testing.cases import KernelCase

CACHE_FLUSH_BYTES = 256 * 2**20


@dataclass(frozen=True, slots=True)
class KernelTiming:
    """One measured case.

    Attributes:
        median_us, reference_us: microseconds of one call of the kernel and of the torch reference, on the device.
        gigabytes_per_second: counted bytes over the kernel's time.
        copy_ratio: that bandwidth over the one of a large copy, measured in the same process.
        speedup: reference time over kernel time.
    """

    case: str
    num_tokens: int
    context: int
    median_us: float
    reference_us: float
    gigabytes_per_second: float
    copy_ratio: float
    speedup: float

    def as_dict(self) -> dict[str, object]:
        """Fields by name."""
        return asdict(self)


def require_cuda() -> torch.device:
    """Return the CUDA device.

    Raises:
        KernelUnavailableError: there is none: times of a CPU or of the interpreter say nothing about kernels.
    """
    if not torch.cuda.is_available():
        raise KernelUnavailableError(
            "kernel speed can be measured on a CUDA device only, and this machine has none; on a CPU the references "
            "and Triton's interpreter run, whose times mean nothing"
        )
    return torch.device("cuda")


def measure_us(function: Callable[[], object], *, num_runs: int = 30, num_warmups: int = 5) -> float:
    """Return the median microseconds of a call on the device, each with a cold cache."""
    flush = torch.empty(CACHE_FLUSH_BYTES, dtype=torch.int8, device="cuda")
    for _ in range(num_warmups):
        function()
    make_event: Callable[..., Any] = torch.cuda.Event
    events = [(make_event(enable_timing=True), make_event(enable_timing=True)) for _ in range(num_runs)]
    for start, stop in events:
        flush.zero_()
        start.record()
        function()
        stop.record()
    torch.cuda.synchronize()
    return 1000.0 * statistics.median(float(start.elapsed_time(stop)) for start, stop in events)


def measure_copy_bandwidth() -> float:
    """Return bytes per second, read and written, of a large device copy."""
    source = torch.empty(2**30, dtype=torch.int8, device="cuda")
    target = torch.empty_like(source)
    return 2 * source.nbytes / (measure_us(lambda: target.copy_(source)) * 1e-6)


def measure_case(case: KernelCase, num_tokens: int, context: int, copy_bandwidth: float) -> KernelTiming:
    """Time a case; arguments that the operator mutates keep what earlier runs left in them."""
    call = case.prepare(num_tokens, context, require_cuda())
    median_us = measure_us(lambda: case.function(*call.arguments, **call.options))
    reference_us = measure_us(lambda: case.reference(*call.arguments, **call.options), num_runs=10, num_warmups=2)
    bandwidth = call.num_bytes / (median_us * 1e-6)
    return KernelTiming(
        case.name,
        num_tokens,
        context,
        round(median_us, 2),
        round(reference_us, 2),
        round(bandwidth / 1e9, 1),
        round(bandwidth / copy_bandwidth, 3),
        round(reference_us / median_us, 2),
    )
