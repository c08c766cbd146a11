"""What drafters are told: the states of every cache row, once, and their passengers' logits."""

from __future__ import annotations

import threading

import pytest
import torch

from engine.draft import Draft, Passengers
from engine.params import SamplingParams
from engine.speculation import Drafting, Read, speculate
from engine.text import ReplyText
from tests.engine.fakes import ScriptedDrafter, letters, spoken

PROMPT = [*range(40, 60), *range(45, 60)] * 5
TAPS: tuple[int, ...] = (0, 2, -1)


class Listener(ScriptedDrafter):
    """Taps the target, and sends two passengers along."""

    taps: tuple[int, ...] = TAPS

    def passengers(self, context):
        del context
        return Passengers((7, 8), (1, 2), torch.ones(2, 2, dtype=torch.bool).tril())


def bush(right):
    """The right path of two, each beside a wrong sibling that comes first."""
    tokens = (right[0] + 1, right[0], right[1] + 1, right[1])
    return Draft(tokens, (-1, -1, 1, 1), ("x",) * 4, (None,) * 4, (None,) * 4)


@pytest.fixture(scope="module")
def heard(lms):
    """The listener after a reply, its ids, and the target."""
    lm = lms["llama"]
    plain = spoken(lm, ScriptedDrafter(lambda ids: ()), PROMPT, SamplingParams(), most=20)
    said = [*PROMPT, *plain.ids, 0, 0, 0]
    listener = Listener(lambda ids: bush(said[len(ids) :]))
    reply = spoken(lm, listener, PROMPT, SamplingParams(), most=12)
    return listener, [*PROMPT, *reply.ids], lm


def test_the_states_of_every_row_are_told_once_and_in_order(heard, models):
    listener, ids, _ = heard

    with torch.inference_mode():
        expected = models["llama"](torch.tensor([ids]), output_hidden_states=True).hidden_states

    firsts = [outcome.first for outcome in listener.observed]
    counts = [len(outcome.hidden[0]) for outcome in listener.observed]
    assert firsts == [sum(counts[:at]) for at in range(len(counts))]
    assert sum(counts) in (len(ids) - 1, len(ids))  # the last token has a row where it was drafted
    for tap in TAPS:
        told = torch.cat([outcome.hidden[tap] for outcome in listener.observed])
        torch.testing.assert_close(told, expected[tap][0, : len(told)])


def test_each_round_tells_its_draft_its_verdict_and_every_id(heard):
    listener, ids, _ = heard

    prefill = [outcome for outcome in listener.observed if outcome.draft is None]
    rounds = [outcome for outcome in listener.observed if outcome.draft is not None]
    assert [len(outcome.ids) for outcome in prefill] == [128, len(PROMPT) - 1]
    assert all(outcome.verdict is None for outcome in prefill)
    assert [outcome.verdict.accepted for outcome in rounds] == [(1, 3)] * 4
    assert rounds[-1].ids == ids


def test_passengers_are_scored_as_rows_under_the_root(heard):
    listener, ids, lm = heard

    rounds = [outcome for outcome in listener.observed if outcome.draft is not None]
    before = ids[: rounds[0].first + 1]
    expected = lm.score(lm.new_memo(), before, Draft.chain([7, 8], "x")).logits[1:]
    torch.testing.assert_close(rounds[0].passenger_logits, expected)


def test_stop_is_seen_between_the_chunks_of_a_prompt(lms):
    lm, stop = lms["llama"], threading.Event()
    ending = ReplyText(
        letters, end_ids=frozenset(), stop_texts=(), max_new_tokens=5, context_room=99
    )
    drafting = Drafting(ScriptedDrafter(lambda ids: ()))
    memo = lm.new_memo()

    steps = []
    for step in speculate(
        lm, memo, PROMPT, drafting, params=SamplingParams(), ending=ending, stop=stop
    ):
        steps.append(step)
        stop.set()

    assert steps == [Read(128, len(PROMPT) - 1)]
    assert memo.ids == PROMPT[:128]
