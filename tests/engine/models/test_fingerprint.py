"""Which model it is: the same wherever it lies, and another as soon as a weight differs."""

from __future__ import annotations

import pytest

from engine.errors import ModelError
from engine.models.catalog import ModelSource
from engine.models.fingerprint import fingerprint

SIZE = 5_000_000


def gguf(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return ModelSource(path.stem, str(path), path)


def folder(path, *, config="{}", weights=b"weights"):
    path.mkdir()
    path.joinpath("config.json").write_text(config)
    path.joinpath("model.safetensors").write_bytes(weights)
    return ModelSource(path.name, str(path), path)


def test_the_same_bytes_are_the_same_model_wherever_they_lie(tmp_path):
    first = gguf(tmp_path / "a.gguf", b"GGUF" * 1000)
    second = gguf(tmp_path / "other" / "b.gguf", b"GGUF" * 1000)

    assert fingerprint(first) == fingerprint(second)
    assert len(fingerprint(first)) == 32


@pytest.mark.parametrize("at", [0, 100, SIZE - 1])
def test_another_beginning_end_or_length_is_another_model(tmp_path, at):
    content = bytearray(SIZE)
    before = fingerprint(gguf(tmp_path / "a.gguf", content))

    content[at] = 1

    assert fingerprint(gguf(tmp_path / "a.gguf", content)) != before
    assert fingerprint(gguf(tmp_path / "a.gguf", content[1:])) != before


def test_weights_that_differ_all_over_are_another_model(tmp_path):
    head = b"header" * 300_000
    first = gguf(tmp_path / "a.gguf", head + b"\1" * SIZE)
    second = gguf(tmp_path / "b.gguf", head + b"\2" * SIZE)

    assert fingerprint(first) != fingerprint(second)


def test_a_folder_is_known_by_its_config_and_its_weights(tmp_path):
    first = fingerprint(folder(tmp_path / "a"))

    assert fingerprint(folder(tmp_path / "b")) == first
    assert fingerprint(folder(tmp_path / "c", config="{ }")) != first
    assert fingerprint(folder(tmp_path / "d", weights=b"others")) != first


def test_a_file_that_is_gone_is_said_in_a_sentence(tmp_path):
    model = gguf(tmp_path / "a.gguf", b"GGUF")
    source = ModelSource("a", "a", tmp_path)
    model.path.unlink()

    with pytest.raises(ModelError, match="can't be read"):
        fingerprint(source)
