"""Which folders a drafter may be written to."""

from __future__ import annotations

import json

import pytest

from engine.errors import EngineError
from engine.training.files import replace_file
from engine.training.places import check_replaceable, check_writable

TARGET = "0123"


def folder_with(folder, **texts):
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        (folder / name.replace("_", ".")).write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"learning_safetensors_part": "half"},
        {"_DS_Store": "the system's"},
        {"config_json": json.dumps({"base_model_fingerprint": TARGET}), "README_md": "card"},
    ],
    ids=str,
)
def test_what_is_empty_or_a_drafter_of_ours_may_be_replaced(files, tmp_path):
    (tmp_path / "work").mkdir()

    check_replaceable(folder_with(tmp_path, **files), TARGET)


def test_a_folder_that_is_not_there_may_be_made(tmp_path):
    check_replaceable(tmp_path / "a" / "b", TARGET)
    check_writable(tmp_path / "a" / "b")

    assert list((tmp_path / "a" / "b").iterdir()) == []


@pytest.mark.parametrize(
    "files",
    [
        {"model_gguf": "a model"},
        {"README_md": "a project"},
        {"config_json": "{}", "model_safetensors": "a model"},
        {"config_json": "damaged"},
        {"config_json": "[]"},
        {"config_json": json.dumps({"base_model_fingerprint": "of another model"})},
    ],
    ids=str,
)
def test_what_is_not_ours_is_named_and_may_not_be_replaced(files, tmp_path):
    first = sorted(files)[0].replace("_", ".")

    with pytest.raises(EngineError, match=f"holds {first}, which is of no drafter"):
        check_replaceable(folder_with(tmp_path, **files), TARGET)


def test_a_file_in_place_of_a_folder_is_a_sentence(tmp_path):
    folder_with(tmp_path, file="mine")

    for place, sentence in ((tmp_path / "file", "is a file"), (tmp_path / "file" / "x", "can't")):
        check_replaceable(place, TARGET)
        with pytest.raises(EngineError, match=sentence):
            check_writable(place)
        with pytest.raises(EngineError, match="can't be written to"):
            replace_file(place / "model.safetensors", b"")
    assert (tmp_path / "file").read_text(encoding="utf-8") == "mine"
