"""The one place that imports Triton.

Exports `jit` (decorator of kernels), `tl` (Triton's language) and `HAS_TRITON`. Triton is imported when it can be
used: under its interpreter (TRITON_INTERPRET=1), with a CUDA device, or to compile ahead of time without one
(DEEPINFER_KERNELS_COMPILE=1). Otherwise both are stand-ins, so that a module holding a kernel and its torch reference
still imports, and a launch raises KernelUnavailableError.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from deepinfer_kernels.errors import KernelUnavailableError


class _UnavailableKernel:
    """Takes the place of a compiled kernel; `kernel[grid](...)` raises KernelUnavailableError."""

    def __init__(self, function: Callable[..., Any], reason: str) -> None:
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        self._reason = reason

    def __getitem__(self, grid: object) -> Callable[..., None]:
        def launch(*args: object, **kwargs: object) -> None:
            raise KernelUnavailableError(
                f"kernel {self.__name__} cannot be launched: {self._reason}; use the torch reference of the operator"
            )

        return launch


class _LanguageStandIn:
    """What kernel modules read from `triton.language` at import time."""

    class constexpr:
        def __init__(self, value: object) -> None:
            self.value = value


def _stand_in_jit(reason: str) -> Callable[..., Any]:
    def decorate(function: Callable[..., Any]) -> _UnavailableKernel:
        return _UnavailableKernel(function, reason)

    return decorate


def _why_not_usable() -> str | None:
    if os.environ.get("TRITON_INTERPRET") == "1" or os.environ.get("DEEPINFER_KERNELS_COMPILE") == "1":
        return None
    return None if torch.cuda.is_available() else "there is no CUDA device"


if TYPE_CHECKING:
    import triton.language as tl

    HAS_TRITON: bool

    def jit(function: Callable[..., Any]) -> Any:
        """Make a kernel of a function."""
else:
    _reason = _why_not_usable()
    if _reason is None:
        try:
            import triton.language as tl
            from triton import jit
        except ModuleNotFoundError:
            _reason = "the package triton is not installed"
    HAS_TRITON = _reason is None
    if _reason is not None:
        tl = _LanguageStandIn
        jit = _stand_in_jit(_reason)

__all__ = ["HAS_TRITON", "jit", "tl"]
