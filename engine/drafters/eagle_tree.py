"""Trees that an EAGLE head grows level by level: of a fixed shape, or by confidence (EAGLE-2)."""

# torch's own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf
from typing import TYPE_CHECKING, Protocol

import torch

from engine.draft import ROOT, Draft
from engine.drafters.tree_shape import RANKS, Shape, best_shape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from engine.drafters.eagle_head import EagleHead
    from engine.drafters.eagle_memory import EagleMemory
    from engine.params import SamplingParams
    from engine.sampling import Noise

DEEPEST = 16
"""No path of a tree is worth going further."""

_WIDEST = 10
"""Li et al. grow so many at a time in trees of 60 nodes."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A proposed token. parent: its place among the candidates, or ROOT. rank: among its siblings.

    confidence: the logarithm of the product along its path. q: by the head alone, at its place.
    """

    token: int
    parent: int
    rank: int
    depth: int
    confidence: float
    q: float


class Plan(Protocol):
    """Which candidates a tree takes in. Places are among all candidates so far."""

    depth: int

    def width(self, place: int) -> int:
        """How many children to look at under a candidate, or under ROOT."""
        ...

    def admit(self, place: int, candidate: Candidate) -> None:
        """Hear of a new candidate."""
        ...

    def grown(self, level: Sequence[tuple[int, Candidate]]) -> Sequence[int]:
        """Those of a level that shall have children."""
        ...

    def kept(self, candidates: Sequence[Candidate]) -> Sequence[int]:
        """Those that are proposed, in order."""
        ...


class FixedPlan:
    """The same shape whatever the tokens are, as EAGLE's first version has it."""

    def __init__(self, nodes: int, depth: int) -> None:
        self._shape: Shape = best_shape(nodes, [RANKS] * min(depth, DEEPEST))
        self.depth = max(self._shape.depths)
        self._place: dict[int, int] = {ROOT: ROOT}  # candidate: its node of the shape
        children: dict[int, int] = {}
        self._node: dict[tuple[int, int], int] = {}
        for node, (parent, rank) in enumerate(
            zip(self._shape.parents, self._shape.ranks, strict=True)
        ):
            self._node[parent, rank] = node
            children[parent] = children.get(parent, 0) + 1
        self._children = children

    def width(self, place: int) -> int:
        """As many as the shape has there."""
        return self._children.get(self._place[place], 0)

    def admit(self, place: int, candidate: Candidate) -> None:
        """Give it its node of the shape."""
        self._place[place] = self._node[self._place[candidate.parent], candidate.rank]

    def grown(self, level: Sequence[tuple[int, Candidate]]) -> Sequence[int]:
        """All with children in the shape."""
        return [place for place, _ in level if self.width(place)]

    def kept(self, candidates: Sequence[Candidate]) -> Sequence[int]:
        """All of them."""
        return range(len(candidates))


class ConfidentPlan:
    """Grows what is most likely to be kept, and proposes the best of all that was looked at.

    Li et al., arXiv 2406.16858. Half as many nodes grow at a time as there will be: in trees of 15,
    3, 6, 8 and 10 at a time brought 2.37, 2.54, 2.55 and 2.50 tokens a pass.
    """

    def __init__(self, nodes: int, depth: int) -> None:
        self.depth = min(depth, DEEPEST, nodes)
        self._nodes = nodes
        self._width = min(_WIDEST, (nodes + 1) // 2)

    def width(self, place: int) -> int:
        """As many as may grow in all."""
        del place
        return self._width

    def admit(self, place: int, candidate: Candidate) -> None:
        """Nothing to note."""

    def grown(self, level: Sequence[tuple[int, Candidate]]) -> Sequence[int]:
        """The most confident ones."""
        best = sorted(level, key=lambda entry: -entry[1].confidence)
        return [place for place, _ in best[: self._width]]

    def kept(self, candidates: Sequence[Candidate]) -> Sequence[int]:
        """The most confident of all; parents come with their children, being no less so."""
        order = sorted(range(len(candidates)), key=lambda place: -candidates[place].confidence)
        return sorted(order[: self._nodes])


@dataclass(frozen=True)
class Growth:
    """What a tree is grown from: the rows up to the root's predecessor, and the rule in force."""

    head: EagleHead
    memory: EagleMemory
    ids: Sequence[int]
    end_ids: frozenset[int]
    params: SamplingParams
    noise: Noise


def grow(growth: Growth, guess: Tensor, plan: Plan, name: str) -> Draft:
    """A tree under the root; guess: the root's guessed feature, (1, width).

    A confidence is the softmax of what the rule takes the best by: of log q, and under COUPLED with
    the noise that the target adds to log p too.
    """
    candidates, frontier = list[Candidate](), [ROOT]
    rows = _Rows(len(growth.ids) - 1)
    for depth in range(1, plan.depth + 1):
        level = list[tuple[int, Candidate]]()
        for place, children in zip(
            frontier, _children(growth, guess, candidates, frontier, depth, plan), strict=True
        ):
            for rank, (token, confidence, q) in enumerate(children):
                above = 0.0 if place == ROOT else candidates[place].confidence
                child = Candidate(token, place, rank, depth, above + confidence, q)
                plan.admit(len(candidates), child)
                level.append((len(candidates), child))
                candidates.append(child)
        going_on = [(at, child) for at, child in level if child.token not in growth.end_ids]
        parents, frontier = frontier, list(plan.grown(going_on))
        if depth == plan.depth or not frontier:
            break
        sources = [parents.index(candidates[place].parent) for place in frontier]
        guess = _step(growth, guess[sources], candidates, frontier, rows)
    return _draft(candidates, plan.kept(candidates), name)


class _Rows:
    """The rows that a growing tree has put behind the committed ones."""

    def __init__(self, committed: int) -> None:
        self.committed = committed
        self.count = 0
        self._paths: dict[int, tuple[int, ...]] = {ROOT: ()}

    def add(self, places: Sequence[int], candidates: Sequence[Candidate]) -> Tensor:
        """Place new rows; what each sees: (rows, all rows) bool."""
        whole = self.committed + self.count + len(places)
        sees = torch.zeros(len(places), whole, dtype=torch.bool)
        sees[:, : self.committed] = True
        for row, place in enumerate(places):
            slot = self.committed + self.count + row
            path = (*self._paths[candidates[place].parent], slot)
            self._paths[place] = path
            sees[row, list(path)] = True
        self.count += len(places)
        return sees


def _step(
    growth: Growth,
    features: Tensor,
    candidates: Sequence[Candidate],
    places: Sequence[int],
    rows: _Rows,
) -> Tensor:
    """The guessed features of candidates from those of their parents."""
    first = rows.committed + rows.count
    position = len(growth.ids) - 2 + candidates[places[0]].depth
    sees = rows.add(places, candidates)
    tokens = [candidates[place].token for place in places]
    positions = [position] * len(places)
    return growth.head.step(features, tokens, positions, growth.memory.cache, first, sees)


def _children(
    growth: Growth,
    guess: Tensor,
    candidates: Sequence[Candidate],
    frontier: Sequence[int],
    depth: int,
    plan: Plan,
) -> list[list[tuple[int, float, float]]]:
    """Under each place the best tokens, with their confidence and probability."""
    vocabulary = growth.head.vocabulary
    prefixes = [[*growth.ids, *_path_ids(candidates, place)] for place in frontier]
    log_q = vocabulary.log_q(growth.head.logits(guess), prefixes, growth.params)
    position = len(growth.ids) + depth - 1
    found: list[list[tuple[int, float, float]]] = []
    for row, place in zip(log_q, frontier, strict=True):
        scores = vocabulary.scores(row, position, growth.params, growth.noise).log_softmax(-1)
        best = scores.topk(min(plan.width(place), len(scores)))
        chances = row[best.indices].tolist()
        found.append(
            [
                (token, confidence, exp(chance))
                for token, confidence, chance in zip(
                    vocabulary.tokens(best.indices), best.values.tolist(), chances, strict=True
                )
                if chance > -inf
            ]
        )
    return found


def _path_ids(candidates: Sequence[Candidate], place: int) -> list[int]:
    ids: list[int] = []
    while place != ROOT:
        ids.append(candidates[place].token)
        place = candidates[place].parent
    return ids[::-1]


def _draft(candidates: Sequence[Candidate], kept: Sequence[int], name: str) -> Draft:
    place = {ROOT: ROOT} | {old: new for new, old in enumerate(kept)}
    count = len(kept)
    return Draft(
        ids=tuple(candidates[old].token for old in kept),
        parents=tuple(place[candidates[old].parent] for old in kept),
        drafters=(name,) * count,
        q_rows=(None,) * count,
        q=tuple(candidates[old].q for old in kept),
    )
