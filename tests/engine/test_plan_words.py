"""The plan in words: what is done, and why."""

from __future__ import annotations

import pytest

from engine.costs import CostModel
from engine.draft import NO_DRAFT, Draft
from engine.plan_words import PLAINLY, estimates, sentence
from engine.planning import Limits, Planner, Played
from tests.engine.simulated import (
    CACHE_TOKENS,
    PASS_SECONDS,
    Proposal,
    Text,
    measured,
    outcomes_of,
    planned,
    staircase,
)

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


def go_on(planner, *proposers, rounds, holds=3, draft_length=None):
    """More rounds of the same reply; the first of these can draft any length, so much of it holds.

    What they take is by the curve, and drafting takes nothing.
    """
    limits = Limits(draft_length, 0, remaining_tokens=1000, cache_tokens=CACHE_TOKENS)
    for _ in range(rounds):
        budget = planner.budget(proposers, limits)
        found = Draft.chain([7] * budget.depth, *proposers[:1]) if budget.depth else NO_DRAFT
        draft, _ = budget.judge(found)
        tokens, rows = 1 + min(len(draft), holds), 1 + len(draft)
        outcomes, seconds = outcomes_of(len(draft), holds), PASS_SECONDS * staircase(rows)
        planner.observe(Played(draft, outcomes, tokens, rows, 0.0, seconds))


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
    planner = Planner(measured(staircase))
    go_on(planner, "ngram", "layer-skip", rounds=200)

    numbers = numbers_of(planner, "ngram", "layer-skip")

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


# Where something changes while a reply is written.


ASK_LATER = "Drafting as far as it pays; the next rounds will show how far that is."


@pytest.mark.parametrize("rounds", [1, 2, 3, 12])
def test_a_drafter_that_takes_over_is_told_of_by_its_own_rounds(rounds):
    planner = Planner(measured(staircase))
    go_on(planner, rounds=40)
    before = words(planner)

    go_on(planner, "ngram", rounds=rounds)

    assert before == ASK_LATER
    assert words(planner).startswith("Drafting up to ")
    assert ", with n-gram: " in words(planner)


def test_a_drafter_that_took_over_is_not_told_of_by_what_it_did_among_others():
    planner = Planner(measured(staircase))
    go_on(planner, "ngram", "layer-skip", rounds=40)

    assert words(planner) == ASK_LATER
    assert estimates(planner, ("ngram",)) is None


def test_rounds_of_a_length_that_was_taken_back_are_not_told_of():
    planner = Planner(measured(staircase))
    go_on(planner, "ngram", rounds=40, draft_length=16)
    taken_back = words(planner)

    go_on(planner, "ngram", rounds=12)

    assert taken_back == ASK_LATER
    assert words(planner).startswith("Drafting up to 3 ahead")
    assert numbers_of(planner, "ngram").draft_length == 3


def test_the_speed_is_that_of_the_same_rounds():
    planner = Planner(measured(staircase))
    go_on(planner, rounds=40)

    go_on(planner, "ngram", rounds=2)

    assert "2.5 × plain of late" in words(planner)  # Three tokens for a pass of three rows.


def test_while_a_length_is_forced_the_numbers_show_it():
    planner = Planner(measured(staircase))
    go_on(planner, "ngram", rounds=12)

    go_on(planner, "ngram", rounds=1, draft_length=5)

    assert numbers_of(planner, "ngram").draft_length == 5
