"""Compile every kernel ahead of time, without a GPU, and report what it takes of a multiprocessor.

    DEEPINFER_KERNELS_COMPILE=1 python -m deepinfer_kernels.testing.compile [--full] [--arch 90] [--write]

prints JSON: Triton's version and, for every kernel launch that the cases make, registers per thread, bytes of shared
memory, bytes of spills (the stack frame and local memory of the cubin, read by the cuobjdump that Triton brings), and
how many fused multiply-adds its PTX has.
`--write` puts the figures into resources.json beside this file, under the version.

The public functions run as they are on CPU tensors; only the launch is intercepted. So block sizes, warps and the
specialisation on arguments (equal to 1, divisible by 16) are those of a real launch. This needs a process of its own:
with TRITON_INTERPRET=1 kernels cannot be compiled.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from deepinfer_kernels.testing.cases import iterate_cases

ARCHITECTURES = (80, 90, 100)
RESOURCES_PATH = Path(__file__).with_name("resources.json")
OPTION_NAMES = ("num_warps", "num_stages", "enable_fp_fusion")
# Enough rows and positions that every kernel is launched, also the one that joins splits of decode.
NUM_TOKENS, CONTEXT = 16, 1024

_POINTER_TYPES = {
    torch.float32: "*fp32", torch.float16: "*fp16", torch.bfloat16: "*bf16", torch.float64: "*fp64",
    torch.int32: "*i32", torch.int64: "*i64",
}  # fmt: skip
Resources = dict[str, dict[str, dict[str, int]]]


@contextmanager
def _recorded_launches() -> Iterator[list[tuple[Any, dict[str, Any]]]]:
    """Let kernels record (kernel, argument by name) instead of running."""
    from triton.runtime.jit import JITFunction

    launches: list[tuple[Any, dict[str, Any]]] = []

    def record(self: Any, *args: Any, **kwargs: Any) -> None:
        kwargs.pop("grid")
        kwargs.pop("warmup")
        launches.append((self, dict(zip(self.arg_names, args, strict=False)) | kwargs))

    original = JITFunction.run
    JITFunction.run = record
    try:
        yield launches
    finally:
        JITFunction.run = original


def _compile(kernel: Any, arguments: dict[str, Any], arch: int) -> dict[str, int]:
    """Return the figures of one launch."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    signature, constants, attributes = {}, {}, {}
    for index, parameter in enumerate(kernel.params):
        value = arguments[parameter.name]
        if parameter.is_constexpr or (isinstance(value, int) and value == 1):
            signature[parameter.name] = "constexpr"
            constants[(index,)] = value
        elif isinstance(value, torch.Tensor):
            signature[parameter.name] = _POINTER_TYPES[value.dtype]
            if value.data_ptr() % 16 == 0:
                attributes[(index,)] = [["tt.divisibility", 16]]
        elif isinstance(value, float):
            signature[parameter.name] = "fp32"
        else:
            signature[parameter.name] = "i32" if -(2**31) <= value < 2**31 else "i64"
            if value % 16 == 0:
                attributes[(index,)] = [["tt.divisibility", 16]]
    source = ASTSource(kernel, signature, constants, attributes)
    options = {name: arguments[name] for name in OPTION_NAMES if name in arguments}
    compiled = triton.compile(source, target=GPUTarget("cuda", arch, 32), options=options)
    return read_resource_usage(compiled.asm["cubin"]) | {
        "shared_bytes": compiled.metadata.shared,
        "fused_operations": len(re.findall(r"\bfma\.", compiled.asm["ptx"])),
    }


def read_resource_usage(cubin: bytes) -> dict[str, int]:
    """Return registers per thread and spilled bytes per thread of the kernel in a cubin."""
    from triton import knobs

    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [knobs.nvidia.cuobjdump.path, "-res-usage", file.name]
        text = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    usage = re.search(r"REG:(\d+) STACK:(\d+) SHARED:\d+ LOCAL:(\d+)", text)
    if usage is None:
        raise ValueError(f"cuobjdump printed no resource usage: {text!r}")
    registers, stack, local = map(int, usage.groups())
    return {"registers": registers, "spilled_bytes": stack + local}


def measure_resources(architectures: tuple[int, ...] = ARCHITECTURES, *, is_full: bool = False) -> Resources:
    """Compile what the cases launch: "case/kernel" -> "sm_90" -> figures."""
    resources: Resources = {}
    for case in iterate_cases(is_full=is_full):
        call = case.prepare(NUM_TOKENS, CONTEXT, torch.device("cpu"))
        with _recorded_launches() as launches:
            case.function(*call.arguments, **call.options)
        for kernel, arguments in launches:
            if "prefill" in case.label and "prefill" not in kernel.__name__:
                continue  # what a decode row beside the chunk would run; the decode case has it
            row = resources.setdefault(f"{case.name}/{kernel.__name__.strip('_')}", {})
            for arch in architectures:
                row[f"sm_{arch}"] = _compile(kernel, arguments, arch)
    return resources


def main() -> None:
    """Command line."""
    import triton

    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--full", action="store_true", help="further models and dtypes")
    parser.add_argument("--arch", type=int, action="append", choices=ARCHITECTURES, help="only this one")
    parser.add_argument("--write", action="store_true", help="put the figures into resources.json")
    options = parser.parse_args()
    resources = measure_resources(tuple(options.arch or ARCHITECTURES), is_full=options.full)
    if options.write:
        table = json.loads(RESOURCES_PATH.read_text()) if RESOURCES_PATH.exists() else {}
        table[triton.__version__] = resources
        RESOURCES_PATH.write_text(json.dumps(table, indent=1, sort_keys=True) + "\n")
    json.dump({"triton": triton.__version__, "resources": resources}, sys.stdout)


if __name__ == "__main__":
    main()
