"""From what a user types to an opened checkpoint. No torch here."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from deepinfer.errors import WeightLoadError
from deepinfer.loader.checkpoint import Checkpoint
from deepinfer.loader.gguf import GGUFCheckpoint
from deepinfer.loader.huggingface import HuggingFaceCheckpoint

_HUB_ID: Final = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_HUB_FILES: Final = ("*.safetensors", "*.safetensors.index.json", "*config.json", "tokenizer.json", "*.jinja")


def open_checkpoint(path: Path) -> Checkpoint:
    """Open a GGUF file or a Hugging Face directory.

    Raises:
        WeightLoadError: it is missing, damaged, or holds something that is not covered.
    """
    if path.is_dir():
        if (path / "config.json").exists():
            return HuggingFaceCheckpoint(path)
        raise WeightLoadError(f"{path} is a directory without config.json; give a GGUF file or a model directory")
    if not path.exists():
        raise WeightLoadError(f"there is no model at {path}; check the path")
    return GGUFCheckpoint(path)


def resolve_model(name: str) -> Path:
    """Path of a model given as a path or as a Hugging Face id (`owner/name`), which is fetched if need be.

    Raises:
        WeightLoadError: it is neither an existing path nor an id that can be fetched.
    """
    path = Path(name).expanduser()
    if path.exists():
        return path
    if not _HUB_ID.fullmatch(name):
        raise WeightLoadError(f"there is no model at {path}; check the path")
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(name, allow_patterns=list(_HUB_FILES)))
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise WeightLoadError(
            f"there is no file or directory {name}, and it cannot be fetched from the Hugging Face Hub: {reason}"
        ) from error
