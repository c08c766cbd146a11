"""Medusa: what its heads are worth, what its trees look like, and what it does without a state."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.drafters.drafter import Context, Observation
from engine.drafters.head_vocabulary import HeadVocabulary
from engine.drafters.medusa import MedusaDrafter
from engine.drafters.medusa_heads import MedusaHeads, load_medusa
from engine.drafters.projection import DenseProjection
from engine.drafters.tree_shape import RANKS, best_shape
from engine.models.causal_lm import FINAL
from engine.params import Rule, SamplingParams
from engine.planning import Budget
from engine.sampling import Noise
from tests.engine import tiny_heads
from tests.engine.fakes import TableLM, nobody, spoken
from tests.engine.listed import rules
from tests.engine.statistics import misfit, reply_law

PROMPT = [1, 2, 3, 1, 2]
VOCABULARY = 7
GREEDY = SamplingParams()


def bigrams(seed=0, **options):
    """A target whose next token follows from the last one alone."""
    table = TableLM.random(seed, vocabulary=VOCABULARY, layers=1, **options)
    return TableLM(table._tables[:, :1].expand_as(table._tables), end_ids=table.end_ids)


def all_knowing(lm, *, heads=4, end_ids=frozenset()):
    """Heads that know what a greedy target says, and what comes second."""
    following = [int(lm.logits([0, last]).argmax()) for last in range(VOCABULARY)]
    width = tiny_heads.width_of(lm)

    def output(ahead):
        weight = torch.zeros(VOCABULARY, width, dtype=torch.float64)
        for last in range(VOCABULARY):
            token = last
            for _ in range(ahead):
                token = following[token]
            weight[token, width - VOCABULARY - 1 + last] = 9.0
        return lambda states: states @ weight.T

    nothing = DenseProjection(torch.zeros(width, width).double())
    made = MedusaHeads(
        blocks=[[nothing]] * heads,
        outputs=[output(2 + head) for head in range(heads)],
        vocabulary=HeadVocabulary(VOCABULARY),
        accuracies=[RANKS] * heads,
        maps=[None] * heads,
        numbers=torch.float64,
    )
    return MedusaDrafter(made, end_ids=end_ids, name="medusa")


def random_drafter(lm, tmp_path, *, heads=4):
    tensors, config = tiny_heads.medusa(tiny_heads.width_of(lm), lm.vocabulary, heads=heads)
    made = load_medusa(str(tiny_heads.write(tmp_path, tensors, config)), lm, "medusa")
    return MedusaDrafter(made, end_ids=lm.end_ids, name="medusa")


def told(lm, ids):
    """What the loop tells when it has read all but the root."""
    [chunk] = lm.read(lm.new_memo(), ids, (FINAL,))
    return Observation(ids[:-1], 0, hidden=chunk.hidden)


def proposed(drafter, ids, budget, params=GREEDY):
    return drafter.propose(Context(ids, len(ids)), budget, params, Noise(params.seed))


# What is accepted.


@rules
@pytest.mark.parametrize("tree_nodes", [0, 9])
@pytest.mark.parametrize("seed", range(4))
def test_heads_that_must_be_right_are_accepted_whole(rule, tree_nodes, seed):
    lm = bigrams(seed)
    params = SamplingParams(rule=rule)
    # A head knows a root that the target chose; a prompt may end as it likes.
    prompt = [*PROMPT, int(lm.logits(PROMPT).argmax())]

    reply = spoken(
        lm, all_knowing(lm), prompt, params, most=20, draft_length=4, tree_nodes=tree_nodes
    )

    assert reply.accepted == 16
    assert len(reply.rounds) == 4


@rules
def test_trees_follow_the_targets_law(rule, tmp_path):
    lm = TableLM.random(31, end_ids=frozenset([0]))
    drafter, memo = random_drafter(lm, tmp_path, heads=2), lm.new_memo()

    texts, accepted = [], 0
    for seed in range(800):
        params = SamplingParams(temperature=0.8, rule=rule, seed=seed)
        reply = spoken(
            lm, drafter, PROMPT[:3], params, most=3, draft_length=2, tree_nodes=6, memo=memo
        )
        texts.append(tuple(reply.ids))
        accepted += reply.accepted

    law = reply_law(
        lambda ids: lm.logits(ids).tolist(),
        PROMPT[:3],
        SamplingParams(temperature=0.8),
        length=3,
        end_ids=frozenset([0]),
    )
    assert misfit(texts, law) < 3.7
    assert accepted


@pytest.mark.parametrize("temperature", [0.0, 0.8, 1.4])
@pytest.mark.parametrize("tree_nodes", [2, 5, 15, 40])
def test_coupled_text_is_the_same_with_every_tree(temperature, tree_nodes, lms, tmp_path):
    lm = lms["gemma"]
    params = SamplingParams(temperature=temperature, rule=Rule.COUPLED, seed=9)
    plain = spoken(lm, nobody(), [*range(40, 60)], params, most=14)

    reply = spoken(
        lm,
        random_drafter(lm, tmp_path),
        [*range(40, 60)],
        params,
        most=14,
        draft_length=3,
        tree_nodes=tree_nodes,
    )

    assert reply.ids == plain.ids
    assert any(not done.draft.is_chain for done in reply.rounds)


# The shape of a draft.


@given(
    st.lists(
        st.lists(st.integers(1, 99), min_size=1, max_size=4).map(lambda r: sorted(r, reverse=True)),
        min_size=1,
        max_size=3,
    ),
    st.integers(1, 12),
)
def test_the_best_shape_holds_the_paths_that_are_right_most_often(percents, nodes):
    accuracies = [[percent / 100 for percent in head] for head in percents]
    shares = []
    for depth in range(1, len(accuracies) + 1):
        for ranks in product(*(range(len(head)) for head in accuracies[:depth])):
            share = 1.0
            for head, rank in zip(accuracies, ranks, strict=False):
                share *= head[rank]
            shares.append(share)

    shape = best_shape(nodes, accuracies)

    chosen = []
    for parent, rank, depth in zip(shape.parents, shape.ranks, shape.depths, strict=True):
        above = 1.0 if parent < 0 else chosen[parent]
        chosen.append(above * accuracies[depth - 1][rank])
    assert chosen == pytest.approx(sorted(shares, reverse=True)[:nodes])
    assert all(parent < node for node, parent in enumerate(shape.parents))


def test_a_chain_goes_no_further_than_there_are_heads(tmp_path):
    lm = bigrams()
    drafter = random_drafter(lm, tmp_path, heads=3)
    drafter.observe(told(lm, PROMPT))

    assert len(proposed(drafter, PROMPT, Budget(2, 2))) == 2
    draft = proposed(drafter, PROMPT, Budget(8, 8))
    assert draft.is_chain
    assert len(draft) == 3


@pytest.mark.parametrize("rule", Rule, ids=str)
def test_a_tree_fills_its_budget_with_distinct_siblings_that_nobody_drew(rule, tmp_path):
    lm = bigrams()
    drafter = random_drafter(lm, tmp_path)
    drafter.observe(told(lm, PROMPT))

    draft = proposed(drafter, PROMPT, Budget(3, 15), SamplingParams(temperature=1.0, rule=rule))

    assert len(draft) == 15
    assert max(draft.depths) <= 3
    assert draft.is_deterministic
    for nodes in draft.children.values():
        assert len({draft.ids[node] for node in nodes}) == len(nodes)


def test_every_node_of_a_tree_is_of_its_heads_best(tmp_path):
    lm = bigrams()
    drafter = random_drafter(lm, tmp_path)
    drafter.observe(told(lm, PROMPT))
    state = told(lm, PROMPT).hidden[FINAL][-1]

    draft = proposed(drafter, PROMPT, Budget(3, 12))

    best = [
        drafter._heads.logits(state, head)[0].argsort(descending=True).tolist() for head in range(3)
    ]
    shape = best_shape(12, drafter._heads.accuracies[:3])
    expected = [best[at - 1][r] for at, r in zip(shape.depths, shape.ranks, strict=True)]
    assert list(draft.ids) == expected
    assert draft.parents == shape.parents


@pytest.mark.parametrize("budget", [Budget(4, 4), Budget(4, 12)])
def test_nothing_is_drafted_behind_an_end_of_turn(budget):
    lm = bigrams()
    ends = frozenset(range(VOCABULARY))
    drafter = all_knowing(lm, end_ids=ends)
    drafter.observe(told(lm, PROMPT))

    assert set(proposed(drafter, PROMPT, budget).depths) == {1}


# What it drafts from.


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.integers(0, VOCABULARY - 1), min_size=2, max_size=9),
    st.lists(st.integers(0, VOCABULARY - 1), min_size=2, max_size=9),
    st.integers(0, 3),
)
def test_it_drafts_from_the_state_before_this_root_or_not_at_all(before, now, more):
    lm = TableLM.random(4, vocabulary=VOCABULARY)
    drafter = all_knowing(lm)
    drafter.observe(told(lm, before))
    ids = [*before[:-1], *now][: len(before) + more]

    draft = proposed(drafter, ids, Budget(3, 3))

    fresh = all_knowing(lm)
    fresh.observe(told(lm, ids))
    expected = proposed(fresh, ids, Budget(3, 3))
    assert draft.ids in ((), expected.ids)
    assert draft.ids == expected.ids or len(ids) != len(before) or ids[:-1] != before[:-1]


def test_changed_in_mid_reply_it_drafts_from_the_second_round_on():
    lm = bigrams()
    memo = lm.new_memo()
    for _ in lm.read(memo, PROMPT):
        pass

    reply = spoken(
        lm, all_knowing(lm), PROMPT, SamplingParams(), most=11, draft_length=4, memo=memo
    )

    assert [len(done.draft) for done in reply.rounds] == [0, 4, 4]
