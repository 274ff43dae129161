"""What `deepinfer doctor` finds. torch is asked in a process of its own: importing it here would cost seconds and
could fail; the answer to that is a finding, too."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import platform
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal

from deepinfer import __version__
from deepinfer.cli.sizes import format_size
from deepinfer.env import cache_folder
from deepinfer.errors import EngineError, WeightLoadError

TORCH_TIMEOUT_SECONDS: Final = 120

_ASK_TORCH: Final = """
import json, torch
cuda = torch.cuda.is_available()
print(json.dumps({
    "version": torch.__version__,
    "threads": torch.get_num_threads(),
    "cpu": torch.backends.cpu.get_cpu_capability(),
    "gpus": [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())] if cuda else [],
    "gpu_memory": [torch.cuda.get_device_properties(i).total_memory for i in range(torch.cuda.device_count())]
    if cuda else [],
}))
"""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report.

    Attributes:
        subject: what was looked at.
        status: "ok", "note" (works, but read on) or "missing" (needed and not there).
        found: what there is.
        consequence: what follows from it.
    """

    subject: str
    status: Literal["ok", "note", "missing"]
    found: str
    consequence: str = ""

    def to_json(self) -> dict[str, str]:
        """The finding as an object."""
        return asdict(self)


def examine(model: Path | None = None) -> list[Finding]:
    """Look at everything, with `model` or the default one in mind."""
    torch = ask_torch()
    default = _default_model()
    return [
        Finding("open-deepinfer", "ok", f"{__version__} on Python {platform.python_version()}, {platform.platform()}"),
        _processor(),
        _memory(),
        _torch(torch),
        _device(torch),
        _triton(torch),
        _codec(),
        _cpu_operators(model or (Path(default.found) if default.status == "ok" else None)),
        _server(),
        default,
    ]


def ask_torch() -> dict[str, Any] | str:
    """What torch says about itself, or why it says nothing."""
    if importlib.util.find_spec("torch") is None:
        return "it is not installed"
    try:
        done = subprocess.run(
            [sys.executable, "-c", _ASK_TORCH], capture_output=True, text=True, timeout=TORCH_TIMEOUT_SECONDS,
            check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"it did not answer within {TORCH_TIMEOUT_SECONDS} s"
    if done.returncode:
        return (done.stderr.strip().splitlines() or ["it ended without a message"])[-1]
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def usable_cpus() -> int:
    """CPUs this process may run on, bounded by the quota of its control group."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _cgroup_quota()
    return max(1, min(allowed, int(quota))) if quota is not None else allowed


def _cgroup_quota() -> float | None:
    try:
        limit, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
        return None if limit == "max" else int(limit) / int(period)
    except (OSError, ValueError):
        return None


def _processor() -> Finding:
    flags: set[str] = set()
    name = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                name = value.strip()
            elif key.strip() in ("flags", "Features"):
                flags.update(value.split())
    except OSError:
        flags.clear()
    wanted = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_int8", "amx_bf16", "asimd", "sve", "i8mm")
    extensions = ", ".join(flag for flag in wanted if flag in flags)
    count = usable_cpus()
    return Finding("processor", "ok", f"{name}: {extensions}" if extensions else name, f"{count} usable CPU(s)")


def _memory() -> Finding:
    sizes: dict[str, int] = {}
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            key, _, value = line.partition(":")
            sizes[key] = int(value.split()[0]) * 1024
    except (OSError, ValueError, IndexError):
        return Finding("memory", "note", "unknown", "give --kv-cache-memory if the default is wrong")
    available, total = sizes.get("MemAvailable", 0), sizes.get("MemTotal", 0)
    return Finding("memory", "ok", f"{format_size(available)} free of {format_size(total)}",
                   "a share of it goes to the KV cache; --kv-cache-memory sets it")  # fmt: skip


def _torch(torch: dict[str, Any] | str) -> Finding:
    if isinstance(torch, str):
        return Finding("torch", "missing", torch, "pip install torch")
    return Finding("torch", "ok", f"{torch['version']}, CPU capability {torch['cpu']}",
                   f"{torch['threads']} threads; --threads sets them")  # fmt: skip


def _device(torch: dict[str, Any] | str) -> Finding:
    if isinstance(torch, str) or not torch["gpus"]:
        return Finding("device", "ok", "no CUDA device", "models run on the CPU")
    shown = ", ".join(
        f"{name} ({format_size(size)})" for name, size in zip(torch["gpus"], torch["gpu_memory"], strict=True)
    )
    return Finding("device", "ok", shown, "models run on the first GPU; --device cpu avoids it")


def _triton(torch: dict[str, Any] | str) -> Finding:
    version = _version("triton")
    has_gpu = not isinstance(torch, str) and bool(torch["gpus"])
    if version is None:
        status: Literal["note", "missing"] = "missing" if has_gpu else "note"
        return Finding("triton", status, "not installed", "needed on a GPU only: pip install triton")
    return Finding("triton", "ok", version, "used for kernels on the GPU" if has_gpu else "not used without a GPU")


def _codec() -> Finding:
    problem = _load_problem("recipe_rs", "recipe-rs")
    if problem is not None:
        return Finding("codec", "missing", problem, "needed for tokenizer, templates and stream parsing")
    return Finding("codec", "ok", f"recipe-rs {_version('recipe-rs')}", "tokenizer, templates and stream parsing")


def _cpu_operators(model: Path | None) -> Finding:
    """What would compute `model`, or any model where it is None, on a CPU."""
    problem = _load_problem("deepinfer_cpu", "open-deepinfer-cpu")
    if problem is not None:
        return Finding("CPU operators", "note", problem, "the torch reference runs on the CPU instead, slower")
    import deepinfer_cpu

    found = f"open-deepinfer-cpu {_version('open-deepinfer-cpu')}, {deepinfer_cpu.instruction_set()}"
    if model is None:
        return Finding("CPU operators", "ok", found, "native steps for the models they cover")
    from deepinfer.config import EngineConfig
    from deepinfer.executor.native_weights import find_native_obstacle
    from deepinfer.loader.open import open_checkpoint

    try:
        obstacle = find_native_obstacle(EngineConfig(model=model), open_checkpoint(model))
    except EngineError as error:
        return Finding("CPU operators", "note", found, f"{model} is not usable: {error}")
    if obstacle is not None:
        return Finding("CPU operators", "note", found, f"torch runs {model.name} on the CPU: {obstacle}")
    return Finding(
        "CPU operators",
        "ok",
        found,
        f"native steps for {model.name} on the CPU, without torch; activations of 15 bits (--cpu-activations fast: 8)",
    )


def _load_problem(module: str, distribution: str) -> str | None:
    """Why a compiled module cannot be used, or None."""
    if importlib.util.find_spec(module) is None:
        return f"{distribution} is not installed"
    try:
        importlib.import_module(module)
    except ImportError as error:
        return f"{distribution} does not load: {error}"
    return None


def _server() -> Finding:
    absent = [name for name in ("fastapi", "uvicorn", "httptools", "prometheus-client") if _version(name) is None]
    if absent:
        return Finding("server", "missing", f"without {', '.join(absent)}", "pip install 'open-deepinfer[serve]'")
    return Finding("server", "ok", f"fastapi {_version('fastapi')}, uvicorn {_version('uvicorn')}"
                   + (f", uvloop {_version('uvloop')}" if _version("uvloop") else ", without uvloop"),
                   "deepinfer serve, chat, generate")  # fmt: skip


def _default_model() -> Finding:
    from deepinfer.loader.default_model import find_default_model

    try:
        path = find_default_model()
    except WeightLoadError as error:
        return Finding("default model", "note", str(error))
    if path is None:
        return Finding("default model", "note", "not here", f"will be fetched into {cache_folder()} (94 MB)")
    return Finding("default model", "ok", str(path), "served when no model is named")


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None
