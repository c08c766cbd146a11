"""verify() under REJECTION: its law, measured over its own uniforms, is the target's."""

from __future__ import annotations

import math
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.draft import ROOT, Draft
from engine.events import Origin, Outcome
from engine.sampling import Noise
from engine.verification import verify
from tests.engine.reference import (
    ONE,
    Proposal,
    block,
    block_quantities,
    committed_law,
    completed,
    fixed,
    joint,
    one_hot,
    sampled,
    sequential,
    total_variation,
    toy_law,
    truncated,
)
from tests.engine.toys import (
    COUPLED,
    GREEDY,
    GREEDY_REJECTION,
    REJECTION,
    TREE,
    WIDE_P,
    WIDE_Q,
    P,
    Q,
    committed_ids,
    judged,
    trees,
)
from tests.engine.uniforms import LAST, ScriptedNoise, measured_law

NARROW_P, NARROW_Q = toy_law(5, 4, impossible=(1,)), toy_law(6, 4, impossible=(2, 3))


def mixed_chain():
    """A drawn token, a certain one under it, and a drawn one again."""
    for weight, first in sampled(Q, [1]):
        follower = (first.ids[0], 1)
        for chance, last in sampled(lambda rest, seen=follower: Q((*seen, *rest)), [1]):
            rows = (first.q_rows[0], None, last.q_rows[0])
            yield weight * chance, Proposal((*follower, last.ids[0]), (-1, 0, 1), rows)


def chain_that_stops_at_an_end():
    """Drawn ids, but nothing is drawn after id 0, as after an end of turn."""
    for weight, first in sampled(Q, [1]):
        if first.ids == (0,):
            yield weight, first
            continue
        for chance, rest in sampled(lambda later, seen=first.ids: Q((*seen, *later)), [1, 1]):
            rows = (*first.q_rows, *rest.q_rows)
            yield weight * chance, Proposal((*first.ids, *rest.ids), (-1, 0, 1), rows)


CASES = {
    "no draft": (lambda: fixed(()), P, sequential),
    "sampled chain of 1": (lambda: sampled(WIDE_Q, [1]), WIDE_P, block),
    "sampled chain of 2": (lambda: sampled(WIDE_Q, [1, 1]), WIDE_P, block),
    "sampled chain of 3": (lambda: sampled(Q, [1, 1, 1]), P, block),
    "deterministic chain": (lambda: fixed((0, 2, 1)), P, sequential),
    "chain of one id": (lambda: fixed((1, 1, 1)), P, sequential),
    "chain that stops at an end": (chain_that_stops_at_an_end, P, block),
    "mixed chain": (mixed_chain, P, sequential),
    "deterministic tree": (lambda: fixed(*TREE), WIDE_P, sequential),
    "two sampled siblings": (lambda: sampled(WIDE_Q, [2]), WIDE_P, sequential),
    "three sampled siblings": (lambda: sampled(WIDE_Q, [3]), WIDE_P, sequential),
    "all ids as siblings": (lambda: sampled(Q, [3]), P, sequential),
    "sampled tree": (lambda: sampled(Q, [2, 1]), P, sequential),
    "impossible ids": (lambda: sampled(NARROW_Q, [1, 1]), NARROW_P, block),
    "impossible ids in a tree": (lambda: sampled(NARROW_Q, [2]), NARROW_P, sequential),
    "no id in common": (
        lambda: sampled(toy_law(1, 4, impossible=(0, 1)), [1, 1]),
        toy_law(2, 4, impossible=(2, 3)),
        block,
    ),
    "p is q": (lambda: sampled(P, [1, 1]), P, block),
    "truncated p": (lambda: sampled(WIDE_Q, [1, 1]), truncated(WIDE_P, 2), block),
    "both truncated": (
        lambda: sampled(truncated(WIDE_Q, 2), [2]),
        truncated(WIDE_P, 2),
        sequential,
    ),
    "certain p": (lambda: sampled(Q, [1, 1]), truncated(P, 1), block),
    "certain q": (lambda: sampled(truncated(Q, 1), [1, 1]), P, block),
}


@pytest.mark.parametrize("case", CASES)
def test_rejection_commits_the_targets_law_and_keeps_what_its_rule_keeps(case):
    proposals, p, rule = CASES[case]
    length = 1 + max((len(proposal.ids) for _, proposal in proposals()), default=0)

    committed = measured_law(proposals(), partial(committed_ids, p=p))

    longest = max(map(len, committed))
    assert longest <= length
    target, kept = joint(p, longest), committed_law(proposals(), rule, p)
    assert total_variation(completed(committed, p, longest), _as_floats(target)) <= 1e-12
    assert total_variation(committed, _as_floats(kept)) <= 1e-12


def _as_floats(law):
    return {ids: float(weight) for ids, weight in law.items()}


def test_every_place_of_a_sampled_chain_has_its_own_draw_and_its_own_threshold():
    for _, chain in sampled(Q, [1, 1, 1]):
        thresholds, _ = block_quantities(chain, P)
        for place, threshold in enumerate(thresholds, start=1):
            if not 0 < threshold < 1 or any(later == 1 for later in thresholds[place:]):
                continue
            draws = [1 - 1e-6] * 4

            kept = []
            for nudge in (-1e-9, 1e-9):
                draws[place - 1] = float(threshold) + nudge
                kept.append(len(judged(chain, ScriptedNoise(tuple(draws)), P).accepted))

            assert kept[0] == place
            assert kept[1] == max((i for i in range(1, place) if thresholds[i - 1] == 1), default=0)


@pytest.mark.parametrize("edge", [0.0, LAST])
@pytest.mark.parametrize(
    "proposal",
    [
        Proposal((1,), (ROOT,), (None,)),
        Proposal((1, 1), (ROOT, 0), (None, None)),
        Proposal((1, 5), (ROOT, ROOT), (None, None)),
        Proposal((1,), (ROOT,), (one_hot(1, 6),)),
        Proposal((), (), ()),
    ],
    ids=["chain of 1", "chain of 2", "siblings", "drawn", "no draft"],
)
def test_the_extreme_uniforms_never_commit_an_impossible_id(edge, proposal):
    third = ONE / 3
    row = (0 * ONE, 0 * ONE, third, third, third, 0 * ONE)

    verdict = judged(proposal, ScriptedNoise((edge,) * 4), lambda _: row)

    assert verdict.accepted == ()
    assert verdict.token == (2 if edge == 0.0 else 4)


def test_a_certain_id_is_kept_at_the_largest_uniform():
    row = one_hot(2, 4)
    chain = Proposal((2, 2), (ROOT, 0), (None, row))

    verdict = judged(chain, ScriptedNoise((LAST,) * 4), lambda _: row)

    assert verdict.accepted == (0, 1)
    assert verdict.token == 2


@pytest.mark.parametrize("params", [REJECTION, COUPLED], ids=["rejection", "coupled"])
def test_the_same_seed_judges_alike(params):
    chains = [chain for _, chain in sampled(Q, [1, 1, 1])]

    first = [judged(chain, Noise(11), P, params) for chain in chains]
    second = [judged(chain, Noise(11), P, params) for chain in chains]

    assert first == second


# What a verdict says besides.


@settings(deadline=None)
@given(tree=trees(vocabulary=4), seed=st.integers(0, 1000))
@pytest.mark.parametrize("params", [REJECTION, COUPLED, GREEDY, GREEDY_REJECTION], ids=str)
def test_a_verdict_accounts_for_every_node(params, tree, seed):
    verdict = judged(tree, Noise(seed), WIDE_P, params)

    kept = verdict.accepted
    last = kept[-1] if kept else ROOT
    turned_down = tree.children(last)
    assert [tree.parents[node] for node in kept] == [ROOT, *kept[:-1]][: len(kept)]
    assert len(verdict.outcomes) == len(tree.ids)
    for node, outcome in enumerate(verdict.outcomes):
        assert (outcome is Outcome.KEPT) == (node in kept)
        if node in turned_down:
            assert outcome is Outcome.TURNED_DOWN
        if tree.parents[node] not in (ROOT, *kept):
            assert outcome is Outcome.NOT_REACHED
    assert verdict.origin is (Origin.RESAMPLED if turned_down else Origin.TARGET_ONLY)


@given(tree=trees(vocabulary=4), seed=st.integers(0, 1000))
@settings(deadline=None)
def test_a_replacement_is_none_of_the_ids_that_were_turned_down(tree, seed):
    verdict = judged(tree, Noise(seed), WIDE_P, REJECTION)

    last = verdict.accepted[-1] if verdict.accepted else ROOT
    assert verdict.token not in [tree.ids[child] for child in tree.children(last)]


@pytest.mark.parametrize("draw", [0.0, 0.5, 1 - 1e-9, LAST])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("siblings", [False, True], ids=["chain", "siblings"])
@pytest.mark.parametrize("seed", range(20))
def test_rounding_never_commits_an_impossible_id(seed, siblings, dtype, draw):
    """p and q equal up to their last bits, where what is left over is nothing but rounding."""
    generator = torch.Generator().manual_seed(seed)
    logits = 4 * torch.randn(4, 60, generator=generator, dtype=torch.float64)
    logits[:, seed % 50 : seed % 50 + 10] = -math.inf
    log_p = logits.log_softmax(-1).to(dtype)
    rows = list((logits[:3] + 1e-8 * torch.randn(3, 60, generator=generator)).softmax(-1).to(dtype))
    ids = [int(row.multinomial(1, generator=generator)) for row in rows]
    parents = (ROOT, ROOT, ROOT) if siblings else (ROOT, 0, 1)
    draft = Draft(tuple(ids), parents, ("toy",) * 3, tuple(rows), (None,) * 3)

    verdict = verify(draft, log_p, params=REJECTION, noise=ScriptedNoise((draw,) * 4), position=1)

    row = 0
    for node in verdict.accepted:
        assert log_p[row, draft.ids[node]] > -math.inf
        row = 1 + node
    assert log_p[row, verdict.token] > -math.inf


def test_single_precision_rows_are_judged_too():
    log_p = torch.tensor([[0.0, -math.inf, 0.0]] * 2, dtype=torch.float32).log_softmax(-1)
    row = torch.tensor([0.5, 0.5, 0.0], dtype=torch.float32)
    draft = Draft.chain([1], "toy", q_rows=[row])

    verdicts = [
        verify(draft, log_p, params=REJECTION, noise=Noise(seed), position=1) for seed in range(100)
    ]

    assert {verdict.token for verdict in verdicts} == {2}
