"""Drafters that ship: found by the weights they were trained with, and by nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from engine.drafters.eagle import FAMILY as EAGLE
from engine.drafters.listing import drafter_choices
from engine.drafters.medusa import FAMILY as MEDUSA
from engine.drafters.shipped import chosen_or_shipped, shipped
from engine.errors import DrafterMismatch
from tests.engine.fakes import Bench, TableLM

DRAFTERS = Path(__file__).parents[2] / "resources" / "drafters"


class Shipping(Bench):
    """A target for which an EAGLE head ships."""

    def __init__(self):
        super().__init__(TableLM.random(0), TableLM.random(1))

    def shipped(self, family):
        return "/ships/eagle" if family == "eagle" else None


def ship(folder, name, fingerprint):
    folder.joinpath(name).mkdir()
    config = {"base_model_fingerprint": fingerprint}
    folder.joinpath(name, "config.json").write_text(json.dumps(config))


def test_a_drafter_is_found_for_the_weights_it_was_trained_with(tmp_path):
    ship(tmp_path, "eagle", "ab12")

    assert shipped("eagle", "ab12", tmp_path) == str(tmp_path / "eagle")


def test_other_weights_and_other_names_have_none(tmp_path):
    ship(tmp_path, "eagle", "ab12")

    assert shipped("eagle", "cd34", tmp_path) is None
    assert shipped("medusa", "ab12", tmp_path) is None


def test_a_damaged_one_is_as_good_as_none(tmp_path):
    ship(tmp_path, "eagle", "ab12")
    tmp_path.joinpath("eagle", "config.json").write_text("{")

    assert shipped("eagle", "ab12", tmp_path) is None


def test_what_was_chosen_goes_before_what_ships():
    target = Shipping()

    assert chosen_or_shipped(target, "/mine", EAGLE, wanted="a folder") == "/mine"
    assert chosen_or_shipped(target, None, EAGLE, wanted="a folder") == "/ships/eagle"


def test_where_there_is_neither_it_says_what_is_wanted():
    with pytest.raises(DrafterMismatch, match=r"Choose a folder for this model\."):
        chosen_or_shipped(Shipping(), None, MEDUSA, wanted="a folder")


def test_what_ships_is_listed_so_and_another_may_be_chosen():
    listed = {choice.spec: choice for choice in drafter_choices(Shipping())}

    assert (listed["eagle"].ships, listed["eagle"].needs) == (True, "a folder")
    assert listed["eagle"].label == "EAGLE"
    assert not listed["medusa"].ships


def test_eagle_2_takes_the_heads_of_eagle():
    listed = {choice.spec: choice for choice in drafter_choices(Shipping())}

    assert listed["eagle2"].ships
    assert not listed["eagle3"].ships


def test_all_that_ship_are_small_together_and_have_cards():
    folders = sorted(DRAFTERS.iterdir())

    for folder in folders:
        tensors = load_file(folder / "model.safetensors").values()
        assert {held.dtype for held in tensors if held.ndim == 2} == {torch.bfloat16}
        assert all(held.isfinite().all() for held in tensors)
        assert "## Licence" in (folder / "README.md").read_text(encoding="utf-8")
    assert folders
    assert sum(path.stat().st_size for path in DRAFTERS.rglob("*")) < 60_000_000
