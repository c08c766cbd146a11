"""verify() under COUPLED and at temperature 0: a draft is walked to plain decoding's text."""

from __future__ import annotations

import math
from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.draft import NO_DRAFT, ROOT
from engine.events import Origin
from engine.sampling import Noise
from engine.verification import verify
from tests.engine.reference import Proposal, decode_plainly, fixed, joint, sampled, truncated
from tests.engine.toys import (
    COUPLED,
    GREEDY,
    GREEDY_REJECTION,
    REJECTION,
    WIDE_P,
    P,
    Q,
    judged,
    trees,
)


class SilentNoise(Noise):
    """No noise at all, so that equal probabilities tie."""

    def gumbel(self, position, ids, *, vocabulary):
        return torch.zeros(vocabulary if ids is None else len(ids))


def plain_ids(p, seed, *, position, length, vocabulary):
    noise = Noise(seed)
    return decode_plainly(
        lambda ids: [math.log(chance) if chance else -math.inf for chance in p(ids)],
        lambda place: noise.gumbel(position + place, None, vocabulary=vocabulary).tolist(),
        length,
    )


@settings(deadline=None, max_examples=150)
@given(tree=trees(vocabulary=4), seed=st.integers(0, 2**63 - 1))
def test_the_coupled_walk_commits_what_plain_decoding_would(tree, seed):
    p = truncated(WIDE_P, 3)
    expected = plain_ids(p, seed, position=7, length=10, vocabulary=4)

    verdict = judged(tree, Noise(seed), p, COUPLED)

    committed = (*(tree.ids[node] for node in verdict.accepted), verdict.token)
    assert committed == expected[: len(committed)]
    assert _deepest_match(tree, expected) == len(verdict.accepted)


def _deepest_match(tree, expected):
    paths = [tree.path_ids(node) for node in range(len(tree.ids))]
    return max((len(path) for path in paths if path == expected[: len(path)]), default=0)


@pytest.mark.parametrize("length", range(9))
def test_a_chain_of_the_plain_ids_is_kept_whole(length):
    expected = plain_ids(P, 3, position=7, length=length + 1, vocabulary=3)
    [(_, chain)] = fixed(expected[:length])

    verdict = judged(chain, Noise(3), P, COUPLED)

    assert verdict.accepted == tuple(range(length))
    assert verdict.token == expected[length]
    assert verdict.origin is Origin.TARGET_ONLY


def test_drawn_and_certain_nodes_are_walked_alike():
    for _, chain in sampled(Q, [1, 1]):
        certain = Proposal(chain.ids, chain.parents, (None, None))

        assert judged(chain, Noise(5), P, COUPLED) == judged(certain, Noise(5), P, COUPLED)


@pytest.mark.parametrize("params", [COUPLED, GREEDY, GREEDY_REJECTION], ids=str)
@pytest.mark.parametrize("vocabulary", [2, 7, 64, 1000, 50_000])
def test_ties_go_to_the_lowest_id(params, vocabulary):
    low = vocabulary // 3
    scores = torch.full((1, vocabulary), -20.0)
    scores[0, low:] = -3.0

    verdict = verify(NO_DRAFT, scores, params=params, noise=SilentNoise(0), position=1)

    assert verdict.token == low


def test_coupled_text_follows_the_targets_law_over_the_seeds():
    draws = 4000
    expected = {ids: float(weight) * draws for ids, weight in joint(WIDE_P, 2).items()}

    texts = [plain_ids(WIDE_P, seed, position=7, length=2, vocabulary=4) for seed in range(draws)]

    tally = Counter(texts)
    chi_square = sum((tally[ids] - expected[ids]) ** 2 / expected[ids] for ids in expected)
    assert chi_square < 37.7  # 15 degrees of freedom, one in a thousand


@settings(deadline=None)
@given(tree=trees(vocabulary=4))
@pytest.mark.parametrize("params", [GREEDY, GREEDY_REJECTION], ids=str)
def test_at_temperature_0_both_rules_walk_the_most_probable_ids(params, tree):
    best = decode_plainly(WIDE_P, lambda _: [0.0] * 4, 10)

    verdict = judged(tree, Noise(0), WIDE_P, params)

    assert (*(tree.ids[node] for node in verdict.accepted), verdict.token) == best[
        : len(verdict.accepted) + 1
    ]
    assert _deepest_match(tree, best) == len(verdict.accepted)


@settings(deadline=None)
@given(tree=trees(vocabulary=4), seed=st.integers(0, 1000))
@pytest.mark.parametrize("params", [COUPLED, GREEDY], ids=str)
def test_a_margin_is_the_lead_over_the_runner_up(params, tree, seed):
    noise = Noise(seed)

    verdict = judged(tree, noise, WIDE_P, params)

    leads = []
    for depth, node in enumerate((ROOT, *verdict.accepted)):
        scores = torch.tensor([math.log(chance) for chance in WIDE_P(tree.path_ids(node))])
        if params is COUPLED:
            scores = scores + noise.gumbel(7 + depth, None, vocabulary=4)
        best, second = scores.double().topk(2).values.tolist()
        leads.append(best - second)
    assert list(verdict.margins) == pytest.approx(leads, abs=1e-5)


def test_no_margin_is_given_where_no_score_decides():
    for _, chain in sampled(Q, [1, 1]):
        verdict = judged(chain, Noise(5), P, REJECTION)

        assert verdict.margins == (None,) * (len(verdict.accepted) + 1)
