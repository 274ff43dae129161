"""Torch executor: holds the weights and KV blocks of a model and runs plans on one device."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray

from deepinfer import ops
from deepinfer.config import EngineConfig, ModelConfig
from deepinfer.errors import ConfigError
from deepinfer.executor.choice_rounds import ChoiceRounds, sample_from, take_best
from deepinfer.executor.host import count_usable_processors, measure_available_memory_bytes
from deepinfer.executor.input_batch import InputBatch, make_input_batch
from deepinfer.executor.kv_memory import compute_num_blocks
from deepinfer.executor.prompt_rows import add_prompt_logprobs, select_prompt_rows
from deepinfer.executor.request_states import RequestStates
from deepinfer.executor.weight_loading import Progress, load_weights
from deepinfer.layers.attention import AttentionMetadata
from deepinfer.loader.checkpoint import Checkpoint
from deepinfer.models.llama.model import LlamaModel
from deepinfer.outputs import ModelRunnerOutput, SchedulerOutput
from deepinfer.sampling import Sampler

TORCH_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


class ModelRunner:
    """An `Executor` on torch. The reference on CPUs, the product on GPUs."""

    def __init__(self, config: EngineConfig, checkpoint: Checkpoint, *, progress: Progress | None = None) -> None:
        """Load the weights and reserve the KV blocks, whose memory stays untouched until used.

        Raises:
            ConfigError: there is no such device, or the KV cache does not hold one request.
        """
        model_config = checkpoint.config
        self._model_config = model_config
        self._device = _choose_device(config.device)
        on_cpu = self._device.type == "cpu"
        self._dtype = TORCH_DTYPES.get(config.dtype, torch.float32 if on_cpu else torch.bfloat16)
        kv_dtype = TORCH_DTYPES.get(config.cache.kv_cache_dtype, self._dtype)
        self._num_threads = config.num_threads or count_usable_processors()
        if on_cpu:
            torch.set_num_threads(self._num_threads)
        free_bytes = measure_available_memory_bytes() if on_cpu else torch.cuda.mem_get_info(self._device)[0]
        weight_bytes = sum(math.prod(tensor.shape) for tensor in checkpoint.tensors.values()) * self._dtype.itemsize
        self._num_blocks = compute_num_blocks(
            config,
            model_config,
            bytes_per_value=kv_dtype.itemsize,
            available_bytes=max(free_bytes - weight_bytes, 0),
        )
        self._block_size = config.cache.block_size
        max_model_len = config.max_model_len or model_config.max_position_embeddings
        max_model_len = min(max_model_len, self._num_blocks * self._block_size)
        self._model = LlamaModel(model_config, max_model_len=max_model_len, dtype=self._dtype, device=self._device)
        load_weights(self._model, checkpoint, num_threads=self._num_threads, progress=progress)
        self._kv_cache = torch.empty(
            model_config.num_layers,
            2,
            self._num_blocks,
            self._block_size,
            model_config.num_kv_heads,
            model_config.head_dim,
            dtype=kv_dtype,
            device=self._device,
        )
        self._states = RequestStates()
        self._sampler = Sampler(model_config.vocab_size)

    @property
    def model_config(self) -> ModelConfig:
        """Shape of the model."""
        return self._model_config

    @property
    def num_blocks(self) -> int:
        """KV blocks it allocated."""
        return self._num_blocks

    def describe(self) -> str:
        """One line for the start-up log."""
        operators = "triton operators" if self._device.type == "cuda" else f"{self._num_threads} threads"
        weights, keys = (str(dtype).removeprefix("torch.") for dtype in (self._dtype, self._kv_cache.dtype))
        return f"torch {torch.__version__} on {self._device}, {operators}, weights {weights}, KV cache {keys}"

    def close(self) -> None:
        """Release weights and KV blocks."""
        del self._model, self._kv_cache

    @torch.inference_mode()
    def execute(self, plan: SchedulerOutput) -> ModelRunnerOutput:
        """Run one step."""
        scheduled = self._states.apply(plan)
        if plan.block_copies:
            pairs = torch.tensor(plan.block_copies, dtype=torch.int64, device=self._device)
            for layer_cache in self._kv_cache:
                ops.block_copy(layer_cache[0], layer_cache[1], pairs)
        if not scheduled:
            return ModelRunnerOutput()
        batch = make_input_batch(scheduled, self._block_size)
        residual = self._model(self._on_device(batch.input_ids), self._kv_cache, self._metadata(batch))
        output = ModelRunnerOutput()
        for prompt_rows in select_prompt_rows(scheduled, batch.cu_seqlens_q):
            logits = self._model.compute_logits(residual[prompt_rows.rows])
            add_prompt_logprobs(output, prompt_rows, logits.cpu().numpy())
        ends = batch.cu_seqlens_q[1:].tolist()
        choosing = [(item, end) for item, end in zip(scheduled, ends, strict=True) if item.samples_token]
        rounds = ChoiceRounds(choosing)
        if rounds.rows:
            logits = self._model.compute_logits(residual[self._on_device(np.array(rounds.rows, np.int64))])
            if all(item.state.sampling.needs_only_argmax for item, _ in choosing):
                rounds.run(output, take_best(ops.sample_greedy(logits).tolist()))
            else:
                rounds.run(output, sample_from(self._sampler, logits.cpu().numpy()))
        return output

    def _metadata(self, batch: InputBatch) -> AttentionMetadata:
        return AttentionMetadata(
            positions=self._on_device(batch.positions),
            slot_mapping=self._on_device(batch.slot_mapping),
            block_table=self._on_device(batch.block_table),
            cu_seqlens_q=self._on_device(batch.cu_seqlens_q),
            seq_lens=self._on_device(batch.seq_lens),
            max_seqlen_q=int(np.diff(batch.cu_seqlens_q).max()),
            max_seqlen_k=int(batch.seq_lens.max()),
        )

    def _on_device(self, array: NDArray[np.int64] | NDArray[np.int32]) -> torch.Tensor:
        return torch.from_numpy(array).to(self._device)


def _choose_device(name: str) -> torch.device:
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and not torch.cuda.is_available():
        raise ConfigError("device is cuda, but torch finds no CUDA device; use device cpu or auto")
    return torch.device(name)
