"""Files and folders that are no models: one clear sentence each."""

from __future__ import annotations

import json
import os

import pytest
import torch
from safetensors.torch import save_file

from engine.errors import ModelError
from engine.models.catalog import find_model


def test_a_path_that_does_not_exist(tmp_path):
    with pytest.raises(ModelError, match="There is no file or folder at"):
        find_model(tmp_path / "no such thing")


@pytest.mark.parametrize("name", ["model.pt", "model.bin", "model.PTH", "model.ckpt", "m.pickle"])
def test_a_pickle_is_refused_unread(tmp_path, name):
    (tmp_path / name).write_bytes(b"PK")

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


def test_a_gguf_file_is_one_whatever_it_is_called(tmp_path):
    (tmp_path / "renamed.bin").write_bytes(b"GGUF")

    assert find_model(tmp_path / "renamed.bin").is_gguf


def test_what_cannot_be_read_is_a_sentence(tmp_path):
    with pytest.raises(ModelError, match="can't be read"):
        find_model(tmp_path / ("long" * 100))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.gguf")

    with pytest.raises(ModelError, match="is no ordinary file"):
        find_model(tmp_path / "pipe.gguf")


@pytest.mark.parametrize("config", [{}, {"text_config": {}}])
def test_absurd_counts_of_layers_are_refused_before_anything_is_built(tmp_path, config):
    inner = config.get("text_config", config)
    inner["num_hidden_layers"] = 10**9
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "tokenizer.json").write_text("{}")
    save_file({"weight": torch.zeros(2)}, tmp_path / "model.safetensors")

    with pytest.raises(ModelError, match="1,000,000,000 layers, and its files hold 1 tensors"):
        find_model(tmp_path)


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff\xfe", b'{"text_config": 3}'])
def test_a_damaged_config_is_called_that(tmp_path, content):
    (tmp_path / "config.json").write_bytes(content)
    save_file({"weight": torch.zeros(1)}, tmp_path / "model.safetensors")

    with pytest.raises(ModelError, match=r"its config\.json can't be read"):
        find_model(tmp_path)


@pytest.mark.parametrize("layers", [0, -1])
def test_fewer_layers_than_one_are_refused(tmp_path, layers):
    (tmp_path / "config.json").write_text(json.dumps({"num_hidden_layers": layers}))
    (tmp_path / "tokenizer.json").write_text("{}")
    save_file({"weight": torch.zeros(2)}, tmp_path / "model.safetensors")

    with pytest.raises(ModelError, match=f"speaks of {layers} layers, and its files hold 1 tensor"):
        find_model(tmp_path)
