"""The safetensors container as memory maps; numbers stay as they are in the file, bf16 included. No torch here.

The `safetensors` package copies each tensor and knows bf16 only through torch. Layout: u64 length of the header, header
as JSON {name: {dtype, shape, data_offsets}}, data; offsets count from the end of the header.
"""

from __future__ import annotations

import json
import math
import mmap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from deepinfer.errors import WeightLoadError

# dtype in the file -> (storage name, bytes of a number).
STORAGES: Final[Mapping[str, tuple[str, int]]] = {"F32": ("f32", 4), "F16": ("f16", 2), "BF16": ("bf16", 2)}
INDEX_FILE_NAME: Final = "model.safetensors.index.json"
SINGLE_FILE_NAME: Final = "model.safetensors"
MAX_HEADER_BYTES: Final = 100_000_000


@dataclass(frozen=True, slots=True)
class SafetensorsTensor:
    """One tensor: a view of a memory map."""

    shape: tuple[int, ...]
    storage: str
    data: NDArray[np.uint8]


class SafetensorsFiles:
    """All tensors of a directory with a single or a sharded checkpoint.

    Attributes:
        tensors: name -> tensor.
    """

    def __init__(self, directory: Path) -> None:
        """Open the files and check extents.

        Raises:
            WeightLoadError: a file is missing, damaged or truncated, or holds a number type that is not covered.
        """
        self._maps: list[mmap.mmap] = []
        self.tensors: dict[str, SafetensorsTensor] = {}
        index_path = directory / INDEX_FILE_NAME
        if index_path.exists():
            self._open_shards(directory, index_path)
        elif (directory / SINGLE_FILE_NAME).exists():
            self._open(directory / SINGLE_FILE_NAME)
        else:
            raise WeightLoadError(f"{directory} holds neither {SINGLE_FILE_NAME} nor {INDEX_FILE_NAME}")

    def release_pages(self) -> None:
        """Give the resident pages of the maps back to the system; a later access reads them again."""
        for data in self._maps:
            data.madvise(mmap.MADV_DONTNEED)

    def _open_shards(self, directory: Path, index_path: Path) -> None:
        weight_map = read_json_object(index_path).get("weight_map")
        if not isinstance(weight_map, dict) or not all(isinstance(name, str) for name in weight_map.values()):
            raise WeightLoadError(f"{index_path} is damaged: weight_map must map tensor names to file names")
        for file_name in sorted(set(weight_map.values())):
            if Path(file_name).name != file_name:
                raise WeightLoadError(f"{index_path} names the file {file_name!r} outside its directory")
            self._open(directory / file_name)
        missing = [name for name in weight_map if name not in self.tensors]
        if missing:
            raise WeightLoadError(f"{index_path} lists the tensor {missing[0]}, but {weight_map[missing[0]]} lacks it")

    def _open(self, path: Path) -> None:
        try:
            with path.open("rb") as file:
                data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise WeightLoadError(f"cannot open {path}: {error}") from error
        self._maps.append(data)
        size = int.from_bytes(data[:8], "little")
        if len(data) < 8 or size > min(len(data) - 8, MAX_HEADER_BYTES):
            raise WeightLoadError(
                f"{path} is truncated or no safetensors file: its header would take {size} of {len(data)} bytes"
            )
        try:
            header = json.loads(data[8 : 8 + size])
        except ValueError as error:
            raise WeightLoadError(f"{path} is damaged: its header is not JSON") from error
        if not isinstance(header, dict):
            raise WeightLoadError(f"{path} is damaged: its header is not a JSON object")
        header.pop("__metadata__", None)
        for name, entry in header.items():
            if name in self.tensors:
                raise WeightLoadError(f"{path}: tensor {name} appears in two files")
            self.tensors[name] = _tensor(path, data, 8 + size, name, entry)


def read_json_object(path: Path) -> dict[str, Any]:
    """Content of a JSON file that must hold an object.

    Raises:
        WeightLoadError: there is no such file, or it holds something else.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise WeightLoadError(f"there is no file {path}") from error
    except (OSError, ValueError) as error:
        raise WeightLoadError(f"cannot read {path} as JSON: {error}") from error
    if not isinstance(content, dict):
        raise WeightLoadError(f"{path} must hold a JSON object")
    return content


def _tensor(path: Path, data: mmap.mmap, data_start: int, name: str, entry: object) -> SafetensorsTensor:
    if not isinstance(entry, dict):
        raise WeightLoadError(f"{path} is damaged: the entry of tensor {name} is not an object")
    dtype, shape, offsets = entry.get("dtype"), _counts(entry.get("shape")), _counts(entry.get("data_offsets"))
    if shape is None or offsets is None or len(offsets) != 2:
        raise WeightLoadError(f"{path} is damaged: shape or position of tensor {name} is not valid")
    if not isinstance(dtype, str) or dtype not in STORAGES:
        raise WeightLoadError(
            f"{path}: tensor {name} has the number type {dtype}, which is not supported; "
            f"supported are {', '.join(STORAGES)}"
        )
    storage, num_bytes = STORAGES[dtype]
    start, end = data_start + offsets[0], data_start + offsets[1]
    if end - start != math.prod(shape) * num_bytes:
        raise WeightLoadError(f"{path} is damaged: tensor {name} of shape {shape} has {end - start} bytes")
    if end > len(data):
        raise WeightLoadError(
            f"{path} is truncated: tensor {name} ends at byte {end}, but the file has {len(data)}; download it again"
        )
    return SafetensorsTensor(shape, storage, np.frombuffer(data, np.uint8, count=end - start, offset=start))


def _counts(values: object) -> tuple[int, ...] | None:
    is_valid = isinstance(values, list) and all(type(value) is int and value >= 0 for value in values)
    return tuple(values) if isinstance(values, list) and is_valid else None
