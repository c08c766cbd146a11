"""The rules once more, as plain loops over uniforms, and their well-known wrong forms.

The right ones show that the measuring is sound, the wrong ones that it can fail.
"""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from typing import TYPE_CHECKING

from tests.engine.reference import (
    ONE,
    ROOT,
    Proposal,
    acceptance,
    block_quantities,
    excess,
    fixed,
    normalised,
    one_hot,
    sampled,
    truncated,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.engine.reference import Ids, Joint, Law, Proposals, Row, Rule
    from tests.engine.uniforms import ScriptedNoise


def play_sequential(proposal: Proposal, noise: ScriptedNoise, p: Law) -> Ids:
    node, row = ROOT, p(())
    waiting = list(proposal.children(ROOT))
    while waiting:
        child = waiting.pop(0)
        token, q_row = proposal.ids[child], proposal.q_rows[child]
        if noise.uniform() < acceptance(row, q_row, token):
            node, waiting = child, list(proposal.children(child))
            row = p(proposal.path_ids(child))
        else:
            q_row = q_row or one_hot(token, len(row))
            row = normalised(excess(row, q_row))
    return (*proposal.path_ids(node), _drawn(row, noise))


def play_block(proposal: Proposal, noise: ScriptedNoise, p: Law) -> Ids:
    thresholds, residuals = block_quantities(proposal, p)
    passed = [noise.uniform() < threshold for threshold in thresholds]
    kept = max((place for place, passes in enumerate(passed, start=1) if passes), default=0)
    return _block_outcome(proposal, noise, p, kept, residuals)


def play_block_until_the_first_miss(proposal: Proposal, noise: ScriptedNoise, p: Law) -> Ids:
    """Wrong: a place that fails hides the deeper ones."""
    thresholds, residuals = block_quantities(proposal, p)
    passed = [noise.uniform() < threshold for threshold in thresholds]
    kept = (*passed, False).index(False)
    return _block_outcome(proposal, noise, p, kept, residuals)


def _block_outcome(
    proposal: Proposal,
    noise: ScriptedNoise,
    p: Law,
    kept: int,
    residuals: Sequence[Sequence[Fraction]],
) -> Ids:
    row = p(proposal.ids) if kept == len(proposal.ids) else normalised(residuals[kept])
    return (*proposal.ids[:kept], _drawn(row, noise))


def _drawn(row: Row, noise: ScriptedNoise) -> int:
    left = noise.uniform()
    for token, chance in enumerate(row):
        left -= float(chance)
        if left < 0:
            return token
    return max(token for token, chance in enumerate(row) if chance)


# Wrong, and found in the wild (research/engines.md, 1.1).


def argmax_chain_with_made_up_q(q: Law, length: int) -> Proposals:
    """A deterministic draft that passes its softmax off as the law it was drawn from."""
    ids: Ids = ()
    rows: list[Row] = []
    for _ in range(length):
        rows.append(q(ids))
        ids = (*ids, max(range(len(rows[-1])), key=rows[-1].__getitem__))
    [(_, chain)] = fixed(ids)
    return [(ONE, Proposal(ids, chain.parents, tuple(rows)))]


def chains_cut_at_doubtful_draws(
    q: Law, length: int, least: Fraction
) -> Iterator[tuple[Fraction, Proposal]]:
    """A drawn token is dropped, and the rest with it, when its own probability is low."""
    for weight, chain in sampled(q, [1] * length):
        own = [row[token] for token, row in zip(chain.ids, chain.q_rows, strict=True) if row]
        kept = next((place for place, chance in enumerate(own) if chance < least), length)
        yield weight, Proposal(chain.ids[:kept], chain.parents[:kept], chain.q_rows[:kept])


def siblings_with_the_first_row(q: Law, width: int) -> Iterator[tuple[Fraction, Proposal]]:
    """Drawn without replacement, but every sibling keeps the row from before any draw."""
    for weight, tree in sampled(q, [width]):
        yield weight, Proposal(tree.ids, tree.parents, (q(()),) * len(tree.ids))


def one_target_draw_per_path(proposal: Proposal, p: Law) -> Joint:
    """Each leaf's path is compared with target draws of its own, and the longest match wins."""
    leaves = [node for node in range(len(proposal.ids)) if not proposal.children(node)]
    outcomes: dict[Ids, Fraction] = {(): ONE}  # the best so far; empty before the first path
    for leaf in leaves:
        path = _matched(proposal.path_ids(leaf), p)
        better: dict[Ids, Fraction] = defaultdict(Fraction)
        for best, weight in outcomes.items():
            for ids, chance in path.items():
                better[ids if len(ids) > len(best) else best] += weight * chance
        outcomes = better
    return outcomes


def _matched(path: Ids, p: Law) -> Joint:
    result: dict[Ids, Fraction] = {}
    reached = ONE
    for depth in range(len(path) + 1):
        row = p(path[:depth])
        for token, chance in enumerate(row):
            if depth == len(path) or token != path[depth]:
                result[(*path[:depth], token)] = reached * chance
        reached *= row[path[depth]] if depth < len(path) else ONE
    return result


def truncated_in_the_residual_only(keep: int) -> Rule:
    """Acceptance by the whole p, replacement by the truncated one."""

    def rule(proposal: Proposal, p: Law) -> Joint:
        [token], [q_row] = proposal.ids, proposal.q_rows
        kept = acceptance(p(()), q_row, token)
        cut = truncated(p, keep)
        residual = normalised(excess(cut(()), q_row or one_hot(token, len(cut(())))))
        return {
            **{(other,): (1 - kept) * chance for other, chance in enumerate(residual)},
            **{(token, next_): kept * chance for next_, chance in enumerate(cut((token,)))},
        }

    return rule
