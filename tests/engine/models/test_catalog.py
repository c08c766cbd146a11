"""Files and folders that are no models: one clear sentence each."""

from __future__ import annotations

import pytest

from engine.errors import ModelError
from engine.models.catalog import find_model


def test_a_path_that_does_not_exist(tmp_path):
    with pytest.raises(ModelError, match="There is no file or folder at"):
        find_model(tmp_path / "no such thing")


@pytest.mark.parametrize("name", ["model.pt", "model.bin", "model.PTH", "model.ckpt", "m.pickle"])
def test_a_pickle_is_refused_unread(tmp_path, name):
    (tmp_path / name).write_bytes(b"GGUF")

    with pytest.raises(ModelError, match="is a pickle, which can run code"):
        find_model(tmp_path / name)


@pytest.mark.parametrize("content", [b"", b"GG", b"<html>not here</html>"])
def test_a_file_that_is_no_gguf(tmp_path, content):
    path = tmp_path / "model.gguf"
    path.write_bytes(content)

    with pytest.raises(ModelError, match="is not a model file"):
        find_model(path)


def test_weights_alone(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"")

    with pytest.raises(ModelError, match="Open the folder that also has config"):
        find_model(path)


def test_a_folder_without_config(tmp_path):
    with pytest.raises(ModelError, match=r"has no config\.json"):
        find_model(tmp_path)


def test_a_folder_of_pickles(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "pytorch_model.bin").write_bytes(b"")

    with pytest.raises(ModelError, match="only pickled weights"):
        find_model(tmp_path)


def test_a_folder_without_a_tokenizer(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"")

    with pytest.raises(ModelError, match="has no tokenizer"):
        find_model(tmp_path)


def test_the_default_model_that_is_not_there_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setenv("DRAFTLIGHT_DATA", str(tmp_path))

    with pytest.raises(ModelError, match="make run"):
        find_model("default")
