"""Support for tests of this package and of programs built on it: small random models of every family, as files."""

from deepinfer.testing.model_files import write_gguf, write_huggingface
from deepinfer.testing.tiny_models import FAMILIES, make_random_blocks, make_random_tensors, make_tiny_config

__all__ = [
    "FAMILIES",
    "make_random_blocks",
    "make_random_tensors",
    "make_tiny_config",
    "write_gguf",
    "write_huggingface",
]
