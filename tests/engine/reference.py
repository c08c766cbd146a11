"""The rules in exact fractions, and how far what they commit lies from the target's own law.

p is the target's law and q the drafter's: functions from the ids so far to a row of probabilities.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

ROOT = -1
NOTHING, ONE = Fraction(0), Fraction(1)

Ids = tuple[int, ...]
Row = tuple[Fraction, ...]
Law = Callable[[Ids], Row]
Joint = Mapping[Ids, Fraction]
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Proposal:
    """A proposed tree. A node's q row is the one it was drawn from, None if it was not drawn."""

    ids: Ids
    parents: Ids
    q_rows: tuple[Row | None, ...]

    def children(self, node: int) -> Ids:
        return tuple(index for index, parent in enumerate(self.parents) if parent == node)

    def path_ids(self, node: int) -> Ids:
        return () if node == ROOT else (*self.path_ids(self.parents[node]), self.ids[node])


Rule = Callable[[Proposal, Law], Joint]
Proposals = Iterable[tuple[Fraction, Proposal]]


# Laws and distances.


def toy_law(seed: int, vocabulary: int, *, impossible: Sequence[int] = ()) -> Law:
    """Small whole weights that change with every earlier id; `impossible` ids never come."""

    def law(context: Ids) -> Row:
        weights = [
            0 if token in impossible else 1 + _scramble(seed, *context, token) % 8
            for token in range(vocabulary)
        ]
        return tuple(Fraction(weight, sum(weights)) for weight in weights)

    return law


def truncated(law: Law, keep: int) -> Law:
    """The law with only the `keep` most probable ids of each row, equal ones from the lowest id."""

    def cut(context: Ids) -> Row:
        row = law(context)
        kept = sorted(range(len(row)), key=lambda token: (-row[token], token))[:keep]
        return normalised([row[token] if token in kept else NOTHING for token in range(len(row))])

    return cut


def normalised(weights: Sequence[Fraction]) -> Row:
    total = sum(weights)
    return tuple(weight / total for weight in weights)


def joint(law: Law, length: int, context: Ids = ()) -> Joint:
    """The law of the next `length` ids."""
    result: dict[Ids, Fraction] = {(): ONE}
    for _ in range(length):
        result = {
            (*ids, token): weight * chance
            for ids, weight in result.items()
            for token, chance in enumerate(law((*context, *ids)))
            if chance
        }
    return result


def total_variation(
    first: Mapping[Key, Fraction | float], second: Mapping[Key, Fraction | float]
) -> Fraction | float:
    gaps = [abs(first.get(key, 0) - second.get(key, 0)) for key in {*first, *second}]
    return sum(gaps, NOTHING) / 2


def completed(
    committed: Mapping[Ids, Fraction | float], p: Law, length: int
) -> dict[Ids, float | Fraction]:
    """The law of the first `length` ids when the shorter outcomes go on by plain sampling."""
    result: dict[Ids, float | Fraction] = defaultdict(Fraction)
    for ids, weight in committed.items():
        for rest, chance in joint(p, length - len(ids), ids).items():
            result[(*ids, *rest)] += weight * chance
    return result


def committed_law(proposals: Proposals, rule: Rule, p: Law) -> Joint:
    """What a round commits, over all drafts: ids with their probabilities."""
    result: dict[Ids, Fraction] = defaultdict(Fraction)
    for weight, proposal in proposals:
        for ids, chance in rule(proposal, p).items():
            result[ids] += weight * chance
    return result


def expected_length(committed: Mapping[Ids, Fraction | float]) -> Fraction | float:
    return sum((len(ids) * weight for ids, weight in committed.items()), NOTHING)


# Drafters: every draft with its probability.


def fixed(ids: Sequence[int], parents: Sequence[int] | None = None) -> Proposals:
    """One deterministic tree; a chain by default."""
    chain = range(ROOT, len(ids) - 1)
    return [(ONE, Proposal(tuple(ids), tuple(parents or chain), (None,) * len(ids)))]


def sampled(q: Law, widths: Sequence[int]) -> Iterator[tuple[Fraction, Proposal]]:
    """Trees whose nodes at depth d have widths[d] children, drawn without replacement."""
    return _grown(q, tuple(widths), Proposal((), (), ()), (ROOT,))


def _grown(
    q: Law, widths: Ids, tree: Proposal, frontier: Ids
) -> Iterator[tuple[Fraction, Proposal]]:
    if not widths:
        yield ONE, tree
        return
    families = [list(_families(q(tree.path_ids(node)), widths[0])) for node in frontier]
    for choice in itertools.product(*families):
        weight, grown = ONE, tree
        for node, (chance, members) in zip(frontier, choice, strict=True):
            weight *= chance
            for token, row in members:
                grown = Proposal((*grown.ids, token), (*grown.parents, node), (*grown.q_rows, row))
        leaves = tuple(range(len(tree.ids), len(grown.ids)))
        for chance, whole in _grown(q, widths[1:], grown, leaves):
            yield weight * chance, whole


def _families(row: Row, width: int) -> Iterator[tuple[Fraction, tuple[tuple[int, Row], ...]]]:
    if width == 0 or not any(row):
        yield ONE, ()
        return
    for token, chance in enumerate(row):
        if chance:
            rest = [NOTHING if other == token else weight for other, weight in enumerate(row)]
            left = normalised(rest) if any(rest) else tuple(rest)
            for later_chance, later in _families(left, width - 1):
                yield chance * later_chance, ((token, row), *later)


# Rules: what is committed given a draft.


def sequential(proposal: Proposal, p: Law) -> Joint:
    """Siblings one at a time; on a sampled chain this is the token-level rule."""
    return _judged_below(proposal, p, ROOT, p_residual=_residual)


def _judged_below(proposal: Proposal, p: Law, node: int, p_residual: Callable[..., Row]) -> Joint:
    result: dict[Ids, Fraction] = defaultdict(Fraction)
    prefix = proposal.path_ids(node)
    row, reached = p(prefix), ONE
    for child in proposal.children(node):
        chance = acceptance(row, proposal.q_rows[child], proposal.ids[child])
        for ids, weight in _judged_below(proposal, p, child, p_residual).items():
            result[ids] += reached * chance * weight
        reached *= 1 - chance
        if not reached:
            return result
        row = p_residual(row, proposal.q_rows[child], proposal.ids[child])
    for token, weight in enumerate(row):
        result[(*prefix, token)] += reached * weight
    return result


def acceptance(row: Row, q_row: Row | None, token: int) -> Fraction:
    """The chance of keeping a proposal; one that was not drawn counts as certain."""
    return row[token] if q_row is None else min(ONE, row[token] / q_row[token])


def _residual(row: Row, q_row: Row | None, token: int) -> Row:
    return normalised(excess(row, q_row or one_hot(token, len(row))))


def excess(row: Row, q_row: Row, ratio: Fraction = ONE) -> list[Fraction]:
    """What p has over q, id by id."""
    return [max(ratio * ours - theirs, NOTHING) for ours, theirs in zip(row, q_row, strict=True)]


def one_hot(token: int, vocabulary: int) -> Row:
    return tuple(ONE if other == token else NOTHING for other in range(vocabulary))


def block(proposal: Proposal, p: Law) -> Joint:
    """Block verification of a chain, arXiv 2403.10444: the deepest place that passes its draw."""
    thresholds, residuals = block_quantities(proposal, p)
    depth = len(proposal.ids)
    result: dict[Ids, Fraction] = defaultdict(Fraction)
    missed = ONE  # no deeper place passed
    for kept in range(depth, -1, -1):
        passes = missed * (thresholds[kept - 1] if kept else ONE)
        missed -= passes
        if passes:
            row = p(proposal.ids) if kept == depth else normalised(residuals[kept])
            for token, weight in enumerate(row):
                result[(*proposal.ids[:kept], token)] += passes * weight
    return result


def block_quantities(proposal: Proposal, p: Law) -> tuple[list[Fraction], list[list[Fraction]]]:
    """h_1..h_n and the residual's weights at each place."""
    ratio, residuals, thresholds = ONE, [], []
    for place, token in enumerate(proposal.ids):
        row = p(proposal.ids[:place])
        q_row = proposal.q_rows[place] or one_hot(token, len(row))
        residuals.append(excess(row, q_row, ratio))
        if place:
            mass = sum(residuals[-1], NOTHING)
            below = mass + 1 - ratio
            thresholds.append(mass / below if below else ONE)
        ratio = min(ONE, ratio * row[token] / q_row[token])
    return ([*thresholds, ratio] if proposal.ids else []), residuals


def decode_plainly(
    scores: Callable[[Ids], Sequence[Fraction | float]],
    noise: Callable[[int], Sequence[float]],
    length: int,
) -> Ids:
    """Coupled decoding without a drafter: at each place the id of the highest score plus noise.

    noise: from a place, 0 for the first id, to its noise. Equal ids: the lowest.
    """
    ids: Ids = ()
    for place in range(length):
        sums = [score + value for score, value in zip(scores(ids), noise(place), strict=True)]
        ids = (*ids, sums.index(max(sums)))
    return ids


def _scramble(*values: int) -> int:
    mixed = 0x9E3779B9
    for value in values:
        mixed = (mixed ^ (value + 0x7F4A7C15)) * 0x85EBCA6B % 2**32
        mixed ^= mixed >> 13
    return mixed
