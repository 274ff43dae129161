"""Time the Triton kernels on a CUDA device: one JSON line per case.

    PYTHONPATH=.:kernels python benchmarks/bench_kernels.py [--op attention_paged] [--full] [--output FILE]

The first line names device, driver, torch, triton and commit. On a machine without a CUDA device it refuses.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

import torch

from deepinfer_kernels.errors import KernelUnavailableError
from deepinfer_kernels.testing.bench import measure_case, measure_copy_bandwidth, require_cuda
from deepinfer_kernels.testing.cases import KernelCase, iterate_cases

# (num_tokens, context) by kind of case
SIZES = {
    "decode": [(1, 2048), (32, 2048), (1, 32768)],
    "prefill": [(512, 512), (2048, 8192)],
    "sample": [(1, 0), (64, 0)],
    "rows": [(1, 0), (64, 0), (8192, 0)],
}


def sizes_of(case: KernelCase) -> list[tuple[int, int]]:
    """Return the sizes at which a case is timed."""
    if case.op == "attention_paged":
        return SIZES[case.label.partition("-")[0]]
    if case.op.startswith("sample_"):
        return SIZES["sample"]
    return SIZES["rows"][:2] if case.op == "block_copy" else SIZES["rows"]


def describe_machine() -> dict[str, object]:
    """Return what the figures depend on."""
    import triton

    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False).stdout
    return {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "triton": triton.__version__,
        "cuda": torch.version.cuda,
        "commit": commit.strip() or "unknown",
    }


def main() -> int:
    """Command line; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--op", help="only this operator")
    parser.add_argument("--full", action="store_true", help="further models and dtypes")
    parser.add_argument("--output", type=Path, help="append the lines to this file as well")
    options = parser.parse_args()
    cases = [case for case in iterate_cases(is_full=options.full) if options.op in (None, case.op)]
    if not cases:
        names = sorted({case.op for case in iterate_cases()})
        print(f"there is no operator {options.op!r}; there are {', '.join(names)}", file=sys.stderr)
        return 2
    try:
        require_cuda()
    except KernelUnavailableError as error:
        print(error, file=sys.stderr)
        return 2
    copy_bandwidth = measure_copy_bandwidth()
    lines = [describe_machine() | {"copy_gigabytes_per_second": round(copy_bandwidth / 1e9, 1)}]
    print(json.dumps(lines[0]), flush=True)
    for case in cases:
        for num_tokens, context in sizes_of(case):
            lines.append(measure_case(case, num_tokens, context, copy_bandwidth).as_dict())
            print(json.dumps(lines[-1]), flush=True)
    if options.output is not None:
        with options.output.open("a") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
