"""Where a reply ends: exactly there, though the end lies inside an accepted path."""

from __future__ import annotations

import threading

import pytest

from engine.drafters import FAMILIES
from engine.events import FinishReason, Origin, Outcome
from engine.params import Rule, SamplingParams
from engine.speculation import Committed, Drafting, speculate
from engine.text import ReplyText
from tests.engine.fakes import (
    Bench,
    IdRows,
    ScriptedDrafter,
    TableLM,
    letters,
    nobody,
    oracle,
    spoken,
)
from tests.engine.listed import families

PROMPT = [1, 2, 3, 1, 2, 3, 4, 1, 2]
VOCABULARY = 12

params_of_both_rules = pytest.mark.parametrize(
    "params",
    [
        SamplingParams(),
        SamplingParams(rule=Rule.REJECTION),
        SamplingParams(temperature=1.0, seed=4),
    ],
    ids=["greedy", "greedy rejection", "coupled"],
)
draft_lengths = pytest.mark.parametrize("draft_length", [0, 1, 2, 3, 5, 8])


def table(**options):
    return TableLM.random(5, vocabulary=VOCABULARY, **options)


def plain_ids(params, *, count=12):
    """What comes when nothing ends it."""
    return spoken(table(), nobody(), PROMPT, params, most=count).ids


def answered(params, draft_length, *, lm=None, most=12, **options):
    """The reply when the drafter knows everything that would come, the part behind the end too."""
    drafter = oracle([*PROMPT, *plain_ids(params, count=20)])
    return spoken(
        lm or table(), drafter, PROMPT, params, most=most, draft_length=draft_length, **options
    )


def first_places(ids):
    """Per id that has not come before, its place."""
    return [(token, place) for place, token in enumerate(ids) if token not in ids[:place]]


def late_first(ids):
    """An id that comes first at the third place or later, and its place."""
    return next(found for found in first_places(ids) if found[1] >= 2)


@params_of_both_rules
@draft_lengths
def test_an_end_of_turn_inside_the_accepted_path_is_the_last_token(params, draft_length):
    whole = plain_ids(params)

    for end, place in first_places(whole):
        reply = answered(params, draft_length, lm=table(end_ids=frozenset([end])))

        assert reply.ids == whole[: place + 1]
        assert reply.reason is FinishReason.END_OF_TURN
        assert reply.text == letters(whole[:place])


@params_of_both_rules
@draft_lengths
@pytest.mark.parametrize("size", [1, 2, 4])
def test_a_stop_text_inside_the_accepted_path_is_never_shown(params, draft_length, size):
    whole = plain_ids(params)
    for place in range(1, 12 - size):
        stop = letters(whole[place : place + size])
        end = letters(whole).index(stop)

        reply = answered(params, draft_length, stop_texts=(stop,))

        assert reply.text == letters(whole)[:end]
        assert reply.ids == whole[: end + size]
        assert reply.reason is FinishReason.STOP_TEXT


@params_of_both_rules
@draft_lengths
@pytest.mark.parametrize("most", [1, 2, 3, 7])
def test_the_token_limit_is_met_exactly(params, draft_length, most):
    reply = answered(params, draft_length, most=most)

    assert reply.ids == plain_ids(params)[:most]
    assert reply.reason is FinishReason.LENGTH


@params_of_both_rules
@draft_lengths
@pytest.mark.parametrize("room", [1, 2, 3, 7])
def test_the_context_is_filled_exactly(params, draft_length, room):
    lm = table(context_length=len(PROMPT) + room)

    reply = answered(params, draft_length, lm=lm, context_room=room)

    assert reply.ids == plain_ids(params)[:room]
    assert reply.reason is FinishReason.CONTEXT


@families
@pytest.mark.parametrize("rule", Rule, ids=str)
@pytest.mark.parametrize("most", [1, 2, 9])
def test_every_drafter_stops_at_the_limit_where_nothing_ends_a_turn(family, rule, most):
    bench = Bench(table(), table())
    params = SamplingParams(temperature=1.0, rule=rule)

    reply = spoken(bench.lm, bench.drafter(family), PROMPT, params, most=most, draft_length=5)

    assert len(reply.ids) == most
    assert reply.reason is FinishReason.LENGTH


@families
def test_no_pass_has_more_rows_than_the_context(family):
    room = 6
    lm = table(context_length=len(PROMPT) + room)
    bench = Bench(lm, table(context_length=len(PROMPT) + 3))  # the drafter's is shorter still

    reply = spoken(
        lm,
        bench.drafter(family),
        PROMPT,
        SamplingParams(),
        most=50,
        draft_length=8,
        context_room=room,
    )

    assert reply.reason is FinishReason.CONTEXT
    assert len(reply.ids) == room
    for done in reply.rounds:
        assert done.first_position - 1 + done.rows <= lm.context_length


# What is behind the end never happened.


def test_nodes_behind_an_accepted_end_are_not_counted():
    whole = plain_ids(SamplingParams())
    end, place = late_first(whole)

    reply = answered(SamplingParams(), 8, lm=table(end_ids=frozenset([end])))

    [done] = reply.rounds
    assert len(done.draft) == 8 > place + 1
    assert done.judged == tuple(range(place + 1))
    assert reply.drafted == reply.accepted == len(reply.ids) == place + 1
    assert set(done.origins) == {Origin.DRAFT_ACCEPTED}


@pytest.mark.parametrize("draft_length", [1, 3, 8])
def test_after_an_end_the_memo_holds_no_more_than_the_reply(draft_length):
    params = SamplingParams()
    whole = plain_ids(params)
    end, _ = late_first(whole)
    lm = table(end_ids=frozenset([end]))
    memo = lm.new_memo()

    reply = answered(params, draft_length, lm=lm, memo=memo)

    assert memo.ids == [*PROMPT, *reply.ids][: len(memo.ids)]
    assert isinstance(memo.rows, IdRows)
    assert memo.rows.ids[: len(memo.ids)] == memo.ids


@params_of_both_rules
@pytest.mark.parametrize("draft_length", [1, 3, 8])
def test_the_next_turn_on_the_same_memo_is_as_on_a_fresh_one(params, draft_length):
    whole = plain_ids(params)
    end, _ = late_first(whole)
    lm = table(end_ids=frozenset([end]))
    memo = lm.new_memo()
    reply = answered(params, draft_length, lm=lm, memo=memo)
    second = [*PROMPT, *reply.ids, 7, 8, 9]

    again = spoken(lm, nobody(), second, params, most=6, memo=memo)

    assert again.ids == spoken(lm, nobody(), second, params, most=6).ids


# Origins and outcomes on the way.


@params_of_both_rules
def test_a_right_draft_with_a_wrong_end_is_kept_up_to_there(params):
    whole = plain_ids(params)
    said = [*PROMPT, *whole]

    def two_right_one_wrong(ids):
        right = said[len(ids) :][:2]
        return [*right, (said[len(ids) + 2] + 1) % VOCABULARY, 0] if len(right) == 2 else right

    reply = spoken(
        table(), ScriptedDrafter(two_right_one_wrong), PROMPT, params, most=6, draft_length=4
    )

    first, second = reply.rounds
    assert reply.ids == whole[:6]
    assert first.origins == (Origin.DRAFT_ACCEPTED, Origin.DRAFT_ACCEPTED, Origin.RESAMPLED)
    assert first.verdict.outcomes == (
        Outcome.KEPT,
        Outcome.KEPT,
        Outcome.TURNED_DOWN,
        Outcome.NOT_REACHED,
    )
    assert first.nodes == (0, 1, None)
    assert second.origins == (Origin.DRAFT_ACCEPTED, Origin.DRAFT_ACCEPTED, Origin.TARGET_ONLY)


@params_of_both_rules
def test_changing_the_drafter_during_a_reply_changes_no_token(params):
    whole = plain_ids(params, count=30)
    bench = Bench(table(), TableLM.random(6, vocabulary=VOCABULARY))
    drafting = Drafting(bench.drafter(FAMILIES[0]), 3)
    ending = ReplyText(
        letters, end_ids=frozenset(), stop_texts=(), max_new_tokens=30, context_room=100
    )
    steps = speculate(
        bench.lm,
        bench.lm.new_memo(),
        PROMPT,
        drafting,
        params=params,
        ending=ending,
        stop=threading.Event(),
    )

    said, used = [], []
    for step in steps:
        if isinstance(step, Committed):
            said += step.ids
            used.append(step.drafter)
            drafting.drafter = bench.drafter(FAMILIES[len(used) % len(FAMILIES)])
            drafting.draft_length = 1 + len(used) % 4

    assert said == whole
    assert used == [FAMILIES[at % len(FAMILIES)].name for at in range(len(used))]
    assert len(set(used)) == len(FAMILIES)


def test_stop_ends_the_reply_after_the_round_in_progress():
    stop = threading.Event()
    lm = table()
    ending = ReplyText(
        letters, end_ids=frozenset(), stop_texts=(), max_new_tokens=50, context_room=100
    )
    drafter = oracle([*PROMPT, *plain_ids(SamplingParams(), count=20)])
    steps = speculate(
        lm,
        lm.new_memo(),
        PROMPT,
        Drafting(drafter, 2),
        params=SamplingParams(),
        ending=ending,
        stop=stop,
    )

    said = []
    for step in steps:
        if isinstance(step, Committed):
            said += step.ids
            stop.set()

    assert said == plain_ids(SamplingParams())[:3]
