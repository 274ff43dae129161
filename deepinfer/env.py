"""The only reader of environment variables in this package."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """Folder for downloads: DEEPINFER_CACHE_DIR, else `open-deepinfer` in the user's cache folder."""
    own = os.environ.get("DEEPINFER_CACHE_DIR")
    if own:
        return Path(own).expanduser()
    user_cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(user_cache) if user_cache else Path.home() / ".cache") / "open-deepinfer"
