"""Kernel tests run under Triton's interpreter on tiny CPU tensors."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip these tests where kernels are compiled for a device: they pass CPU tensors to them."""
    if os.environ.get("TRITON_INTERPRET") == "1":
        return
    skip = pytest.mark.skip(reason="needs Triton's interpreter; on a machine with a CUDA device set TRITON_INTERPRET=1")
    for item in items:
        if Path(__file__).parent in item.path.parents and not item.get_closest_marker("gpu"):
            item.add_marker(skip)


@pytest.fixture(autouse=True, scope="package")
def _one_thread() -> Iterator[None]:
    """Use one thread: waking a second costs more than it computes here."""
    num_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(num_threads)
