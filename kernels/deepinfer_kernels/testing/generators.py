"""Inputs of operator tests and benchmarks, reproducible from a seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch


def make_generator(seed: int, device: torch.device | str = "cpu") -> torch.Generator:
    """Return a generator on `device` that starts at `seed`."""
    return torch.Generator(device=device).manual_seed(seed)


def make_normal(
    *shape: int, dtype: torch.dtype, seed: int, device: torch.device | str = "cpu", scale: float = 1.0
) -> torch.Tensor:
    """Return normal values of the shape, drawn in float32 and rounded."""
    values = torch.randn(*shape, generator=make_generator(seed, device), device=device)
    return (values * scale).to(dtype)


def make_strided(tensor: torch.Tensor) -> torch.Tensor:
    """Return the same values at an offset inside a wider buffer: rows are not adjacent, the last dim is contiguous.

    What surrounds them is NaN, so that a kernel that reads beside its rows is caught.
    """
    shape = list(tensor.shape)
    shape[-1] += 5
    buffer = torch.full(shape, float("nan"), dtype=tensor.dtype, device=tensor.device)
    view = buffer[..., 3:-2]
    view.copy_(tensor)
    return view


@dataclass(frozen=True, slots=True)
class PagedBatch:
    """Arguments of `attention_paged`, and the dense keys and values of each request.

    Attributes:
        q: [T, num_qo_heads, head_dim].
        k_cache, v_cache: [num_blocks, block_size, num_kv_heads, head_dim]; slots that no request owns are NaN.
        block_table: [R, B] int32; unused entries hold an id far outside the cache.
        seq_lens: [R] int32.
        cu_seqlens_q: [R + 1] int32.
        keys, values: per request [seq_len, num_kv_heads, head_dim].
    """

    q: torch.Tensor
    k_cache: torch.Tensor
    v_cache: torch.Tensor
    block_table: torch.Tensor
    seq_lens: torch.Tensor
    cu_seqlens_q: torch.Tensor
    keys: tuple[torch.Tensor, ...]
    values: tuple[torch.Tensor, ...]

    @property
    def arguments(self) -> tuple[torch.Tensor, ...]:
        """Positional arguments of `attention_paged`."""
        return (self.q, self.k_cache, self.v_cache, self.block_table, self.seq_lens, self.cu_seqlens_q)


def make_paged_batch(
    q_lens: Sequence[int],
    seq_lens: Sequence[int],
    *,
    num_qo_heads: int,
    num_kv_heads: int,
    head_dim: int,
    block_size: int = 16,
    dtype: torch.dtype = torch.float32,
    cache_dtype: torch.dtype | None = None,
    seed: int = 0,
    device: torch.device | str = "cpu",
) -> PagedBatch:
    """Return requests whose blocks are scattered over the cache in random order."""
    cache_dtype = dtype if cache_dtype is None else cache_dtype
    generator = make_generator(seed)
    counts = [-(-n // block_size) for n in seq_lens]
    num_blocks = sum(counts) + 3
    order = torch.randperm(num_blocks, generator=generator).tolist()
    shape = (num_blocks, block_size, num_kv_heads, head_dim)
    k_cache, v_cache = (torch.full(shape, float("nan"), dtype=cache_dtype) for _ in range(2))
    block_table = torch.full((len(seq_lens), max([*counts, 1])), 2**30, dtype=torch.int32)
    keys: list[torch.Tensor] = []
    values: list[torch.Tensor] = []
    for r, (seq_len, count) in enumerate(zip(seq_lens, counts, strict=True)):
        block_ids = torch.tensor([order.pop() for _ in range(count)], dtype=torch.int64)
        block_table[r, :count] = block_ids.int()
        positions = torch.arange(seq_len)
        for cache, dense in ((k_cache, keys), (v_cache, values)):
            rows = torch.randn(seq_len, num_kv_heads, head_dim, generator=generator).to(cache_dtype)
            if seq_len:
                cache[block_ids[positions // block_size], positions % block_size] = rows
            dense.append(rows)
    q = torch.randn(sum(q_lens), num_qo_heads, head_dim, generator=generator).to(dtype)
    cu_seqlens_q = torch.tensor([0, *q_lens]).cumsum(0).int()
    return PagedBatch(
        q.to(device),
        k_cache.to(device),
        v_cache.to(device),
        block_table.to(device),
        torch.tensor(list(seq_lens), dtype=torch.int32, device=device),
        cu_seqlens_q.to(device),
        tuple(k.to(device) for k in keys),
        tuple(v.to(device) for v in values),
    )
