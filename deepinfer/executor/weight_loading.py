"""Fill a model's parameters from a checkpoint."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from deepinfer.loader.checkpoint import Checkpoint
from deepinfer.models.llama.model import LlamaModel
from deepinfer.models.llama.weights import weight_destinations
from deepinfer.quant.gguf_blocks import dequantize, half_split_rows

# Called with (bytes of the file read so far, bytes to read).
Progress = Callable[[int, int], None]


def load_weights(model: LlamaModel, checkpoint: Checkpoint, *, progress: Progress | None = None) -> None:
    """Dequantise every tensor into the model's parameters, one after the other.

    The checkpoint has checked that names and shapes fit its configuration.
    """
    destinations = weight_destinations(model)
    tensors = checkpoint.tensors
    total = sum(tensors[name].data.nbytes for name in destinations)
    done = 0
    for name, destination in destinations.items():
        tensor = tensors[name]
        values = dequantize(tensor.data, tensor.storage, tensor.shape)
        if tensor.num_interleaved_heads:
            values = half_split_rows(values, tensor.num_interleaved_heads)
        destination.copy_(torch.from_numpy(np.require(values, requirements="W")))
        done += tensor.data.nbytes
        if progress is not None:
            progress(done, total)
