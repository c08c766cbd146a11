"""A draft model with another tokenizer: what both vocabularies have is drafted in our ids."""

from __future__ import annotations

import pytest
import torch

from engine.drafters import FAMILIES
from engine.drafters.draft_model import ModelDrafter
from engine.drafters.drafter import Context
from engine.drafters.shared_words import SharedWordsDrafter
from engine.drafters.tokenizer_pair import TokenizerPair, shared_words
from engine.errors import DrafterMismatch
from engine.params import Rule, SamplingParams
from engine.planning import Budget
from engine.sampling import Noise
from tests.engine.fakes import Bench, TableLM, spoken
from tests.engine.listed import LONG_PROMPT, processors, rules
from tests.engine.other_words import OTHER_WORDS, toy

[SHARED] = [family for family in FAMILIES if family.name == "shared-draft-model"]
COUPLED = SamplingParams(temperature=1.0, rule=Rule.COUPLED, seed=4)

OURS = toy([*"abcdef", "ab"], ends=[2])
THEIRS = toy([*"fxedcba", "cd"], ends=[0], end="</end>")
PROMPT = OURS.at_start("abc")
OUR_ORDER = {word: OURS.ids_by_word[word.encode()] for word in "abcdef"}


def even(vocabulary, **rows):
    """A model whose next token is the same whatever stands before; `rows`: logits by id."""
    table = torch.zeros(vocabulary, dtype=torch.float64)
    for token, logit in rows.items():
        table[int(token[1:])] = logit
    places = vocabulary + 1
    return TableLM(table.expand(1, places, places, vocabulary), end_ids=frozenset([0]))


def drafter_of(lm, ours=OURS, theirs=THEIRS):
    pair = TokenizerPair(ours, theirs, frozenset([2]), frozenset([0]))
    words = pair.shared_controls() | shared_words(ours, theirs)
    return SharedWordsDrafter(lm, pair, words, vocabulary=len(ours.spelled), name="shared")


def proposed(drafter, params, *, depth=4):
    context, budget = Context(PROMPT, len(PROMPT)), Budget(depth, depth)
    return drafter.propose(context, budget, params, Noise(params.seed))


def test_only_shared_tokens_and_the_end_are_drafted():
    drafter = drafter_of(even(9))
    known = {*OUR_ORDER.values(), 2}

    seen = {token for seed in range(60) for token in proposed(drafter, COUPLED.with_seed(seed)).ids}

    assert seen == known


def test_an_end_of_turn_is_ours_and_ends_the_draft():
    draft = proposed(drafter_of(even(9, t0=9.0)), SamplingParams())

    assert draft.ids == (2,)


def test_the_likeliest_of_what_is_shared_is_taken_where_the_likeliest_is_not():
    x, e = THEIRS.ids_by_word[b"x"], THEIRS.ids_by_word[b"e"]

    draft = proposed(drafter_of(even(9, **{f"t{x}": 9.0, f"t{e}": 5.0})), SamplingParams())

    assert set(draft.ids) == {OUR_ORDER["e"]}


@processors
def test_a_drawn_token_carries_the_row_over_all_of_our_ids(chosen):
    params = SamplingParams(**chosen, rule=Rule.REJECTION, seed=3)

    draft = proposed(drafter_of(even(9, t3=1.0)), params)

    for row, token, q in zip(draft.q_rows, draft.ids, draft.q, strict=True):
        assert row is not None
        assert len(row) == len(OURS.spelled)
        assert row.sum().item() == pytest.approx(1.0)
        assert row[OURS.ids_by_word[b"ab"]] == 0.0
        assert row[token].item() == pytest.approx(q)


def test_a_coupled_choice_is_by_the_targets_noise_and_ids():
    """Where all are alike, whoever has the most noise among the shared is taken."""
    known = torch.tensor(sorted({*OUR_ORDER.values(), 2}))

    draft = proposed(drafter_of(even(9)), COUPLED)

    noise = Noise(COUPLED.seed)
    for position, token in enumerate(draft.ids, start=len(PROMPT)):
        gumbel = noise.gumbel(position, known, vocabulary=len(OURS.spelled))
        assert token == known[gumbel.argmax()]


def test_the_penalty_looks_at_our_ids():
    drafter = drafter_of(even(9, t3=2.0, t4=1.9))  # e before d

    draft = proposed(drafter, SamplingParams(repetition_penalty=3.0))

    assert draft.ids[:2] == (OUR_ORDER["e"], OUR_ORDER["d"])


@rules
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_model_that_says_the_same_in_ids_of_its_own_is_accepted_whole(rule, temperature):
    """The same model, its ids in another order."""
    words = [*"abcde"]
    target = TableLM.random(3)
    turned = torch.arange(4, -1, -1)
    places = [*turned.tolist(), 5]
    tables = target._tables[:, places][:, :, places][..., turned]
    pair = TokenizerPair(toy(words), toy(words[::-1]), frozenset(), frozenset())
    drafter = SharedWordsDrafter(
        TableLM(tables), pair, shared_words(pair.ours, pair.theirs), vocabulary=5, name="shared"
    )
    params = SamplingParams(temperature=temperature, rule=rule, seed=1)

    reply = spoken(target, drafter, [1, 2, 3], params, most=20, draft_length=4)

    assert reply.accepted == reply.drafted == 16


# The family.


def test_a_model_with_the_targets_own_ids_shares_all_of_them(lms, draft_lm):
    bench = Bench(lms["llama"], draft_lm)

    drafter = SHARED.build(bench, "anywhere")

    assert isinstance(drafter, ModelDrafter)
    assert drafter.proposers == ("shared-draft-model",)
    reply = spoken(bench.lm, drafter, LONG_PROMPT, SamplingParams(), most=8)
    assert {name for done in reply.rounds for name in done.draft.drafters} == {SHARED.name}


def test_where_nothing_is_shared_no_weights_are_loaded_and_a_sentence_says_so(lms):
    class Apart(Bench):
        def spelling(self, path=None):
            return toy(["a", "b"]) if path is None else toy(["c", "d"])

        def draft_lm(self, path):
            raise AssertionError

    with pytest.raises(DrafterMismatch, match="no token in common"):
        SHARED.build(Apart(lms["llama"], lms["llama"]), OTHER_WORDS)


def test_without_a_choice_it_asks_for_one(lms):
    with pytest.raises(DrafterMismatch, match="Choose a draft model"):
        SHARED.build(Bench(lms["llama"], lms["llama"]), None)
