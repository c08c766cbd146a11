"""The loop with every listed drafter: its text is plain decoding's, whoever drafts, however far.

A new drafter enters by being listed in `engine.drafters.FAMILIES`.
"""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import softmax

from engine.draft import Draft
from engine.drafters import FAMILIES
from engine.models.transformers_lm import TransformersLM
from engine.params import Rule, SamplingParams
from tests.engine import models_for_tests as tiny
from tests.engine.fakes import Bench, ScriptedDrafter, TableLM, spoken
from tests.engine.statistics import misfit, reply_law

END = frozenset([0])
PROMPT = [1, 2, 3, 1, 2, 3, 4, 1, 2]
LONG_PROMPT = [*range(40, 60), *range(45, 60), 7, 7, *range(40, 50)]

families = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
drafting_families = pytest.mark.parametrize(
    "family", [f for f in FAMILIES if f.name != "off"], ids=lambda family: family.name
)
targets = pytest.mark.parametrize("target", ["llama", "mistral", "gemma"])
rules = pytest.mark.parametrize("rule", Rule, ids=str)

PROCESSORS = {
    "temperature": {"temperature": 0.8},
    "filters": {"temperature": 1.2, "top_k": 4, "top_p": 0.9, "min_p": 0.05},
    "penalty": {"temperature": 1.0, "repetition_penalty": 1.6},
}
processors = pytest.mark.parametrize("chosen", PROCESSORS.values(), ids=PROCESSORS.keys())


# Sampling: whole replies against their exact law.


def replies(bench, drafter, chosen, rule, *, count):
    """Replies of three tokens for the first `count` seeds, all on one memo; and tokens accepted."""
    memo, texts, accepted = bench.lm.new_memo(), [], 0
    for seed in range(count):
        params = SamplingParams(**chosen, rule=rule, seed=seed)
        reply = spoken(bench.lm, drafter, PROMPT, params, most=3, draft_length=2, memo=memo)
        texts.append(tuple(reply.ids))
        accepted += reply.accepted
    return texts, accepted


@families
@rules
@processors
def test_replies_follow_the_targets_law(family, rule, chosen):
    lm = TableLM.random(31, end_ids=END)
    bench = Bench(lm, TableLM.random(2, end_ids=END))
    drafter = bench.drafter(family)

    # One seed has one text under COUPLED, whoever drafts, so there fewer are enough for each drafter.
    count = 1200 if rule is Rule.REJECTION or family.name == "off" else 400
    texts, accepted = replies(bench, drafter, chosen, rule, count=count)

    params = SamplingParams(**chosen)
    law = reply_law(lambda ids: lm.logits(ids).tolist(), PROMPT, params, length=3, end_ids=END)
    assert misfit(texts, law) < 3.7  # one in ten thousand
    assert accepted or family.name == "off"


def test_a_made_up_q_is_caught():
    lm, other = TableLM.random(31, end_ids=END), TableLM.random(2, end_ids=END)

    def most_likely(ids):
        row = softmax(other.logits(ids), -1)
        return Draft.chain([int(row.argmax())], "wrong", q_rows=[row])

    texts, _ = replies(
        Bench(lm, other),
        ScriptedDrafter(most_likely),
        {"temperature": 1.0},
        Rule.REJECTION,
        count=1200,
    )

    params = SamplingParams(temperature=1.0)
    law = reply_law(lambda ids: lm.logits(ids).tolist(), PROMPT, params, length=3, end_ids=END)
    assert misfit(texts, law) > 10


@pytest.mark.slow
@families
@rules
@processors
def test_replies_of_a_real_model_follow_its_law(family, rule, chosen):
    model = tiny.llama(1, vocabulary=5, sharpness=1.0)
    bench = Bench(
        TransformersLM(model, end_ids=END),
        TransformersLM(tiny.llama(2, vocabulary=5, layers=1), end_ids=END),
    )
    drafter = bench.drafter(family)

    texts, accepted = replies(bench, drafter, chosen, rule, count=300)

    law = reply_law(
        lambda ids: last_logits(model, ids), PROMPT, SamplingParams(**chosen), length=3, end_ids=END
    )
    assert misfit(texts, law) < 3.7
    assert accepted or family.name == "off"


@torch.inference_mode()
def last_logits(model, ids):
    return model(torch.tensor([ids])).logits[0, -1].tolist()


# One seed, one text.


@drafting_families
@pytest.mark.parametrize("temperature", [0.0, 0.7, 1.2])
@pytest.mark.parametrize("draft_length", range(1, 9))
def test_coupled_text_is_the_same_with_every_drafter_and_length(
    family, temperature, draft_length, lms, draft_lm
):
    params = SamplingParams(temperature=temperature, rule=Rule.COUPLED, seed=5)
    bench = Bench(lms["llama"], draft_lm)
    plain = spoken(bench.lm, bench.drafter(FAMILIES[0]), LONG_PROMPT, params, most=16)

    reply = spoken(
        bench.lm, bench.drafter(family), LONG_PROMPT, params, most=16, draft_length=draft_length
    )

    assert reply.ids == plain.ids
    assert len(plain.rounds) == len(plain.ids) == 16


@drafting_families
@targets
@processors
def test_coupled_text_is_the_same_with_every_processor_and_attention(
    family, target, chosen, lms, draft_lm
):
    params = SamplingParams(**chosen, rule=Rule.COUPLED, seed=2**63 - 1)
    bench = Bench(lms[target], draft_lm)
    plain = spoken(bench.lm, bench.drafter(FAMILIES[0]), LONG_PROMPT, params, most=20)

    reply = spoken(bench.lm, bench.drafter(family), LONG_PROMPT, params, most=20, draft_length=5)

    assert reply.ids == plain.ids


@families
@targets
@rules
@pytest.mark.parametrize("penalty", [1.0, 1.4])
def test_greedy_text_is_what_transformers_generates(
    family, target, rule, penalty, models, lms, draft_lm
):
    params = SamplingParams(repetition_penalty=penalty, rule=rule)
    bench = Bench(lms[target], draft_lm)

    reply = spoken(bench.lm, bench.drafter(family), LONG_PROMPT, params, most=24, draft_length=4)

    expected = models[target].generate(
        torch.tensor([LONG_PROMPT]),
        attention_mask=torch.ones(1, len(LONG_PROMPT), dtype=torch.long),
        max_new_tokens=24,
        do_sample=False,
        repetition_penalty=penalty,
        pad_token_id=0,
    )
    assert reply.ids == expected[0, len(LONG_PROMPT) :].tolist()


# How much is accepted.


@targets
@rules
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_model_that_drafts_for_itself_is_accepted_whole(target, rule, temperature, lms):
    params = SamplingParams(temperature=temperature, rule=rule, seed=3)
    bench = Bench(lms[target], lms[target])
    [family] = [family for family in FAMILIES if family.name == "draft-model"]

    reply = spoken(bench.lm, bench.drafter(family), LONG_PROMPT, params, most=20, draft_length=4)

    assert reply.accepted == reply.drafted == 16
    assert len(reply.rounds) == 4


@rules
def test_a_drafter_that_is_always_wrong_is_never_accepted_and_changes_nothing(rule, lms):
    params = SamplingParams(rule=rule)
    plain = spoken(lms["llama"], ScriptedDrafter(lambda ids: ()), LONG_PROMPT, params, most=12)
    said = [*LONG_PROMPT, *plain.ids, 0]
    wrong = ScriptedDrafter(lambda ids: [(said[len(ids)] + 1) % 100] * 3)

    reply = spoken(lms["llama"], wrong, LONG_PROMPT, params, most=12)

    assert reply.ids == plain.ids
    assert reply.accepted == 0
    assert len(reply.rounds) == 12


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
    plain = spoken(lm, ScriptedDrafter(lambda ids: ()), LONG_PROMPT, params, most=13)
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
