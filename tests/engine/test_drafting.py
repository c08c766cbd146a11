"""Drafters and the memo inside the loop: what is accepted, proposed, and left in the cache."""

from __future__ import annotations

import pytest
import torch

from engine.draft import Draft
from engine.drafters import FAMILIES
from engine.params import Rule, SamplingParams
from tests.engine.fakes import Bench, ScriptedDrafter, nobody, spoken
from tests.engine.listed import LONG_PROMPT, drafting_families, families, processors, rules, targets

# How much is accepted.


@targets
@rules
@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("name", ["draft-model", "shared-draft-model"])
def test_a_model_that_drafts_for_itself_is_accepted_whole(target, rule, temperature, name, lms):
    params = SamplingParams(temperature=temperature, rule=rule, seed=3)
    bench = Bench(lms[target], lms[target])
    [family] = [family for family in FAMILIES if family.name == name]
    drafter = family.build(bench, "anywhere")

    reply = spoken(bench.lm, drafter, LONG_PROMPT, params, most=20, draft_length=4)

    assert reply.accepted == reply.drafted == 16
    assert len(reply.rounds) == 4


@rules
def test_a_drafter_that_is_always_wrong_is_never_accepted_and_changes_nothing(rule, lms):
    params = SamplingParams(rule=rule)
    plain = spoken(lms["llama"], nobody(), LONG_PROMPT, params, most=12)
    said = [*LONG_PROMPT, *plain.ids, 0]
    wrong = ScriptedDrafter(lambda ids: [(said[len(ids)] + 1) % 100] * 3)

    reply = spoken(lms["llama"], wrong, LONG_PROMPT, params, most=12)

    assert reply.ids == plain.ids
    assert reply.accepted == 0
    assert len(reply.rounds) == 12


# What a drafter may say.


@drafting_families
@rules
@pytest.mark.parametrize("draft_length", [1, 3, 8])
def test_a_draft_stays_within_its_budget_and_never_outruns_the_reply(
    family, rule, draft_length, lms, draft_lm
):
    params = SamplingParams(temperature=0.9, rule=rule, seed=2)
    bench = Bench(lms["llama"], draft_lm)
    drafter = bench.drafter(family)

    reply = spoken(bench.lm, drafter, LONG_PROMPT, params, most=10, draft_length=draft_length)

    left = 10
    for done in reply.rounds:
        assert len(done.draft) <= min(draft_length, left - 1)
        assert set(done.draft.drafters) <= set(drafter.proposers)
        left -= len(done.ids)
    assert left == 0
    assert reply.drafted > 0


@drafting_families
@rules
@processors
def test_only_a_drawn_node_has_a_row_and_it_is_the_one_shown(family, rule, chosen, lms, draft_lm):
    params = SamplingParams(**chosen, rule=rule, seed=2)
    bench = Bench(lms["llama"], draft_lm)

    reply = spoken(bench.lm, bench.drafter(family), LONG_PROMPT, params, most=10)

    for done in reply.rounds:
        for token, row, q in zip(done.draft.ids, done.draft.q_rows, done.draft.q, strict=True):
            assert row is None or rule is Rule.REJECTION
            if row is not None:
                assert row.sum().item() == pytest.approx(1.0)
                assert row[token].item() == pytest.approx(q)
                assert (row > 0).sum().item() <= (params.top_k or len(row))


@families
def test_rejection_with_one_seed_and_one_drafter_says_the_same_again(family, lms, draft_lm):
    params = SamplingParams(temperature=0.9, rule=Rule.REJECTION, seed=2)
    bench = Bench(lms["llama"], draft_lm)

    first, second = (
        spoken(bench.lm, bench.drafter(family), LONG_PROMPT, params, most=12) for _ in range(2)
    )

    assert first.ids == second.ids


# The memo.


@families
@targets
@rules
def test_after_every_round_the_memo_equals_a_fresh_computation(family, target, rule, lms, draft_lm):
    params = SamplingParams(temperature=0.7, rule=rule, seed=1)
    bench = Bench(lms[target], draft_lm)
    memo, checked = bench.lm.new_memo(), []

    def check(ids):
        assert memo.ids == ids[:-1]
        assert_same_rows(memo, fresh(bench.lm, ids))
        checked.append(len(ids))

    reply = spoken(
        bench.lm, bench.drafter(family), LONG_PROMPT, params, most=14, memo=memo, after_round=check
    )

    assert len(checked) == len(reply.rounds) > 0


@targets
def test_a_tree_leaves_the_rows_of_the_accepted_path_only(target, lms):
    params = SamplingParams()
    lm = lms[target]
    plain = spoken(lm, nobody(), LONG_PROMPT, params, most=13)
    said = [*LONG_PROMPT, *plain.ids]

    def bush(ids):
        """The right path as the second child everywhere, between two wrong ones."""
        tokens, parents, node = [], [], -1
        for token in said[len(ids) :][:3]:
            tokens += [token + 1, token, token + 2]
            parents += [node] * 3
            node = len(tokens) - 2
        count = len(tokens)
        return Draft(
            tuple(tokens), tuple(parents), ("bush",) * count, (None,) * count, (None,) * count
        )

    memo = lm.new_memo()

    def check(ids):
        assert memo.ids == ids[:-1]
        assert_same_rows(memo, fresh(lm, ids))

    reply = spoken(
        lm, ScriptedDrafter(bush), LONG_PROMPT, params, most=12, memo=memo, after_round=check
    )

    assert reply.ids == plain.ids[:12]
    assert reply.accepted == 9
    assert len(reply.rounds) == 3


def fresh(lm, ids):
    memo = lm.new_memo()
    for _ in lm.read(memo, ids):
        pass
    return memo


def assert_same_rows(left, right):
    pairs = zip(left.rows.cache.layers, right.rows.cache.layers, strict=True)
    for ours, theirs in pairs:
        torch.testing.assert_close(ours.keys, theirs.keys, rtol=1e-10, atol=1e-10)
        torch.testing.assert_close(ours.values, theirs.values, rtol=1e-10, atol=1e-10)


@drafting_families
def test_a_drafter_that_followed_a_reply_drafts_as_a_fresh_one_does(family, lms, draft_lm):
    params = SamplingParams(temperature=0.9, rule=Rule.COUPLED, seed=8)
    bench = Bench(lms["llama"], draft_lm)
    old = bench.drafter(family)
    first = spoken(bench.lm, old, LONG_PROMPT, params, most=10)
    prompt = [*LONG_PROMPT, *first.ids[:4], 9, *LONG_PROMPT]

    seasoned = spoken(bench.lm, old, prompt, params, most=10)

    unused = spoken(bench.lm, bench.drafter(family), prompt, params, most=10)
    assert [done.draft.ids for done in seasoned.rounds] == [
        done.draft.ids for done in unused.rounds
    ]
    assert seasoned.ids == unused.ids
