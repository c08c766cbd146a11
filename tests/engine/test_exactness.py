"""The loop with every listed drafter: its text is plain decoding's, whoever drafts, however far.

A new drafter enters by being listed in `engine.drafters.FAMILIES`.
"""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import softmax

from engine.draft import Draft
from engine.models.transformers_lm import TransformersLM
from engine.params import Rule, SamplingParams
from tests.engine import models_for_tests as tiny
from tests.engine.fakes import Bench, ScriptedDrafter, TableLM, nobody, spoken
from tests.engine.listed import LONG_PROMPT, drafting_families, families, processors, rules, targets
from tests.engine.statistics import misfit, reply_law

END = frozenset([0])
PROMPT = [1, 2, 3, 1, 2, 3, 4, 1, 2]


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

    # Under COUPLED a seed has one text, whoever drafts, so fewer do for each drafter.
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
    plain = spoken(bench.lm, nobody(), LONG_PROMPT, params, most=16)

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
    plain = spoken(bench.lm, nobody(), LONG_PROMPT, params, most=20)

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
