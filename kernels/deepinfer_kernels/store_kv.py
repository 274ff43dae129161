"""Write the keys and values of a step into the paged cache.

    k_cache[slot // block_size, slot % block_size] = k[t]   with slot = slot_mapping[t]; the same for v

Shapes: k, v [T, num_kv_heads, head_dim]; k_cache, v_cache [num_blocks, block_size, num_kv_heads, head_dim];
slot_mapping [T]. Dtypes: float32, float16, bfloat16; the cache may have another float dtype than k and v.
Numerics: one rounding to the cache's dtype.
Bytes moved: k.nbytes + v.nbytes read, the same number of cache elements written.
"""

from __future__ import annotations

import torch

from deepinfer_kernels.arguments import FLOAT_DTYPES, INDEX_DTYPES, check_tensor
from deepinfer_kernels.errors import KernelArgumentError
from deepinfer_kernels.jit import jit, tl
from deepinfer_kernels.launch import COMMON_OPTIONS, device_guard, next_power_of_two


def store_kv_ref(
    k: torch.Tensor,
    v: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    slot_mapping: torch.Tensor,
) -> None:
    """Torch reference of `store_kv`; raises KernelArgumentError for a slot beyond the cache."""
    num_blocks, block_size = k_cache.shape[:2]
    slots = slot_mapping.long()
    if slots.numel() and int(slots.max()) >= num_blocks * block_size:
        raise KernelArgumentError(
            "slot_mapping",
            got=f"up to {int(slots.max())}",
            expected=f"below {num_blocks * block_size}, the cache's slots",
        )
    if slots.numel() and int(slots.min()) < 0:
        kept = slots >= 0
        k, v, slots = k[kept], v[kept], slots[kept]
    block_ids, offsets = slots // block_size, slots % block_size
    k_cache[block_ids, offsets] = k.to(k_cache.dtype)
    v_cache[block_ids, offsets] = v.to(v_cache.dtype)


@jit
def _store_kv_kernel(
    k_ptr: tl.tensor,
    v_ptr: tl.tensor,
    k_cache_ptr: tl.tensor,
    v_cache_ptr: tl.tensor,
    slot_mapping_ptr: tl.tensor,
    num_slots: tl.tensor,
    block_size: tl.tensor,
    num_kv_heads: tl.tensor,
    head_dim: tl.tensor,
    stride_kt: tl.tensor,
    stride_kh: tl.tensor,
    stride_vt: tl.tensor,
    stride_vh: tl.tensor,
    stride_cb: tl.tensor,
    stride_cs: tl.tensor,
    stride_ch: tl.tensor,
    BLOCK_H: tl.constexpr,
    BLOCK_D: tl.constexpr,
) -> None:
    token = tl.program_id(0).to(tl.int64)
    slot = tl.load(slot_mapping_ptr + token).to(tl.int64)
    if (slot >= 0) & (slot < num_slots):
        heads = tl.arange(0, BLOCK_H)[:, None]
        columns = tl.arange(0, BLOCK_D)[None, :]
        inside = (heads < num_kv_heads) & (columns < head_dim)
        target = (slot // block_size) * stride_cb + (slot % block_size) * stride_cs + heads * stride_ch + columns
        k = tl.load(k_ptr + token * stride_kt + heads * stride_kh + columns, mask=inside, other=0.0)
        tl.store(k_cache_ptr + target, k.to(tl.float32).to(k_cache_ptr.dtype.element_ty), mask=inside)
        v = tl.load(v_ptr + token * stride_vt + heads * stride_vh + columns, mask=inside, other=0.0)
        tl.store(v_cache_ptr + target, v.to(tl.float32).to(v_cache_ptr.dtype.element_ty), mask=inside)


def store_kv(
    k: torch.Tensor,
    v: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    slot_mapping: torch.Tensor,
) -> None:
    """Store each token's key and value at its slot.

    Args:
        k, v: [T, num_kv_heads, head_dim] fp32|fp16|bf16, contiguous last dim; T may be 0.
        k_cache, v_cache: [num_blocks, block_size, num_kv_heads, head_dim] fp32|fp16|bf16, equal dtype and strides,
            contiguous last dim; **mutated**.
        slot_mapping: [T] int32|int64, block_id * block_size + offset. A negative slot stores nothing; a slot beyond
            the cache stores nothing either (the reference raises). Slots must be distinct.

    Raises:
        KernelArgumentError: an argument is not as described.
        KernelUnavailableError: Triton cannot run here.
    """
    check_kv_arguments(k, v, k_cache, v_cache, slot_mapping)
    num_tokens, num_kv_heads, head_dim = k.shape
    if k.numel() == 0:
        return
    num_blocks, block_size = k_cache.shape[:2]
    with device_guard(k):
        _store_kv_kernel[(num_tokens,)](
            k, v, k_cache, v_cache, slot_mapping, num_blocks * block_size, block_size, num_kv_heads, head_dim,
            k.stride(0), k.stride(1), v.stride(0), v.stride(1), *k_cache.stride()[:3],
            BLOCK_H=next_power_of_two(num_kv_heads), BLOCK_D=max(next_power_of_two(head_dim), 16),
            num_warps=4, **COMMON_OPTIONS,
        )  # fmt: skip


def check_kv_arguments(
    k: torch.Tensor, v: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, slot_mapping: torch.Tensor
) -> None:
    """Raise KernelArgumentError unless the arguments are as `store_kv` describes."""
    check_tensor("k", k, shape=("T", "num_kv_heads", "head_dim"), dtypes=FLOAT_DTYPES)
    check_tensor("v", v, shape=tuple(k.shape), dtypes=(k.dtype,), device=k.device)
    check_tensor(
        "k_cache", k_cache, shape=("num_blocks", "block_size", *k.shape[1:]), dtypes=FLOAT_DTYPES, device=k.device
    )
    check_tensor("v_cache", v_cache, shape=tuple(k_cache.shape), dtypes=(k_cache.dtype,), device=k.device)
    if k_cache.stride() != v_cache.stride():
        raise KernelArgumentError("v_cache", got=f"strides {v_cache.stride()}", expected=f"strides {k_cache.stride()}")
    check_tensor("slot_mapping", slot_mapping, shape=(k.shape[0],), dtypes=INDEX_DTYPES, device=k.device)
