"""The GGUF container: metadata and tensor positions of a file, without reading a tensor.

Written for start-up time: the `gguf` package's reader turns each of the ~100,000 vocabulary strings into numpy objects,
which takes longer than everything else that happens before the first answer. Every length is checked against the file
before it is followed, so a damaged file ends in `WeightLoadError`. Knows nothing about models.

Layout (version 2 and 3, little endian): "GGUF", u32 version, u64 tensor count, u64 metadata count, metadata as
(string key, u32 type, value), tensors as (string name, u32 rank, u64 sizes innermost first, u32 type, u64 offset),
padding to the alignment, tensor data.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from deepinfer.errors import WeightLoadError

MAGIC: Final = b"GGUF"
DEFAULT_ALIGNMENT: Final = 32
MAX_RANK: Final = 4

# Type number -> (storage name, elements in a block, bytes of a block).
BLOCK_TYPES: Final[Mapping[int, tuple[str, int, int]]] = {
    0: ("f32", 1, 4),
    1: ("f16", 1, 2),
    2: ("q4_0", 32, 18),
    3: ("q4_1", 32, 20),
    8: ("q8_0", 32, 34),
    12: ("q4_k", 256, 144),
    13: ("q5_k", 256, 176),
    14: ("q6_k", 256, 210),
    30: ("bf16", 1, 2),
}

_SCALARS: Final[Mapping[int, struct.Struct]] = {
    0: struct.Struct("<B"),
    1: struct.Struct("<b"),
    2: struct.Struct("<H"),
    3: struct.Struct("<h"),
    4: struct.Struct("<I"),
    5: struct.Struct("<i"),
    6: struct.Struct("<f"),
    7: struct.Struct("<?"),
    10: struct.Struct("<Q"),
    11: struct.Struct("<q"),
    12: struct.Struct("<d"),
}
_STRING: Final = 8
_ARRAY: Final = 9
_U32: Final = struct.Struct("<I")
_U64: Final = struct.Struct("<Q")


@dataclass(frozen=True, slots=True)
class GGUFTensor:
    """Where one tensor lies.

    Attributes:
        shape: outermost first, the reverse of the order in the file.
        storage: name of the block type (see `BLOCK_TYPES`).
        offset, num_bytes: absolute position in the file.
    """

    name: str
    shape: tuple[int, ...]
    storage: str
    offset: int
    num_bytes: int


class GGUFFile:
    """A GGUF file that stays open as a memory map.

    Attributes:
        metadata: key -> int, float, bool, str, or a list of these.
        tensors: name -> position.
    """

    def __init__(self, path: Path) -> None:
        """Parse the header.

        Raises:
            WeightLoadError: the file is missing, no GGUF, damaged or truncated, or holds a tensor type that is not
                covered.
        """
        self.path = path
        try:
            with path.open("rb") as file:
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except FileNotFoundError as error:
            raise WeightLoadError(f"there is no file {path}; check the path") from error
        except (OSError, ValueError) as error:
            raise WeightLoadError(f"cannot open {path}: {error}") from error
        header = _HeaderReader(self._map, path.name)
        self.metadata, self.tensors = header.read()

    def tensor_data(self, tensor: GGUFTensor) -> NDArray[np.uint8]:
        """Bytes of a tensor: a view of the memory map, nothing is read."""
        return np.frombuffer(self._map, np.uint8, count=tensor.num_bytes, offset=tensor.offset)

    def release_pages(self) -> None:
        """Give the resident pages of the map back to the system; a later access reads them again."""
        self._map.madvise(mmap.MADV_DONTNEED)


class _HeaderReader:
    """One pass over the header. `_position` never passes the end of the file."""

    def __init__(self, data: mmap.mmap, file_name: str) -> None:
        self._data = data
        self._size = len(data)
        self._file_name = file_name
        self._position = 0

    def read(self) -> tuple[dict[str, Any], dict[str, GGUFTensor]]:
        if self._data[:4] != MAGIC:
            raise WeightLoadError(f"{self._file_name} is not a GGUF file: it does not start with the letters GGUF")
        self._position = 4
        version = self._unsigned(_U32, "the version")
        if version not in (2, 3):
            raise WeightLoadError(
                f"{self._file_name} is GGUF version {version}; versions 2 and 3 (little endian) are supported"
            )
        num_tensors = self._unsigned(_U64, "the tensor count")
        num_keys = self._unsigned(_U64, "the metadata count")
        self._require(num_tensors * 24 + num_keys * 12, "the header")
        metadata: dict[str, Any] = {}
        for _ in range(num_keys):
            key = self._string("a metadata key")
            metadata[key] = self._value(self._unsigned(_U32, f"the type of {key}"), key)
        infos = [self._tensor_info() for _ in range(num_tensors)]
        return metadata, self._place(infos, metadata.get("general.alignment", DEFAULT_ALIGNMENT))

    def _require(self, num_bytes: int, what: str) -> None:
        if self._size - self._position < num_bytes:
            raise WeightLoadError(
                f"{self._file_name} is truncated or damaged: it has {self._size} bytes and ends inside {what}; "
                "download it again"
            )

    def _unsigned(self, form: struct.Struct, what: str) -> int:
        self._require(form.size, what)
        value: int = form.unpack_from(self._data, self._position)[0]
        self._position += form.size
        return value

    def _string(self, what: str) -> str:
        size = self._unsigned(_U64, what)
        self._require(size, what)
        data = self._data[self._position : self._position + size]
        self._position += size
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise WeightLoadError(f"{self._file_name} is damaged: {what} is not valid UTF-8") from error

    def _value(self, value_type: int, key: str) -> Any:
        if value_type == _STRING:
            return self._string(key)
        if value_type == _ARRAY:
            item_type = self._unsigned(_U32, key)
            return self._array(item_type, self._unsigned(_U64, key), key)
        form = self._scalar_form(value_type, key)
        self._require(form.size, key)
        value = form.unpack_from(self._data, self._position)[0]
        self._position += form.size
        return value

    def _scalar_form(self, value_type: int, key: str) -> struct.Struct:
        form = _SCALARS.get(value_type)
        if form is None:
            raise WeightLoadError(f"{self._file_name} is damaged: {key} has the unknown value type {value_type}")
        return form

    def _array(self, item_type: int, count: int, key: str) -> list[Any]:
        if item_type == _STRING:
            return self._string_array(count, key)
        if item_type == _ARRAY:
            raise WeightLoadError(f"{self._file_name}: {key} is an array of arrays, which no supported model uses")
        form = self._scalar_form(item_type, key)
        self._require(count * form.size, key)
        values: list[Any] = np.frombuffer(self._data, form.format, count=count, offset=self._position).tolist()
        self._position += count * form.size
        return values

    def _string_array(self, count: int, key: str) -> list[str]:
        self._require(count * 8, key)
        strings: list[str] = []
        data, position, end = self._data, self._position, self._size
        read_size = _U64.unpack_from
        try:
            for _ in range(count):
                start = position + 8
                position = start + read_size(data, position)[0]
                if position > end:
                    break
                strings.append(data[start:position].decode())
        except struct.error:
            position = end + 1
        except UnicodeDecodeError as error:
            raise WeightLoadError(
                f"{self._file_name} is damaged: entry {len(strings)} of {key} is not valid UTF-8"
            ) from error
        if position > end:
            self._require(end + 1, key)
        self._position = position
        return strings

    def _tensor_info(self) -> tuple[str, tuple[int, ...], int, int]:
        name = self._string("a tensor name")
        rank = self._unsigned(_U32, f"the shape of {name}")
        if not 1 <= rank <= MAX_RANK:
            raise WeightLoadError(f"{self._file_name} is damaged: tensor {name} has {rank} dimensions")
        sizes = [self._unsigned(_U64, f"the shape of {name}") for _ in range(rank)]
        tensor_type = self._unsigned(_U32, f"the type of {name}")
        return name, tuple(reversed(sizes)), tensor_type, self._unsigned(_U64, f"the position of {name}")

    def _place(self, infos: list[tuple[str, tuple[int, ...], int, int]], alignment: object) -> dict[str, GGUFTensor]:
        if not isinstance(alignment, int) or alignment < 8 or alignment % 8:
            raise WeightLoadError(
                f"{self._file_name} is damaged: general.alignment must be a positive multiple of 8, "
                f"but is {alignment!r}"
            )
        start = -(-self._position // alignment) * alignment
        tensors: dict[str, GGUFTensor] = {}
        for name, shape, tensor_type, offset in infos:
            if tensor_type not in BLOCK_TYPES:
                raise WeightLoadError(
                    f"{self._file_name}: tensor {name} has the type {_type_name(tensor_type)}, which is not supported; "
                    f"supported are {', '.join(sorted(entry[0].upper() for entry in BLOCK_TYPES.values()))}"
                )
            storage, block_elements, block_bytes = BLOCK_TYPES[tensor_type]
            if name in tensors:
                raise WeightLoadError(f"{self._file_name} is damaged: tensor {name} appears twice")
            if 0 in shape or shape[-1] % block_elements:
                raise WeightLoadError(
                    f"{self._file_name} is damaged: tensor {name} has shape {shape}, but {storage.upper()} rows are "
                    f"whole blocks of {block_elements}"
                )
            num_elements = 1
            for size in shape:
                num_elements *= size
            num_bytes = num_elements // block_elements * block_bytes
            if offset % alignment:
                raise WeightLoadError(
                    f"{self._file_name} is damaged: tensor {name} starts at {offset}, which is not a multiple of the "
                    f"alignment {alignment}"
                )
            if start + offset + num_bytes > self._size:
                raise WeightLoadError(
                    f"{self._file_name} is truncated or damaged: tensor {name} ends at byte "
                    f"{start + offset + num_bytes}, but the file has {self._size}; download it again"
                )
            tensors[name] = GGUFTensor(name, shape, storage, start + offset, num_bytes)
        return tensors


def _type_name(tensor_type: int) -> str:
    """Name of a type for an error message; only then is the `gguf` package worth its import."""
    from gguf import GGMLQuantizationType

    try:
        return GGMLQuantizationType(tensor_type).name
    except ValueError:
        return f"number {tensor_type}"
