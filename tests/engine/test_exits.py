"""The exit that is chosen: the one that gains most by what the target wrote, or none."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from engine.drafters.exits import best_exit, is_right
from engine.drafters.family import Sample
from engine.kept_costs import Trial
from engine.models.catalog import find_model
from engine.models.loading import load_lm
from engine.models.transformers_lm import TransformersLM
from engine.params import SamplingParams
from tests.engine import models_for_tests as tiny
from tests.engine.fakes import TableLM, nobody, spoken
from tests.engine.listed import LONG_PROMPT, targets
from tests.engine.simulated import PASS_SECONDS, flat, measured, staircase, steep

PROMPT, WRITTEN = [1, 2, 3], 24


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


class Deepening(TableLM):
    """Says one text; the token at a place takes so many layers, else it says another.

    needs: layers for the places of the text, over and over. A pass of all layers takes what it
    does in the simulated costs.
    """

    def __init__(self, needs, *, of, layers=None, clock=None):
        super().__init__(torch.zeros(layers or of, 1, 1, 9, dtype=torch.float64))
        self.needs, self.of, self.clock, self.cuts = needs, of, clock or Clock(), []

    def logits(self, ids):
        right = self.num_layers >= self.needs[len(ids) % len(self.needs)]
        said = torch.zeros(9, dtype=torch.float64)
        said[len(ids) % 7 + (not right)] = 9.0
        return said

    def first_layers(self, count):
        self.cuts.append(count)
        return Deepening(self.needs, of=self.of, layers=count, clock=self.clock)

    def score(self, *args, **options):
        self.clock.now += PASS_SECONDS * self.num_layers / self.of
        return super().score(*args, **options)


def sample_of(lm, curve=staircase, *, seconds=1e9):
    reply = spoken(lm, nobody(), PROMPT, SamplingParams(), most=WRITTEN)
    until = lm.clock() + seconds
    return Sample([*PROMPT, *reply.ids], len(PROMPT), measured(curve), lm.clock, until)


@pytest.mark.parametrize("layers", [1, 3, 5])
def test_the_first_exit_that_is_right_throughout_is_chosen(layers):
    lm = Deepening([layers], of=8)

    assert best_exit(lm, sample_of(lm)) == Trial(str(layers))


def test_an_early_exit_that_is_often_right_beats_a_late_one_that_always_is():
    lm = Deepening([2, 2, 2, 2, 2, 6], of=8)

    assert best_exit(lm, sample_of(lm, flat)) == Trial("2")


def test_a_late_exit_that_is_always_right_beats_an_early_one_that_seldom_is():
    lm = Deepening([2, 5, 5, 5], of=8)

    assert best_exit(lm, sample_of(lm, flat)) == Trial("5")


@pytest.mark.parametrize("curve", [flat, staircase])
def test_where_no_exit_is_right_often_enough_there_is_none(curve):
    lm = Deepening([12, 12, 12, 8], of=12)

    assert best_exit(lm, sample_of(lm, curve)) == Trial(None)


def test_exits_that_could_not_gain_even_if_always_right_are_not_read():
    lm = Deepening([12, 12, 12, 8], of=12)
    found = sample_of(lm, steep)

    assert best_exit(lm, found) == Trial(None)

    assert max(lm.cuts) <= 5


def test_of_many_layers_a_dozen_exits_are_looked_at():
    lm = Deepening([3], of=48)

    assert best_exit(lm, sample_of(lm)) == Trial("4")
    assert len(lm.cuts) <= 12


@pytest.mark.parametrize(
    ("passes", "found"), [(-1, None), (1, Trial("7")), (4, Trial("6")), (100, Trial("1"))]
)
def test_where_time_is_up_what_was_found_is_taken_and_nothing_is_not_taken_for_none(passes, found):
    lm = Deepening([1], of=8)

    assert best_exit(lm, sample_of(lm, seconds=passes * PASS_SECONDS)) == found


def fresh_choices(cut, ids, first):
    """Position by position, with nothing remembered."""
    rows = [cut.score(cut.new_memo(), ids[:end]).logits[0] for end in range(first, len(ids))]
    return torch.stack(rows).argmax(-1)


def cut_choices_are_judged(lm, layers):
    reply = spoken(lm, nobody(), LONG_PROMPT, SamplingParams(), most=WRITTEN)
    sample = Sample([*LONG_PROMPT, *reply.ids], len(LONG_PROMPT), measured(flat), Clock(), 1.0)
    cut, prompt = lm.first_layers(layers), lm.new_memo()
    list(lm.read(prompt, LONG_PROMPT))

    first, again = (
        is_right(cut, cut.memo_behind(prompt) or cut.new_memo(), sample) for _ in range(2)
    )

    expected = fresh_choices(cut, sample.ids, len(LONG_PROMPT)) == torch.tensor(reply.ids)
    assert first.tolist() == again.tolist() == expected.tolist()
    return first


@targets
@pytest.mark.parametrize("layers", [1, 2])
def test_a_cut_is_right_where_its_own_choice_is_what_the_whole_model_wrote(target, layers, lms):
    cut_choices_are_judged(lms[target], layers)


def test_a_cut_behind_which_nothing_happens_is_always_right():
    model: Any = tiny.llama(5, layers=5)
    with torch.no_grad():
        for layer in model.model.layers[2:]:
            layer.self_attn.o_proj.weight.zero_()
            layer.mlp.down_proj.weight.zero_()
    lm = TransformersLM(model)

    right = [cut_choices_are_judged(lm, layers) for layers in (4, 3, 2, 1)]

    assert [bool(found.all()) for found in right] == [True, True, True, False]


@pytest.mark.parametrize("layers", [1, 2])
def test_so_it_is_behind_the_rows_of_the_native_decoder(layers, llama_folder):
    source = find_model(llama_folder)
    loaded = load_lm(
        source, device="cpu", dtype="int8", vocabulary=tiny.VOCABULARY, end_ids=frozenset()
    )

    cut_choices_are_judged(loaded.lm, layers)

    assert loaded.native
