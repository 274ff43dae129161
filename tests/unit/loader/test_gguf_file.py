"""The GGUF container: against the gguf package's reader, and damaged in every way."""

from __future__ import annotations

import struct

import gguf
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepinfer.errors import WeightLoadError
from deepinfer.loader.gguf_file import GGUFFile


def write(path, *, tensors=(), metadata=(), alignment=None):
    writer = gguf.GGUFWriter(path, "llama")
    if alignment:
        writer.add_custom_alignment(alignment)
    for add, key, value in metadata:
        getattr(writer, add)(key, value)
    for name, values in tensors:
        writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture
def model_file(tmp_path):
    metadata = [
        ("add_uint8", "u8", 255),
        ("add_int8", "i8", -1),
        ("add_uint16", "u16", 65535),
        ("add_int32", "i32", -5),
        ("add_uint64", "u64", 2**63),
        ("add_float32", "f32", 0.5),
        ("add_float64", "f64", 1e-300),
        ("add_bool", "yes", True),
        ("add_string", "text", "snow ❄ and \0 zero"),
        ("add_array", "strings", ["", "a", "ż", "🙂"]),
        ("add_array", "numbers", [1, 2, 3]),
        ("add_array", "floats", [0.25, -1.0]),
    ]
    tensors = [("one", np.arange(6, dtype=np.float32).reshape(2, 3)), ("two", np.ones(5, np.float16))]
    return write(tmp_path / "model.gguf", tensors=tensors, metadata=metadata)


def test_reads_every_metadata_type(model_file):
    metadata = GGUFFile(model_file).metadata
    assert metadata["u8"] == 255
    assert metadata["i8"] == -1
    assert metadata["u16"] == 65535
    assert metadata["i32"] == -5
    assert metadata["u64"] == 2**63
    assert metadata["f32"] == 0.5
    assert metadata["f64"] == 1e-300
    assert metadata["yes"] is True
    assert metadata["text"] == "snow ❄ and \0 zero"
    assert metadata["strings"] == ["", "a", "ż", "🙂"]
    assert metadata["numbers"] == [1, 2, 3]
    assert metadata["floats"] == [0.25, -1.0]


def test_finds_the_tensors(model_file):
    file = GGUFFile(model_file)
    assert {name: (tensor.shape, tensor.storage) for name, tensor in file.tensors.items()} == {
        "one": ((2, 3), "f32"),
        "two": ((5,), "f16"),
    }
    np.testing.assert_array_equal(file.tensor_data(file.tensors["one"]).view(np.float32), np.arange(6))
    file.release_pages()
    np.testing.assert_array_equal(file.tensor_data(file.tensors["two"]).view(np.float16), np.ones(5))


def test_honours_the_alignment(tmp_path):
    path = write(tmp_path / "a.gguf", tensors=[("x", np.full(3, 7, np.float32))] * 1, alignment=64)
    file = GGUFFile(path)
    assert file.tensors["x"].offset % 64 == 0
    np.testing.assert_array_equal(file.tensor_data(file.tensors["x"]).view(np.float32), [7, 7, 7])


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(WeightLoadError, match=r"no file .*nowhere\.gguf"):
        GGUFFile(tmp_path / "nowhere.gguf")


@pytest.mark.parametrize("content", [b"", b"GGU", b"GGML" + bytes(100), b"<html>not found</html>"])
def test_no_gguf_file(tmp_path, content):
    path = tmp_path / "x.gguf"
    path.write_bytes(content)
    with pytest.raises(WeightLoadError, match=r"x\.gguf"):
        GGUFFile(path)


def test_an_unknown_version_is_refused(tmp_path):
    path = tmp_path / "x.gguf"
    path.write_bytes(b"GGUF" + struct.pack(">I", 3) + bytes(64))  # big endian
    with pytest.raises(WeightLoadError, match="version 50331648"):
        GGUFFile(path)


def test_an_uncovered_tensor_type_is_refused_by_name(tmp_path):
    rows = np.zeros((2, 66), np.uint8)
    writer = gguf.GGUFWriter(tmp_path / "x.gguf", "llama")
    writer.add_tensor("blk.0.ffn_up.weight", rows, raw_dtype=gguf.GGMLQuantizationType.IQ2_XXS)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(WeightLoadError, match=r"blk\.0\.ffn_up\.weight has the type IQ2_XXS.*supported are BF16, F16"):
        GGUFFile(tmp_path / "x.gguf")


def test_every_truncation_is_one_clear_error(model_file, tmp_path):
    content = model_file.read_bytes()
    path = tmp_path / "cut.gguf"
    last = GGUFFile(model_file).tensors["two"]
    for size in range(1, last.offset + last.num_bytes):
        path.write_bytes(content[:size])
        with pytest.raises(WeightLoadError, match=r"cut\.gguf"):
            GGUFFile(path)


@given(position=st.integers(0, 2000), value=st.integers(0, 255))
def test_a_changed_byte_never_escapes_as_another_error(model_bytes, position, value):
    content, path = model_bytes
    damaged = bytearray(content)
    damaged[position % len(damaged)] = value
    path.write_bytes(damaged)
    try:
        file = GGUFFile(path)
    except WeightLoadError:
        return
    for tensor in file.tensors.values():
        assert len(file.tensor_data(tensor)) == tensor.num_bytes


@pytest.fixture(scope="module")
def model_bytes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("damaged")
    metadata = [("add_array", "strings", ["a", "bc"]), ("add_array", "numbers", [1, 2]), ("add_string", "s", "t")]
    path = write(folder / "m.gguf", tensors=[("one", np.ones((2, 3), np.float32))], metadata=metadata)
    return path.read_bytes(), folder / "changed.gguf"
