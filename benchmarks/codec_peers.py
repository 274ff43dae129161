"""The encoders that the codec benchmark compares, each behind one function from text to a sequence of ids."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Sequence

Encode = Callable[[str], Sequence[int]]

PEERS = ("ours", "hf", "hf-rc", "fastokens", "gigatoken", "deepseek-recipe")


def open_encoder(name: str, path: str) -> Encode:
    """Returns the encoder of a library for a `tokenizer.json`, on one thread.

    Raises:
        ImportError: the library is not installed.
    """
    os.environ["RAYON_NUM_THREADS"] = "1"
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    if name == "ours":
        recipe_rs = importlib.import_module("recipe_rs")
        tokenizer = recipe_rs.Tokenizer.from_file(path)
        return lambda text: memoryview(tokenizer.encode_plain(text, num_threads=1)).cast("I")
    if name in ("hf", "hf-rc"):
        tokenizers = importlib.import_module("tokenizers")
        if tokenizers.__version__.startswith("1.") != (name == "hf-rc"):
            raise ImportError(f"tokenizers {tokenizers.__version__} is not the release meant by {name}")
        hugging_face = tokenizers.Tokenizer.from_file(path)
        return lambda text: hugging_face.encode(text, add_special_tokens=False).ids
    if name == "fastokens":
        fast = importlib.import_module("fastokens")._native.Tokenizer.from_file(path)
        return lambda text: memoryview(fast.encode_batch_flat([text])[0]).cast("B").cast("I")
    if name == "gigatoken":
        giga = importlib.import_module("gigatoken.gigatoken_rs").BPETokenizer.from_hf(path)
        return lambda text: giga.encode(text)
    if name == "deepseek-recipe":
        official = importlib.import_module("deepseek_recipe").Tokenizer.from_file(path)
        return lambda text: official.encode(text)
    sys.exit(f"there is no encoder {name}; known are {', '.join(PEERS)}")
