"""Fill a model's parameters from a checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed

import numpy as np
import torch

from deepinfer.loader.checkpoint import Checkpoint, RawTensor
from deepinfer.models.llama.model import LlamaModel
from deepinfer.models.llama.weights import weight_destinations
from deepinfer.quant.gguf_blocks import dequantize, half_split_rows

# Called with (bytes of the file read so far, bytes to read).
Progress = Callable[[int, int], None]


def load_weights(
    model: LlamaModel, checkpoint: Checkpoint, *, num_threads: int = 1, progress: Progress | None = None
) -> None:
    """Dequantise every tensor into the model's parameters, several at a time.

    The checkpoint has checked that names and shapes fit its configuration. `progress` is called in this thread.
    """
    destinations = weight_destinations(model)
    tensors = checkpoint.tensors
    total = sum(tensors[name].data.nbytes for name in destinations)
    done = 0
    with ThreadPoolExecutor(num_threads, thread_name_prefix="load-weights") as pool:
        pending = [pool.submit(_load_tensor, tensors[name], target) for name, target in destinations.items()]
        try:
            for loading in as_completed(pending):
                done += loading.result()
                if progress is not None:
                    progress(done, total)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    checkpoint.release_pages()


def _load_tensor(tensor: RawTensor, destination: torch.Tensor) -> int:
    """Fill one parameter; returns the bytes of the file that went into it."""
    values = dequantize(tensor.data, tensor.storage, tensor.shape)
    if tensor.num_interleaved_heads:
        values = half_split_rows(values, tensor.num_interleaved_heads)
    destination.copy_(torch.from_numpy(np.require(values, requirements="W")))
    return tensor.data.nbytes
