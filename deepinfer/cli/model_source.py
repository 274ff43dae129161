"""From what stands on the command line to a model file on disk."""

from __future__ import annotations

import sys
from pathlib import Path


def find_model(name: str | None) -> Path:
    """Path of a model given as path or hub id; None is the default model, fetched if it is nowhere.

    Raises:
        WeightLoadError: there is no such model, or it cannot be fetched.
    """
    if name is None:
        from deepinfer.loader.default_model import find_or_fetch_default_model

        return find_or_fetch_default_model(report=_report)
    from deepinfer.loader.open import resolve_model

    return resolve_model(name)


def _report(line: str) -> None:
    sys.stderr.write(f"{line}\n")
