"""From what a user types to a path."""

from __future__ import annotations

import huggingface_hub
import pytest

from deepinfer.errors import WeightLoadError
from deepinfer.loader import open_checkpoint, resolve_model


def test_an_existing_path_stays(tmp_path):
    assert resolve_model(str(tmp_path)) == tmp_path


@pytest.mark.parametrize("name", ["nowhere.gguf", "/no/such/place/model", "a/b/c", "-x/y", ""])
def test_what_is_neither_path_nor_id(name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    if name:
        with pytest.raises(WeightLoadError, match="there is no model at"):
            resolve_model(name)
    else:
        with pytest.raises(WeightLoadError, match="is a directory without config"):
            open_checkpoint(resolve_model(name))


def test_an_id_is_fetched(monkeypatch, tmp_path):
    asked = []

    def snapshot_download(name, *, allow_patterns):
        asked.append((name, tuple(allow_patterns)))
        return str(tmp_path)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    assert resolve_model("owner/Model-1.5B") == tmp_path
    assert asked[0][0] == "owner/Model-1.5B"
    assert "*.safetensors" in asked[0][1]


def test_an_id_that_cannot_be_fetched_is_one_sentence(monkeypatch):
    def snapshot_download(name, *, allow_patterns):
        raise OSError("no route to host\nmore lines")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    with pytest.raises(WeightLoadError, match=r"owner/model, and it cannot be fetched .*: no route to host$"):
        resolve_model("owner/model")
