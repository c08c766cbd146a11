"""A chain of drafters: a long match first, else the other; nodes say who proposed them."""

from __future__ import annotations

import pytest

from engine.draft import NO_DRAFT, Draft
from engine.drafters import FAMILIES, layer_skip, lookahead, suffix
from engine.drafters.chained import Chained, chain
from engine.drafters.drafter import Context
from engine.drafters.suffix import SuffixDrafter
from engine.errors import DrafterMismatch
from engine.params import Rule, SamplingParams
from engine.planning import Budget
from engine.sampling import Noise
from tests.engine.fakes import Bench, ScriptedDrafter, TableLM, nobody, spoken
from tests.engine.listed import LONG_PROMPT, rules
from tests.engine.statistics import misfit, reply_law

[PAIR] = [family for family in FAMILIES if family.name == "suffix+draft-model"]


def sure(grade):
    """A first drafter whose match is so long; 0: it finds nothing."""
    drafter = ScriptedDrafter(
        lambda _: Draft.chain([5, 6], "sure", grade=grade) if grade else NO_DRAFT
    )
    drafter.name, drafter.proposers = "sure", ("sure",)
    return drafter


def other(ids=(7, 8)):
    drafter = ScriptedDrafter(lambda _: ids)
    drafter.name, drafter.proposers = "other", ("other",)
    return drafter


def proposed(first, second, budget=None):
    pair = Chained("pair", first, second, long_match=5)
    return pair.propose(Context([1, 2], 2), budget or Budget(3, 3), SamplingParams(), Noise(0))


# Who drafts.


@pytest.mark.parametrize(("grade", "who"), [(0, "other"), (4, "other"), (5, "sure"), (9, "sure")])
def test_the_first_drafts_after_a_long_match_and_else_the_other(grade, who):
    assert set(proposed(sure(grade), other()).drafters) == {who}


def test_a_short_match_is_taken_where_the_other_has_nothing():
    assert proposed(sure(2), other(())).ids == (5, 6)
    assert proposed(sure(0), other(())) == NO_DRAFT


def test_each_is_asked_within_its_own_budget():
    shares = {"sure": Budget(0, 0), "other": Budget(1, 1)}

    assert proposed(sure(9), other(), Budget(3, 3, shares=shares)).ids == (7,)


def test_a_long_match_that_is_judged_not_to_pay_leaves_it_to_the_other():
    def judge(draft):
        return (NO_DRAFT, 0.0) if draft.drafters[0] == "sure" else (draft, 1.0)

    assert proposed(sure(9), other(), Budget(3, 3, judge=judge)).ids == (7, 8)


def test_both_learn_from_every_round(lms):
    first, second = sure(9), other()

    reply = spoken(
        lms["llama"], Chained("pair", first, second), LONG_PROMPT, SamplingParams(), most=8
    )

    assert len(first.observed) == len(second.observed) >= len(reply.rounds)


# Real ones.


@rules
def test_replies_hold_nodes_of_both_and_say_so(rule, lms, draft_lm):
    bench = Bench(lms["llama"], draft_lm)
    pair = PAIR.build(bench, "anywhere")

    reply = spoken(bench.lm, pair, LONG_PROMPT, SamplingParams(rule=rule), most=24)

    assert pair.proposers == ("suffix", "draft-model")
    assert {done.drafter for done in reply.rounds} == {"suffix+draft-model"}
    assert {name for done in reply.rounds for name in done.draft.drafters} == set(pair.proposers)


@rules
def test_replies_of_both_follow_the_targets_law(rule):
    """A match of one is long here, so that both draft in most replies."""
    end, prompt = frozenset([0]), [1, 2, 3, 1, 2, 3, 4, 1, 2]
    lm = TableLM.random(31, end_ids=end)
    model = PAIR.build(Bench(lm, TableLM.random(2, end_ids=end)), "anywhere")
    pair = Chained("pair", SuffixDrafter(end_ids=end), model, long_match=2)
    memo, texts, proposers = lm.new_memo(), [], set()

    for seed in range(1200):
        params = SamplingParams(temperature=0.8, rule=rule, seed=seed)
        reply = spoken(lm, pair, prompt, params, most=3, draft_length=2, memo=memo)
        texts.append(tuple(reply.ids))
        proposers |= {name for done in reply.rounds for name in done.draft.drafters}

    law = reply_law(
        lambda ids: lm.logits(ids).tolist(),
        prompt,
        SamplingParams(temperature=0.8),
        length=3,
        end_ids=end,
    )
    assert misfit(texts, law) < 3.7  # one in ten thousand
    assert proposers == {"suffix", "draft-model"}


def test_the_others_passengers_ride_only_when_it_is_asked(lms):
    bench = Bench(lms["llama"], lms["llama"])
    pair = chain(suffix.FAMILY, lookahead.FAMILY).build(bench, "4x4x3")
    params = SamplingParams(rule=Rule.COUPLED)
    plain = spoken(bench.lm, nobody(), LONG_PROMPT, params, most=24)

    reply = spoken(bench.lm, pair, LONG_PROMPT, params, most=24)

    assert reply.ids == plain.ids
    riders = {done.rows - 1 - len(done.draft) > 0 for done in reply.rounds}
    by_suffix = [done for done in reply.rounds if set(done.draft.drafters) == {"suffix"}]
    assert riders == {True, False}
    assert any(done.rows == 1 + len(done.draft) for done in by_suffix)


# How it is asked for.


def test_it_takes_the_choice_that_the_other_takes(lms):
    bench = Bench(lms["llama"], lms["llama"])
    skipping = chain(suffix.FAMILY, layer_skip.FAMILY)

    assert skipping.name == "suffix+layer-skip"
    assert skipping.label == "Suffix + layer skip"
    assert not skipping.needs
    assert skipping.build(bench, "1").proposers == ("suffix", "layer-skip")
    with pytest.raises(DrafterMismatch, match="number of layers"):
        skipping.build(bench, "many")


def test_it_does_not_fit_where_one_of_them_does_not():
    lm = TableLM.random(1, layers=1)

    reason = chain(suffix.FAMILY, layer_skip.FAMILY).reason(Bench(lm, lm))

    assert reason == "this model has a single layer"
    assert PAIR.reason(Bench(lm, lm)) is None
    assert PAIR.needs == "a model"
