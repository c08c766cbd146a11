"""Timed rounds: which ones are run in which order, and what a trial says. Clocks are played."""

from __future__ import annotations

import threading
from itertools import count

import pytest
import torch

from engine.calibration import Calibration
from engine.costs import EDGES_FIRST, LENGTHS, CostModel
from engine.draft import NO_DRAFT, NO_PASSENGERS
from engine.drafters import Family
from engine.kept_costs import Trial
from engine.params import SamplingParams
from tests.engine.fakes import Bench, ScriptedDrafter, TableLM, letters, nobody, spoken
from tests.engine.simulated import measured, staircase, steep

PROMPT = [1, 2, 3]


class Noting(TableLM):
    """Notes how many rows each pass had."""

    def __init__(self, vocabulary=9, context_length=512):
        shape = (3, vocabulary + 1, vocabulary + 1, vocabulary)
        tables = torch.randn(shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        super().__init__(tables, context_length=context_length)
        self.passes: list[int] = []

    def score(self, memo, ids, draft=NO_DRAFT, passengers=NO_PASSENGERS, taps=()):
        self.passes.append(1 + len(draft))
        return super().score(memo, ids, draft, passengers, taps)


def calibration(lm, clock=lambda: 0.0, stop=None):
    return Calibration(lm, PROMPT, letters, stop or threading.Event(), clock)


def test_every_count_is_measured_where_time_does_not_press():
    lm = Noting(context_length=4096)
    costs = CostModel()

    calibration(lm).measure(costs)

    short, *longer = (costs.readings()[length] for length in LENGTHS[:3])
    assert set(short) == set(EDGES_FIRST)
    assert [set(cells) for cells in longer] == [set(EDGES_FIRST[:7])] * 2


def test_where_time_presses_the_edges_of_steps_come_first():
    lm, ticks = Noting(), count(step=0.2)
    costs = CostModel()

    calibration(lm, lambda: next(ticks)).measure(costs)

    assert set(costs.readings()[LENGTHS[0]]) == set(EDGES_FIRST[: len(costs.readings()[16])])
    assert 1 <= len(lm.passes) <= 8


def test_where_nothing_is_missing_a_few_rounds_refresh_it():
    lm = Noting(context_length=4096)
    costs = measured(staircase)

    calibration(lm).measure(costs)

    assert lm.passes == [1, *EDGES_FIRST[:5] * 2]


def test_a_context_that_is_too_short_for_a_length_leaves_it_out():
    lm = Noting(context_length=256)
    costs = CostModel()

    calibration(lm).measure(costs)

    assert list(costs.readings()) == [LENGTHS[0]]


def test_stopping_ends_it():
    stop, lm = threading.Event(), Noting()
    stop.set()

    calibration(lm, stop=stop).measure(CostModel())

    assert lm.passes == []
    assert calibration(lm, stop=stop).plain_seconds() is None


def test_plain_decoding_is_timed_over_sixteen_rounds():
    lm = Noting()

    seconds = calibration(lm).plain_seconds()

    assert seconds is not None
    assert seconds > 0
    assert lm.passes == [1] * 16


@pytest.mark.parametrize("is_right", [True, False])
def test_a_trial_tells_a_drafter_that_pays_from_one_that_does_not(is_right):
    lm = TableLM.random(1, vocabulary=9)
    plain = spoken(lm, nobody(), PROMPT, SamplingParams(), most=60)
    said = [*PROMPT, *plain.ids]
    drafter = ScriptedDrafter(
        lambda ids: [token if is_right else (token + 1) % 9 for token in said[len(ids) :]]
    )
    slow = {rows: 100 * seconds for rows, seconds in measured(steep).readings()[16].items()}

    assert calibration(lm).pays(drafter, CostModel({16: slow})) is is_right


# Whether a family that seldom pays pays here.


def family_of(lm, search, *, is_right=True):
    """A family whose drafter knows what the target says, or always says something else."""
    said = [*PROMPT, *spoken(lm, nobody(), PROMPT, SamplingParams(), most=90).ids]

    def build(target, choice):
        return ScriptedDrafter(
            lambda ids: [token if is_right else (token + 1) % 9 for token in said[len(ids) :]]
        )

    return Family("toy", "Toy", build, lambda target: None, search=search)


def slow_costs():
    """Passes that take so long that drafting costs nothing beside them."""
    cells = measured(steep).readings()[16]
    return CostModel({16: {rows: 100 * seconds for rows, seconds in cells.items()}})


@pytest.mark.parametrize(("is_right", "kept"), [(True, Trial("5")), (False, Trial(None))])
def test_a_choice_that_promises_to_gain_is_tried_in_real_rounds(is_right, kept):
    lm = TableLM.random(1, vocabulary=9)
    family = family_of(lm, lambda target, sample: Trial("5"), is_right=is_right)

    assert calibration(lm).trial(family, Bench(lm, lm), slow_costs()) == kept


@pytest.mark.parametrize("found", [Trial(None), None])
def test_without_one_nothing_is_tried(found):
    lm = Noting()

    family = family_of(lm, lambda target, sample: found)
    lm.passes.clear()

    assert calibration(lm).trial(family, Bench(lm, lm), slow_costs()) == found
    assert set(lm.passes) == {1}


def test_the_search_is_given_what_the_target_writes_after_the_prompt():
    lm, samples = Noting(), []
    measuring = calibration(lm)
    plain = spoken(lm, nobody(), PROMPT, SamplingParams(), most=32)

    measuring.plain_seconds()
    measuring.trial(
        family_of(lm, lambda target, sample: samples.append(sample)), Bench(lm, lm), slow_costs()
    )

    assert samples[0].ids == [*PROMPT, *plain.ids]
    assert samples[0].prompt_tokens == len(PROMPT)


def test_too_little_text_or_no_costs_tell_nothing():
    stop, lm = threading.Event(), Noting()
    family = family_of(lm, lambda target, sample: Trial("5"))

    assert calibration(lm).trial(family, Bench(lm, lm), CostModel()) is None
    stop.set()
    assert calibration(lm, stop=stop).trial(family, Bench(lm, lm), slow_costs()) is None


def test_a_family_without_a_search_has_no_trial():
    lm = Noting()

    assert calibration(lm).trial(family_of(lm, None), Bench(lm, lm), slow_costs()) is None
