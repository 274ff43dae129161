"""What every test shares: Triton's interpreter without a GPU, seeds, no network beyond this machine."""

from __future__ import annotations

import ctypes
import ipaddress
import os
import random
import socket
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings


def _count_cuda_devices() -> int:
    """Ask the driver; importing torch for this would slow down the tests that need no torch."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int(0)
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return 0
    return count.value


NUM_CUDA_DEVICES = _count_cuda_devices()

# Both must be set before the first import of Triton: the decorator of a kernel looks at the first, and Triton warns
# where the second is unset.
if NUM_CUDA_DEVICES == 0:
    os.environ["TRITON_INTERPRET"] = "1"
os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")

settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("full", max_examples=1000, deadline=None, print_blob=True)
settings.register_profile("dev", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests marked `gpu` where there is no CUDA device, or where kernels are interpreted instead of compiled."""
    if NUM_CUDA_DEVICES == 0:
        reason = "needs a CUDA device, and this machine has none"
    elif os.environ.get("TRITON_INTERPRET") == "1":
        reason = "needs compiled kernels, but TRITON_INTERPRET=1 is set"
    else:
        return
    skip = pytest.mark.skip(reason=reason)
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(skip)


@pytest.fixture(autouse=True)
def _seeds() -> None:
    """Start every test from the same random state, in the packages that are loaded."""
    random.seed(0)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(0)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)


class NetworkForbiddenError(OSError):
    """A test tried to reach another machine."""


def _is_loopback(host: object) -> bool:
    if isinstance(host, bytes):
        host = host.decode(errors="replace")
    if host in (None, "", "localhost", "testserver"):
        return True
    try:
        address = ipaddress.ip_address(str(host).partition("%")[0])
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


@pytest.fixture(scope="session")
def forbidden_hosts() -> Iterator[list[str]]:
    """Let connections and name look-ups leave this machine in no test; returns the list of attempts."""
    attempts: list[str] = []

    def refuse(host: object) -> None:
        attempts.append(str(host))
        raise NetworkForbiddenError(f"a test may not reach {host!r}; only this machine itself")

    def guard(original: Any) -> Any:
        def call(self: socket.socket, *args: Any) -> Any:
            # The address is the last argument of connect and connect_ex, and of every form of sendto.
            address = args[-1]
            if self.family in (socket.AF_INET, socket.AF_INET6) and not _is_loopback(address[0]):
                refuse(address[0])
            return original(self, *args)

        return call

    resolve = socket.getaddrinfo

    def getaddrinfo(host: Any, *args: Any, **kwargs: Any) -> Any:
        if not _is_loopback(host):
            refuse(host)
        return resolve(host, *args, **kwargs)

    patch = pytest.MonkeyPatch()
    for name in ("connect", "connect_ex", "sendto"):
        patch.setattr(socket.socket, name, guard(getattr(socket.socket, name)))
    patch.setattr(socket, "getaddrinfo", getaddrinfo)
    yield attempts
    patch.undo()


@pytest.fixture(autouse=True)
def _no_network(forbidden_hosts: list[str]) -> Iterator[None]:
    """Fail a test that reached for another machine, also where its code swallowed the error."""
    forbidden_hosts.clear()
    yield
    if forbidden_hosts:
        pytest.fail(f"reached for other machines: {', '.join(sorted(set(forbidden_hosts)))}")
