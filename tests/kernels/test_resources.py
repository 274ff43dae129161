"""Every kernel compiles for sm_80, sm_90 and sm_100, spills nothing, and takes what the checked-in table says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from deepinfer_kernels.testing.compile import ARCHITECTURES, RESOURCES_PATH

KERNELS = Path(__file__).parents[2] / "kernels"
# A block of an sm_86 or sm_89 card can have this much; sm_80, sm_90 and sm_100 more.
MAX_SHARED_BYTES = 99 * 1024


def compile_in_subprocess(*options: str, timeout: float) -> dict:
    """Kernels imported under TRITON_INTERPRET=1, as in this process, cannot be compiled."""
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment |= {"DEEPINFER_KERNELS_COMPILE": "1", "PYTHONPATH": str(KERNELS)}
    command = [sys.executable, "-m", "deepinfer_kernels.testing.compile", *options]
    result = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=timeout, check=False)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def compiled() -> dict:
    """Two processes side by side: compiling takes about a second a kernel and architecture."""
    pytest.importorskip("triton", reason="compiling needs the package triton")
    shares = [ARCHITECTURES[:2], ARCHITECTURES[2:]]
    with ThreadPoolExecutor(len(shares)) as pool:
        options = [[option for arch in share for option in ("--arch", str(arch))] for share in shares]
        parts = list(pool.map(lambda share: compile_in_subprocess(*share, timeout=840), options))
    resources: dict = {}
    for part in parts:
        for launch, figures in part["resources"].items():
            resources.setdefault(launch, {}).update(figures)
    return {"triton": parts[0]["triton"], "resources": resources}


def find_faults(resources: dict) -> dict:
    """Launches that miss an architecture, spill, or want more shared memory than there is."""
    expected = {f"sm_{arch}" for arch in ARCHITECTURES}
    return {
        launch: figures
        for launch, figures in resources.items()
        if set(figures) != expected
        or any(f["spilled_bytes"] or f["shared_bytes"] > MAX_SHARED_BYTES for f in figures.values())
    }


@pytest.mark.timeout(900)
def test_no_kernel_spills(compiled):
    assert len(compiled["resources"]) >= 15
    assert find_faults(compiled["resources"]) == {}


@pytest.mark.timeout(900)
def test_every_kernel_is_compiled(compiled):
    """A kernel that no case launches would escape the other tests."""
    defined = {
        line.split("(")[0].removeprefix("def _")
        for path in (KERNELS / "deepinfer_kernels").glob("*.py")
        for line in path.read_text().splitlines()
        if line.startswith("def _") and line.split("(")[0].endswith("_kernel")
    }
    launched = {launch.rpartition("/")[2] for launch in compiled["resources"]}
    assert defined == launched


@pytest.mark.timeout(900)
def test_operators_with_the_bits_of_the_host_fuse_nothing(compiled):
    """A fused multiply-add rounds once where numpy rounds twice."""
    names = ("sample_gumbel/", "sample_penalties/")
    figures = [f for launch, f in compiled["resources"].items() if launch.startswith(names)]
    assert len(figures) == len(names)
    assert all(f["fused_operations"] == 0 for by_arch in figures for f in by_arch.values())


@pytest.mark.timeout(900)
def test_figures_equal_the_table(compiled):
    table = json.loads(RESOURCES_PATH.read_text())
    version = compiled["triton"]
    if version not in table:
        pytest.skip(
            f"the table has figures of Triton {', '.join(table)}, this is {version}: only spills were checked; "
            "add them by DEEPINFER_KERNELS_COMPILE=1 python -m deepinfer_kernels.testing.compile --write"
        )
    assert compiled["resources"] == table[version]


@pytest.mark.slow
@pytest.mark.timeout(2400)
def test_no_kernel_spills_at_further_shapes():
    pytest.importorskip("triton", reason="compiling needs the package triton")
    assert find_faults(compile_in_subprocess("--full", timeout=2300)["resources"]) == {}
