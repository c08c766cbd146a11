"""Costs on disk: they come back as they were, and whatever is wrong with the file is no trouble."""

from __future__ import annotations

import json

import pytest
import torch

from engine.kept_costs import CostFile, Kept, Trial
from tests.engine.simulated import measured, staircase


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "modèle é.gguf"
    path.write_bytes(b"weights")
    return path


@pytest.fixture
def kept():
    return Kept(measured(staircase).readings(), {"layer-skip": Trial("20"), "other": Trial()})


def file_for(tmp_path, model, device="cpu", dtype="packed"):
    return CostFile(tmp_path / "costs", model, device=device, dtype=dtype)


def only_file(tmp_path):
    [path] = (tmp_path / "costs").iterdir()
    return path


def test_what_was_kept_comes_back(tmp_path, model, kept):
    file_for(tmp_path, model).write(kept)

    assert file_for(tmp_path, model).read() == kept
    assert only_file(tmp_path).stat().st_size < 4000


def test_before_anything_was_kept_there_is_nothing(tmp_path, model):
    assert file_for(tmp_path, model).read() == Kept()


def test_another_device_dtype_model_or_number_of_threads_has_a_file_of_its_own(
    tmp_path, model, kept
):
    file_for(tmp_path, model).write(kept)

    assert file_for(tmp_path, model, device="mps").read() == Kept()
    assert file_for(tmp_path, model, dtype="bfloat16").read() == Kept()
    threads = torch.get_num_threads()
    torch.set_num_threads(threads + 1)
    assert file_for(tmp_path, model).read() == Kept()
    torch.set_num_threads(threads)
    assert file_for(tmp_path, model).read() == kept
    model.write_bytes(b"other weights")
    assert file_for(tmp_path, model).read() == Kept()


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: "",
        lambda text: "[]",
        lambda text: "null",
        lambda text: "\x00\xff",
        lambda text: text.replace('"key"', '"kez"'),
        lambda text: text.replace('"seconds"', '"minutes"'),
        lambda text: text.replace('"trials"', '"trails"'),
        lambda text: json.dumps({**json.loads(text), "key": "another's"}),
        lambda text: json.dumps({**json.loads(text), "seconds": {"16": {"1": -1.0}}}),
        lambda text: json.dumps({**json.loads(text), "seconds": {"16": {"1": float("nan")}}}),
        lambda text: json.dumps({**json.loads(text), "seconds": {"16": {"1": "soon"}}}),
        lambda text: json.dumps({**json.loads(text), "seconds": {"17": {"1": 1.0}}}),
        lambda text: json.dumps({**json.loads(text), "seconds": {"16": {"0": 1.0}}}),
        lambda text: json.dumps({**json.loads(text), "seconds": {"16": {"65": 1.0}}}),
        lambda text: json.dumps({**json.loads(text), "seconds": [1, 2]}),
        lambda text: json.dumps({**json.loads(text), "trials": 3}),
        lambda text: json.dumps({**json.loads(text), "trials": {"layer-skip": 20}}),
    ],
)
def test_a_damaged_or_foreign_file_counts_as_none(tmp_path, model, kept, damage):
    file_for(tmp_path, model).write(kept)
    path = only_file(tmp_path)
    path.write_text(damage(path.read_text(encoding="utf-8")), encoding="latin-1")

    assert file_for(tmp_path, model).read() == Kept()


def test_a_folder_that_takes_no_files_is_no_trouble(tmp_path, model, kept):
    (tmp_path / "costs").write_text("a file where the folder would be")

    file_for(tmp_path, model).write(kept)

    assert file_for(tmp_path, model).read() == Kept()
