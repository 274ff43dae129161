"""Penalties and biases on the raw logits, for the few (row, token) entries that have any; in place.

For each entry e of row r = rows[e], token v = token_ids[e], with x = logits[r, v] and c = output_counts[e]:

    x <- x / repetition[r] if x > 0 else x * repetition[r]          if c >= 0 (v is in the prompt or the output)
    x <- (x - frequency[r] * c) - presence[r]                       if c > 0  (v is in the output, c times)
    x <- x + biases[e]                                              always (-inf forbids the token)

Shapes: logits [T, V] float32; rows, token_ids, output_counts [E] int32; biases [E] float32; repetition, frequency,
presence [T] float32. No two entries share (row, token). Numerics: float32 in the order above, every operation
rounded on its own, so that the bits are the same on every device.
Bytes moved: 24 * E.
"""

from __future__ import annotations

import torch

from deepinfer_kernels.arguments import check_tensor
from deepinfer_kernels.errors import KernelArgumentError
from deepinfer_kernels.jit import jit, tl
from deepinfer_kernels.launch import UNFUSED_OPTIONS, cdiv, device_guard
from deepinfer_kernels.sample_greedy import check_logits

ENTRIES_PER_PROGRAM = 256


def sample_penalties_ref(
    logits: torch.Tensor,
    rows: torch.Tensor,
    token_ids: torch.Tensor,
    output_counts: torch.Tensor,
    biases: torch.Tensor,
    repetition: torch.Tensor,
    frequency: torch.Tensor,
    presence: torch.Tensor,
) -> None:
    """Torch reference of `sample_penalties`; raises KernelArgumentError for a row or token outside the logits."""
    if rows.numel() == 0:
        return
    r, v = rows.long(), token_ids.long()
    for name, index, size in (("rows", r, logits.shape[0]), ("token_ids", v, logits.shape[1])):
        if not (int(index.min()) >= 0 and int(index.max()) < size):
            raise KernelArgumentError(name, got=f"{int(index.min())} to {int(index.max())}", expected=f"in [0, {size})")
    x = logits[r, v]
    repeated = torch.where(x > 0, x / repetition[r], x * repetition[r])
    x = torch.where(output_counts >= 0, repeated, x)
    x = torch.where(output_counts > 0, x - frequency[r] * output_counts - presence[r], x)
    logits[r, v] = x + biases


@jit
def _sample_penalties_kernel(
    logits_ptr: tl.tensor,
    rows_ptr: tl.tensor,
    token_ids_ptr: tl.tensor,
    output_counts_ptr: tl.tensor,
    biases_ptr: tl.tensor,
    repetition_ptr: tl.tensor,
    frequency_ptr: tl.tensor,
    presence_ptr: tl.tensor,
    num_entries: tl.tensor,
    num_rows: tl.tensor,
    vocab_size: tl.tensor,
    stride_lt: tl.tensor,
    BLOCK_E: tl.constexpr,
) -> None:
    entries = tl.program_id(0).to(tl.int64) * BLOCK_E + tl.arange(0, BLOCK_E)
    inside = entries < num_entries
    r = tl.load(rows_ptr + entries, mask=inside, other=-1).to(tl.int64)
    v = tl.load(token_ids_ptr + entries, mask=inside, other=-1)
    inside = inside & (r >= 0) & (r < num_rows) & (v >= 0) & (v < vocab_size)
    count = tl.load(output_counts_ptr + entries, mask=inside, other=-1)
    bias = tl.load(biases_ptr + entries, mask=inside, other=0.0)
    repetition = tl.load(repetition_ptr + r, mask=inside, other=1.0)
    frequency = tl.load(frequency_ptr + r, mask=inside, other=0.0)
    presence = tl.load(presence_ptr + r, mask=inside, other=0.0)
    x = tl.load(logits_ptr + r * stride_lt + v, mask=inside, other=0.0)
    repeated = tl.where(x > 0, tl.div_rn(x, repetition), x * repetition)
    x = tl.where(count >= 0, repeated, x)
    x = tl.where(count > 0, x - frequency * count.to(tl.float32) - presence, x)
    tl.store(logits_ptr + r * stride_lt + v, x + bias, mask=inside)


def sample_penalties(
    logits: torch.Tensor,
    rows: torch.Tensor,
    token_ids: torch.Tensor,
    output_counts: torch.Tensor,
    biases: torch.Tensor,
    repetition: torch.Tensor,
    frequency: torch.Tensor,
    presence: torch.Tensor,
) -> None:
    """Apply penalties and biases to single logits.

    Args:
        logits: [T, V] fp32, contiguous last dim; **mutated**.
        rows, token_ids: [E] int32, where; an entry outside the logits changes nothing (the reference raises).
            E may be 0. No two entries may name the same place.
        output_counts: [E] int32: -1 for a bias only, 0 for a token of the prompt alone, else how often the token
            stands in the output.
        biases: [E] fp32, added last.
        repetition, frequency, presence: [T] fp32, penalties of each row (1, 0 and 0 are off).

    Raises:
        KernelArgumentError: an argument is not as described.
        KernelUnavailableError: Triton cannot run here.
    """
    check_logits(logits)
    check_tensor("rows", rows, shape=("E",), dtypes=(torch.int32,), device=logits.device)
    for name, tensor in (("token_ids", token_ids), ("output_counts", output_counts)):
        check_tensor(name, tensor, shape=tuple(rows.shape), dtypes=(torch.int32,), device=logits.device)
    check_tensor("biases", biases, shape=tuple(rows.shape), dtypes=(torch.float32,), device=logits.device)
    for name, tensor in (("repetition", repetition), ("frequency", frequency), ("presence", presence)):
        check_tensor(name, tensor, shape=(logits.shape[0],), dtypes=(torch.float32,), device=logits.device)
    num_entries = rows.shape[0]
    if num_entries == 0:
        return
    with device_guard(logits):
        _sample_penalties_kernel[(cdiv(num_entries, ENTRIES_PER_PROGRAM),)](
            logits, rows, token_ids, output_counts, biases, repetition, frequency, presence,
            num_entries, logits.shape[0], logits.shape[1], logits.stride(0),
            BLOCK_E=ENTRIES_PER_PROGRAM, num_warps=4, **UNFUSED_OPTIONS,
        )  # fmt: skip
