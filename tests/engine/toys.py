"""Toy laws and drafts as verify() takes them."""

from __future__ import annotations

import torch
from hypothesis import strategies as st

from engine.draft import ROOT, Draft
from engine.params import Rule, SamplingParams
from engine.verification import verify
from tests.engine.reference import Proposal, toy_law

REJECTION = SamplingParams(temperature=1.0, rule=Rule.REJECTION)
COUPLED = SamplingParams(temperature=1.0, rule=Rule.COUPLED)
GREEDY = SamplingParams(rule=Rule.COUPLED)
GREEDY_REJECTION = SamplingParams(rule=Rule.REJECTION)

P, Q = toy_law(5, 3), toy_law(7, 3)
WIDE_P, WIDE_Q = toy_law(5, 4), toy_law(6, 4)
TREE = ((0, 1, 1, 2, 0, 3), (-1, -1, 0, 0, 1, -1))


def draft_of(proposal):
    rows = [None if row is None else _doubles(row) for row in proposal.q_rows]
    count = len(proposal.ids)
    return Draft(proposal.ids, proposal.parents, ("toy",) * count, tuple(rows), (None,) * count)


def log_rows(proposal, p):
    """The law's rows at the root and at every node."""
    prefixes = [(), *(proposal.path_ids(node) for node in range(len(proposal.ids)))]
    return torch.stack([_doubles(p(prefix)) for prefix in prefixes]).log()


def judged(proposal, noise, p, params=REJECTION):
    return verify(draft_of(proposal), log_rows(proposal, p), params=params, noise=noise, position=7)


def committed_ids(proposal, noise, p):
    verdict = judged(proposal, noise, p)
    return (*(proposal.ids[node] for node in verdict.accepted), verdict.token)


def _doubles(row):
    return torch.tensor([float(chance) for chance in row], dtype=torch.float64)


@st.composite
def trees(draw, *, vocabulary):
    """Deterministic trees without twin siblings."""
    ids, parents = [], []
    for node in range(draw(st.integers(0, 8))):
        parent = draw(st.integers(ROOT, node - 1))
        siblings = {ids[other] for other in range(node) if parents[other] == parent}
        free = [token for token in range(vocabulary) if token not in siblings]
        if free:
            ids.append(draw(st.sampled_from(free)))
            parents.append(parent)
        else:
            break
    return Proposal(tuple(ids), tuple(parents), (None,) * len(ids))
