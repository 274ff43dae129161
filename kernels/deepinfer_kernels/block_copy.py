"""Copy whole KV blocks inside the paged cache (reuse of a partly filled block by another request).

    cache[destination] = cache[source]   for each pair, for k and for v

Shapes: k_cache, v_cache [num_blocks, block_size, num_kv_heads, head_dim]; pairs [P, 2] of (source, destination).
Numerics: bits are copied. All pairs are copied at once: a destination must be no source and no second destination.
Bytes moved: 4 * P * bytes of one block of k (read and write, k and v).
"""

from __future__ import annotations

import torch

from deepinfer_kernels.arguments import FLOAT_DTYPES, INDEX_DTYPES, check_tensor
from deepinfer_kernels.errors import KernelArgumentError
from deepinfer_kernels.jit import jit, tl
from deepinfer_kernels.launch import COMMON_OPTIONS, cdiv, device_guard

ELEMENTS_PER_PROGRAM = 4096


def block_copy_ref(k_cache: torch.Tensor, v_cache: torch.Tensor, pairs: torch.Tensor) -> None:
    """Torch reference of `block_copy`; raises KernelArgumentError for a block id outside the cache."""
    source, destination = pairs.long().unbind(dim=1)
    if pairs.numel() and not (int(pairs.min()) >= 0 and int(pairs.max()) < k_cache.shape[0]):
        raise KernelArgumentError(
            "pairs", got=f"{int(pairs.min())} to {int(pairs.max())}", expected=f"block ids in [0, {k_cache.shape[0]})"
        )
    k_cache[destination] = k_cache[source]
    v_cache[destination] = v_cache[source]


@jit
def _block_copy_kernel(
    k_cache_ptr: tl.tensor,
    v_cache_ptr: tl.tensor,
    pairs_ptr: tl.tensor,
    num_blocks: tl.tensor,
    block_elements: tl.tensor,
    stride_cb: tl.tensor,
    BLOCK_E: tl.constexpr,
) -> None:
    pair = tl.program_id(0).to(tl.int64)
    elements = tl.program_id(1) * BLOCK_E + tl.arange(0, BLOCK_E)
    inside = elements < block_elements
    source = tl.load(pairs_ptr + pair * 2).to(tl.int64)
    destination = tl.load(pairs_ptr + pair * 2 + 1).to(tl.int64)
    if (source >= 0) & (source < num_blocks) & (destination >= 0) & (destination < num_blocks):
        k = tl.load(k_cache_ptr + source * stride_cb + elements, mask=inside, other=0)
        tl.store(k_cache_ptr + destination * stride_cb + elements, k, mask=inside)
        v = tl.load(v_cache_ptr + source * stride_cb + elements, mask=inside, other=0)
        tl.store(v_cache_ptr + destination * stride_cb + elements, v, mask=inside)


def block_copy(k_cache: torch.Tensor, v_cache: torch.Tensor, pairs: torch.Tensor) -> None:
    """Copy blocks inside k_cache and v_cache.

    Args:
        k_cache, v_cache: [num_blocks, block_size, num_kv_heads, head_dim] fp32|fp16|bf16, each block contiguous,
            equal dtype and strides; **mutated**.
        pairs: [P, 2] int32|int64 contiguous, (source, destination) block ids. A pair with an id outside the cache
            copies nothing (the reference raises). P may be 0.

    Raises:
        KernelArgumentError: an argument is not as described.
        KernelUnavailableError: Triton cannot run here.
    """
    shape = ("num_blocks", "block_size", "num_kv_heads", "head_dim")
    check_tensor("k_cache", k_cache, shape=shape, dtypes=FLOAT_DTYPES)
    check_tensor("v_cache", v_cache, shape=tuple(k_cache.shape), dtypes=(k_cache.dtype,), device=k_cache.device)
    for name, cache in (("k_cache", k_cache), ("v_cache", v_cache)):
        if not cache[:1].is_contiguous() or cache.stride() != k_cache.stride():
            raise KernelArgumentError(
                name, got=f"strides {cache.stride()}", expected="with contiguous blocks, k and v alike"
            )
    check_tensor("pairs", pairs, shape=("P", 2), dtypes=INDEX_DTYPES, device=k_cache.device)
    if not pairs.is_contiguous():
        raise KernelArgumentError("pairs", got=f"strides {pairs.stride()}", expected="contiguous")
    if pairs.numel() == 0 or k_cache.numel() == 0:
        return
    block_elements = k_cache[0].numel()
    with device_guard(k_cache):
        _block_copy_kernel[(pairs.shape[0], cdiv(block_elements, ELEMENTS_PER_PROGRAM))](
            k_cache, v_cache, pairs, k_cache.shape[0], block_elements, k_cache.stride(0),
            BLOCK_E=ELEMENTS_PER_PROGRAM, num_warps=8, **COMMON_OPTIONS,
        )  # fmt: skip
