"""Named calls of every operator at shapes of real models, for device tests, benchmarks and ahead-of-time compilation.

A case prepares its arguments on a device. `num_tokens` scales it: rows of the step, or for decode the number of
requests; `context` is the number of positions that each request of an attention case sees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch

from deepinfer_kernels import (
    add_and_rms_norm,
    attention_paged,
    block_copy,
    rms_norm,
    rope_and_store_kv,
    sample_greedy,
    sample_gumbel,
    sample_logprobs,
    sample_penalties,
    sample_truncate,
    silu_and_mul,
    store_kv,
)
from deepinfer_kernels.testing.generators import make_generator, make_normal, make_paged_batch

BLOCK_SIZE = 64
VOCAB_SIZE = 128256


@dataclass(frozen=True, slots=True)
class Call:
    """Arguments of one call and the bytes that the operator has to move for it."""

    arguments: tuple[Any, ...]
    num_bytes: int
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KernelCase:
    """One operator at one shape and dtype.

    Attributes:
        op: name of the operator.
        label: shape and dtype, unique within the operator.
        function, reference: what to call.
        prepare: (num_tokens, context, device) -> Call.
        has_dot: whether matrix products of rounded operands decide the accuracy.
    """

    op: str
    label: str
    function: Callable[..., Any]
    reference: Callable[..., Any]
    prepare: Callable[[int, int, torch.device], Call]
    has_dot: bool = False

    @property
    def name(self) -> str:
        """Operator and label."""
        return f"{self.op}/{self.label}"


@dataclass(frozen=True, slots=True)
class ModelShape:
    """What the operators see of a model."""

    name: str
    hidden_size: int
    intermediate_size: int
    num_qo_heads: int
    num_kv_heads: int
    head_dim: int


SMOLLM2_135M = ModelShape("smollm2-135m", 576, 1536, 9, 3, 64)
LLAMA_8B = ModelShape("llama-8b", 4096, 14336, 32, 8, 128)
QWEN3_4B = ModelShape("qwen3-4b", 2560, 9728, 32, 8, 128)
GROUP_8 = ModelShape("group-8", 4096, 12288, 32, 4, 128)
GROUP_1_D80 = ModelShape("group-1-d80", 2560, 6912, 32, 32, 80)
GROUP_3_D96 = ModelShape("group-3-d96", 3072, 8192, 24, 8, 96)
GROUP_4_D256 = ModelShape("group-4-d256", 2048, 16384, 8, 2, 256)


def _rms_norm(shape: ModelShape, dtype: torch.dtype, num_tokens: int, context: int, device: torch.device) -> Call:
    x = make_normal(num_tokens, shape.hidden_size, dtype=dtype, seed=1, device=device)
    weight = make_normal(shape.hidden_size, dtype=dtype, seed=2, device=device)
    return Call((x, weight, 1e-5), 2 * x.nbytes + weight.nbytes)


def _add_and_rms_norm(
    shape: ModelShape, dtype: torch.dtype, num_tokens: int, context: int, device: torch.device
) -> Call:
    x, residual = (make_normal(num_tokens, shape.hidden_size, dtype=dtype, seed=s, device=device) for s in (1, 3))
    weight = make_normal(shape.hidden_size, dtype=dtype, seed=2, device=device)
    return Call((x, residual, weight, 1e-5), 4 * x.nbytes + weight.nbytes)


def _silu_and_mul(shape: ModelShape, dtype: torch.dtype, num_tokens: int, context: int, device: torch.device) -> Call:
    gate_up = make_normal(num_tokens, 2 * shape.intermediate_size, dtype=dtype, seed=1, device=device)
    return Call((gate_up,), gate_up.nbytes * 3 // 2)


def _make_cache(
    shape: ModelShape, dtype: torch.dtype, num_blocks: int, device: torch.device
) -> tuple[torch.Tensor, torch.Tensor]:
    size = (num_blocks, BLOCK_SIZE, shape.num_kv_heads, shape.head_dim)
    return torch.zeros(size, dtype=dtype, device=device), torch.zeros(size, dtype=dtype, device=device)


def _store_kv(shape: ModelShape, dtype: torch.dtype, num_tokens: int, context: int, device: torch.device) -> Call:
    size = (num_tokens, shape.num_kv_heads, shape.head_dim)
    k, v = (make_normal(*size, dtype=dtype, seed=s, device=device) for s in (1, 2))
    num_blocks = -(-num_tokens // BLOCK_SIZE) + 1
    slots = torch.randperm(num_blocks * BLOCK_SIZE, generator=make_generator(3))[:num_tokens].to(device)
    return Call((k, v, *_make_cache(shape, dtype, num_blocks, device), slots), 4 * k.nbytes)


def _rope_and_store_kv(
    shape: ModelShape, dtype: torch.dtype, num_tokens: int, context: int, device: torch.device
) -> Call:
    k, v, *cache, slots = _store_kv(shape, dtype, num_tokens, context, device).arguments
    q = make_normal(num_tokens, shape.num_qo_heads, shape.head_dim, dtype=dtype, seed=4, device=device)
    half = shape.head_dim // 2
    positions = torch.arange(num_tokens, device=device)
    angles = torch.outer(positions.float(), 10000.0 ** (-torch.arange(half, device=device).float() / half))
    num_bytes = 2 * q.nbytes + 4 * k.nbytes + 2 * angles.nbytes
    return Call((q, k, v, positions, angles.cos(), angles.sin(), *cache, slots), num_bytes)


def _block_copy(shape: ModelShape, dtype: torch.dtype, num_tokens: int, context: int, device: torch.device) -> Call:
    cache = _make_cache(shape, dtype, 2 * num_tokens, device)
    pairs = torch.arange(2 * num_tokens, device=device).view(2, num_tokens).t().contiguous()
    return Call((*cache, pairs), 4 * num_tokens * cache[0][0].nbytes)


def _attention(
    shape: ModelShape, dtype: torch.dtype, rows_per_request: int, num_tokens: int, context: int, device: torch.device
) -> Call:
    """Decode (`rows_per_request` 1) of num_tokens requests, or one chunk of num_tokens rows (0)."""
    is_decode = rows_per_request == 1
    q_lens = [1] * num_tokens if is_decode else [num_tokens]
    seq_lens = [max(context, q_len) for q_len in q_lens]
    batch = make_paged_batch(
        q_lens, seq_lens, num_qo_heads=shape.num_qo_heads, num_kv_heads=shape.num_kv_heads,
        head_dim=shape.head_dim, block_size=BLOCK_SIZE, dtype=dtype, device=device,
    )  # fmt: skip
    row_bytes = 2 * shape.num_kv_heads * shape.head_dim * dtype.itemsize
    options = {
        "softmax_scale": shape.head_dim**-0.5,
        "max_seqlen_q": max(q_lens, default=0),
        "max_seqlen_k": max(seq_lens, default=0),
    }
    return Call(batch.arguments, 2 * batch.q.nbytes + row_bytes * sum(seq_lens), options)


def _make_logits(num_tokens: int, device: torch.device) -> torch.Tensor:
    return make_normal(num_tokens, VOCAB_SIZE, dtype=torch.float32, seed=1, device=device, scale=3.0)


def _sample_greedy(num_tokens: int, context: int, device: torch.device) -> Call:
    logits = _make_logits(num_tokens, device)
    return Call((logits,), logits.nbytes)


def _sample_logprobs(num_tokens: int, context: int, device: torch.device) -> Call:
    logits = _make_logits(num_tokens, device)
    return Call((logits, torch.arange(num_tokens, device=device)), 2 * logits.nbytes)


def _sample_gumbel(num_tokens: int, context: int, device: torch.device) -> Call:
    logits = _make_logits(num_tokens, device)
    rows = torch.arange(num_tokens, device=device)
    temperature = torch.full((num_tokens,), 0.8, dtype=torch.float64, device=device)
    return Call((logits, temperature, rows * 7919, rows), 2 * logits.nbytes)


def _sample_truncate(
    top_k: int, top_p: float, min_p: float, num_tokens: int, context: int, device: torch.device
) -> Call:
    logits = _make_logits(num_tokens, device)
    options = [torch.full((num_tokens,), x, dtype=torch.float64, device=device) for x in (0.8, top_p, min_p)]
    top_ks = torch.full((num_tokens,), top_k, dtype=torch.int32, device=device)
    return Call((logits, options[0], top_ks, options[1], options[2]), 2 * logits.nbytes)


def _sample_penalties(num_tokens: int, context: int, device: torch.device) -> Call:
    logits = _make_logits(num_tokens, device)
    per_row = 1000
    rows = torch.arange(num_tokens, dtype=torch.int32, device=device).repeat_interleave(per_row)
    token_ids = (torch.arange(num_tokens * per_row, dtype=torch.int32, device=device) * 7919) % VOCAB_SIZE
    counts = token_ids % 4
    biases = torch.zeros(num_tokens * per_row, device=device)
    strengths = [torch.full((num_tokens,), x, device=device) for x in (1.2, 0.3, 0.5)]
    return Call((logits, rows, token_ids, counts, biases, *strengths), 24 * rows.numel())


def iterate_cases(*, is_full: bool = False) -> Iterator[KernelCase]:
    """Yield the cases; `is_full` adds further models and dtypes."""
    bf16, fp16, fp32 = torch.bfloat16, torch.float16, torch.float32
    plain = (
        ("rms_norm", rms_norm.rms_norm, rms_norm.rms_norm_ref, _rms_norm),
        ("add_and_rms_norm", add_and_rms_norm.add_and_rms_norm, add_and_rms_norm.add_and_rms_norm_ref,
         _add_and_rms_norm),
        ("silu_and_mul", silu_and_mul.silu_and_mul, silu_and_mul.silu_and_mul_ref, _silu_and_mul),
        ("store_kv", store_kv.store_kv, store_kv.store_kv_ref, _store_kv),
        ("rope_and_store_kv", rope_and_store_kv.rope_and_store_kv, rope_and_store_kv.rope_and_store_kv_ref,
         _rope_and_store_kv),
        ("block_copy", block_copy.block_copy, block_copy.block_copy_ref, _block_copy),
    )  # fmt: skip
    variants = [(LLAMA_8B, bf16)]
    if is_full:
        variants += [
            (SMOLLM2_135M, bf16),
            (SMOLLM2_135M, fp32),
            (LLAMA_8B, fp16),
            (QWEN3_4B, bf16),
            (GROUP_1_D80, bf16),
        ]
    for op, function, reference, prepare in plain:
        for shape, dtype in variants:
            label = f"{shape.name}-{_short(dtype)}"
            yield KernelCase(op, label, function, reference, partial(prepare, shape, dtype))
    attention = [(SMOLLM2_135M, bf16), (LLAMA_8B, bf16), (SMOLLM2_135M, fp32)]
    if is_full:
        attention += [(GROUP_8, bf16), (GROUP_1_D80, bf16), (GROUP_3_D96, bf16), (GROUP_4_D256, bf16)]
        attention += [(LLAMA_8B, fp16), (LLAMA_8B, fp32)]
    for phase, rows_per_request in (("decode", 1), ("prefill", 0)):
        for shape, dtype in attention:
            yield KernelCase(
                "attention_paged", f"{phase}-{shape.name}-{_short(dtype)}",
                attention_paged.attention_paged, attention_paged.attention_paged_ref,
                partial(_attention, shape, dtype, rows_per_request), has_dot=True,
            )  # fmt: skip
    yield KernelCase(
        "sample_greedy", "fp32", sample_greedy.sample_greedy, sample_greedy.sample_greedy_ref, _sample_greedy
    )
    yield KernelCase(
        "sample_logprobs",
        "fp32",
        sample_logprobs.sample_logprobs,
        sample_logprobs.sample_logprobs_ref,
        _sample_logprobs,
    )
    yield KernelCase(
        "sample_gumbel", "fp32", sample_gumbel.sample_gumbel, sample_gumbel.sample_gumbel_ref, _sample_gumbel
    )
    yield KernelCase(
        "sample_penalties", "fp32", sample_penalties.sample_penalties, sample_penalties.sample_penalties_ref,
        _sample_penalties,
    )  # fmt: skip
    truncations = {"top-p": (0, 0.9, 0.0)}
    if is_full:
        truncations |= {"top-k": (40, 1.0, 0.0), "all": (50, 0.95, 0.05)}
    for label, options in truncations.items():
        yield KernelCase(
            "sample_truncate", label, sample_truncate.sample_truncate, sample_truncate.sample_truncate_ref,
            partial(_sample_truncate, *options),
        )  # fmt: skip


def _short(dtype: torch.dtype) -> str:
    return {torch.bfloat16: "bf16", torch.float16: "fp16", torch.float32: "fp32"}[dtype]
