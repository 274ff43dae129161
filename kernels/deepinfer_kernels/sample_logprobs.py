"""Log probability and rank of one token per row.

    logprob = x - m - log(sum_v exp(logits[t, v] - m)),   x = logits[t, token_ids[t]],   m = max(logits[t])
    rank = 1 + #{ v : logits[t, v] > x, or logits[t, v] = x and v < token_ids[t] }

Shapes: logits [T, V]; token_ids [T] -> logprobs [T] float32, ranks [T] int64.
Numerics: float32, maximum first, then the sum. A row that holds a NaN gives NaN. Bytes moved: 2 * logits.nbytes.
"""

from __future__ import annotations

import torch

from deepinfer_kernels.arguments import FLOAT_DTYPES, INDEX_DTYPES, check_tensor
from deepinfer_kernels.jit import jit, tl
from deepinfer_kernels.launch import device_guard, row_config
from deepinfer_kernels.sample_greedy import check_logits


def sample_logprobs_ref(logits: torch.Tensor, token_ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Torch reference of `sample_logprobs`; raises IndexError for an id outside the vocabulary."""
    values = logits.float()
    chosen = values.gather(1, token_ids.long()[:, None])
    logprobs = (chosen - values.logsumexp(dim=-1, keepdim=True)).squeeze(1)
    is_before = torch.arange(logits.shape[1], device=logits.device) < token_ids[:, None]
    return logprobs, 1 + ((values > chosen) | ((values == chosen) & is_before)).sum(dim=-1)


@jit
def _sample_logprobs_kernel(
    logits_ptr: tl.tensor,
    token_ids_ptr: tl.tensor,
    logprobs_ptr: tl.tensor,
    ranks_ptr: tl.tensor,
    vocab_size: tl.tensor,
    stride_lt: tl.tensor,
    BLOCK_V: tl.constexpr,
) -> None:
    row = tl.program_id(0).to(tl.int64)
    logits_row = logits_ptr + row * stride_lt
    token_id = tl.load(token_ids_ptr + row).to(tl.int64)
    known = (token_id >= 0) & (token_id < vocab_size)
    chosen = tl.load(logits_row + token_id, mask=known, other=float("nan")).to(tl.float32)
    lanes = tl.arange(0, BLOCK_V)
    top = tl.full((BLOCK_V,), float("-inf"), tl.float32)
    num_above = tl.zeros((BLOCK_V,), tl.int32)
    for start in range(0, vocab_size, BLOCK_V):
        ids = start + lanes
        x = tl.load(logits_row + ids, mask=ids < vocab_size, other=float("-inf")).to(tl.float32)
        top = tl.maximum(top, x)
        num_above += ((x > chosen) | ((x == chosen) & (ids < token_id))).to(tl.int32)
    largest = tl.max(top, axis=0)
    total = tl.zeros((BLOCK_V,), tl.float32)
    for start in range(0, vocab_size, BLOCK_V):
        ids = start + lanes
        x = tl.load(logits_row + ids, mask=ids < vocab_size, other=float("-inf")).to(tl.float32)
        total += tl.exp(x - largest)
    tl.store(logprobs_ptr + row, chosen - largest - tl.log(tl.sum(total, axis=0)))
    tl.store(ranks_ptr + row, 1 + tl.sum(num_above, axis=0).to(tl.int64))


def sample_logprobs(logits: torch.Tensor, token_ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the log probability and the rank of one token per row.

    Args:
        logits: [T, V] fp32|fp16|bf16, contiguous last dim, V >= 1; T may be 0.
        token_ids: [T] int32|int64; an id outside the vocabulary gives NaN (the reference raises).

    Returns:
        logprobs [T] fp32 (natural log) and ranks [T] int64, 1 for the most likely token; equal logits rank by id.
        For a row with a NaN the log probability is NaN and the rank means nothing.

    Raises:
        KernelArgumentError: an argument is not as described.
        KernelUnavailableError: Triton cannot run here.
    """
    check_logits(logits, FLOAT_DTYPES)
    num_rows, vocab_size = logits.shape
    check_tensor("token_ids", token_ids, shape=(num_rows,), dtypes=INDEX_DTYPES, device=logits.device)
    logprobs = torch.empty(num_rows, dtype=torch.float32, device=logits.device)
    ranks = torch.empty(num_rows, dtype=torch.int64, device=logits.device)
    if num_rows == 0:
        return logprobs, ranks
    config = row_config(vocab_size, max_block=4096)
    with device_guard(logits):
        _sample_logprobs_kernel[(num_rows,)](
            logits, token_ids, logprobs, ranks, vocab_size, logits.stride(0),
            BLOCK_V=config.block, **config.options(),
        )  # fmt: skip
    return logprobs, ranks
