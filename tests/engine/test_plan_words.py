"""The plan in words: what is done, and why."""

from __future__ import annotations

import pytest

from engine.costs import CostModel
from engine.plan_words import PLAINLY, estimates, sentence
from engine.planning import Planner
from tests.engine.simulated import Proposal, Text, measured, planned, staircase

LABELS = {"ngram": "n-gram"}


def words(planner, proposers=("ngram",), draft_length=None):
    return sentence(planner, proposers, draft_length, lambda name: LABELS.get(name, name))


def numbers_of(planner, *proposers):
    numbers = estimates(planner, proposers)
    assert numbers is not None
    return numbers


def after(*proposals, name="ngram", each=0.0):
    planner = Planner(measured(staircase))
    planned(planner, Text(list(proposals), name=name, each=each), staircase)
    return planner


NOTHING, RIGHT, WRONG = Proposal(0, 0, 0), Proposal(3, 3, 3), Proposal(2, 63, 0)


def test_nobody_to_draft():
    assert words(Planner(), proposers=()) == PLAINLY


def test_before_the_first_round():
    assert words(Planner()).startswith("Drafting as far as it pays")


def test_a_forced_length_says_whose_choice_it_is_and_what_it_costs():
    assert words(Planner(measured(staircase)), draft_length=3) == (
        "Drafting up to 3 ahead in every round, as you chose; "
        "4 rows cost 1.3 passes here, 5 would cost 1.9."
    )
    assert words(Planner(CostModel()), draft_length=3).endswith("is not known yet.")


def test_nothing_found():
    planner = after(*[*[NOTHING] * 6, WRONG] * 2, NOTHING)

    assert words(planner) == "N-gram found nothing in 12 of the last 14 rounds; decoding plainly."


def test_found_but_wrong():
    planner = after(*[WRONG] * 60, name="layer-skip", each=0.67)

    said = words(planner, proposers=("layer-skip",))

    assert said.startswith("Layer-skip is right about the next token ")
    assert "too seldom to pay; decoding plainly" in said


def test_drafting_says_how_far_with_whom_for_what_and_what_the_next_step_would_cost():
    planner = after(*[RIGHT] * 200)

    assert words(planner).startswith("Drafting up to 3 ahead, with n-gram: 2.")
    assert "× plain of late; 4 rows cost 1.3 passes here, 5 would cost 1.9." in words(planner)


def test_numbers_are_those_of_whoever_drafts():
    numbers = numbers_of(after(*[RIGHT] * 200), "layer-skip", "ngram")

    assert numbers.proposer == "ngram"
    assert numbers.draft_length == 3
    assert all(share > 0.9 for share in numbers.survival[:3])
    assert numbers.costs[:5] == pytest.approx([staircase(rows) for rows in range(1, 6)])
    assert numbers.gains[2] == pytest.approx(4 / staircase(4), rel=0.15)


def test_where_nothing_pays_the_numbers_say_so():
    numbers = numbers_of(after(*[WRONG] * 60, each=0.67), "ngram")

    assert numbers.draft_length == 0
    assert max(numbers.gains) < 1.0


def test_there_are_no_numbers_before_anything_is_known():
    assert estimates(Planner(), ("ngram",)) is None
    assert estimates(after(RIGHT), ()) is None
