"""Greedy choice: the id of the largest logit of each row.

    token_id = min { v : logits[t, v] = max(logits[t]) }

The lowest id wins a tie. A row from which nothing may be chosen gives -1: one that holds a NaN or +inf (the model
failed there), or whose logits are all -inf (everything was masked).
Shapes: logits [T, V] -> [T] int64. Numerics: comparisons only. Bytes moved: logits.nbytes.
"""

from __future__ import annotations

import torch

from deepinfer_kernels.arguments import FLOAT_DTYPES, check_tensor
from deepinfer_kernels.errors import KernelArgumentError
from deepinfer_kernels.jit import jit, tl
from deepinfer_kernels.launch import device_guard, row_config


def sample_greedy_ref(logits: torch.Tensor) -> torch.Tensor:
    """Torch reference of `sample_greedy`."""
    if logits.shape[0] == 0:
        return torch.empty(0, dtype=torch.int64, device=logits.device)
    best = logits.amax(dim=-1, keepdim=True)  # NaN if the row holds one
    # argmax over booleans gives the first True; torch does not promise which tie the float argmax takes.
    ids = (logits == best).to(torch.uint8).argmax(dim=-1)
    return torch.where(torch.isfinite(best.squeeze(-1)), ids, -1)


@jit
def _sample_greedy_kernel(
    logits_ptr: tl.tensor,
    ids_ptr: tl.tensor,
    vocab_size: tl.tensor,
    stride_lt: tl.tensor,
    BLOCK_V: tl.constexpr,
) -> None:
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK_V)
    best = tl.full((BLOCK_V,), float("-inf"), tl.float32)
    best_ids = tl.full((BLOCK_V,), 0, tl.int32)
    num_bad = tl.zeros((BLOCK_V,), tl.int32)
    for start in range(0, vocab_size, BLOCK_V):
        ids = start + lanes
        x = tl.load(logits_ptr + row * stride_lt + ids, mask=ids < vocab_size, other=float("-inf")).to(tl.float32)
        num_bad += ((x != x) | (x == float("inf"))).to(tl.int32)
        is_better = x > best  # a later equal value never replaces an earlier one of the same lane
        best = tl.where(is_better, x, best)
        best_ids = tl.where(is_better, ids, best_ids)
    top = tl.max(best, axis=0)
    chosen = tl.min(tl.where(best == top, best_ids, 2147483647), axis=0)
    failed = (tl.sum(num_bad, axis=0) > 0) | (top == float("-inf"))
    tl.store(ids_ptr + row, tl.where(failed, -1, chosen).to(tl.int64))


def sample_greedy(logits: torch.Tensor) -> torch.Tensor:
    """Return the lowest id of the largest logit of each row.

    Args:
        logits: [T, V] fp32|fp16|bf16, contiguous last dim, V >= 1; T may be 0.

    Returns:
        [T] int64; -1 for a row that holds a NaN or +inf, or only -inf.

    Raises:
        KernelArgumentError: the argument is not as described.
        KernelUnavailableError: Triton cannot run here.
    """
    check_logits(logits, FLOAT_DTYPES)
    num_rows, vocab_size = logits.shape
    ids = torch.empty(num_rows, dtype=torch.int64, device=logits.device)
    if num_rows == 0:
        return ids
    config = row_config(vocab_size, max_block=4096)
    with device_guard(logits):
        _sample_greedy_kernel[(num_rows,)](
            logits, ids, vocab_size, logits.stride(0), BLOCK_V=config.block, **config.options()
        )
    return ids


def check_logits(logits: torch.Tensor, dtypes: tuple[torch.dtype, ...] = (torch.float32,)) -> None:
    """Raise KernelArgumentError unless `logits` is [T, V >= 1] of one of `dtypes`, contiguous in its last dim."""
    check_tensor("logits", logits, shape=("T", "V"), dtypes=dtypes)
    if logits.shape[1] == 0:
        raise KernelArgumentError("logits", got="of vocabulary size 0", expected="at least one token wide")
