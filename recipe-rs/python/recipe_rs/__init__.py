"""Codec between chat requests, prompts, token ids and protocol events.

All names come from the compiled module `recipe_rs._native`; its stub `_native.pyi` describes each of them.
"""

from recipe_rs._native import *  # noqa: F403
from recipe_rs._native import __all__ as __all__
