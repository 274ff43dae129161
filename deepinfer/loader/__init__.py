"""Model files of all formats as one Checkpoint. The default model's download is `deepinfer.loader.default_model`."""

from deepinfer.loader.checkpoint import Checkpoint, RawTensor, TokenizerSpec
from deepinfer.loader.open import open_checkpoint, resolve_model

__all__ = ["Checkpoint", "RawTensor", "TokenizerSpec", "open_checkpoint", "resolve_model"]
