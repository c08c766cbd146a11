"""Trees of a fixed shape: which ranks of which depth are worth a node, whatever the tokens are."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from engine.draft import ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.planning import Budget

RANKS = (0.55, 0.14, 0.07, 0.045, 0.03, 0.02, 0.015, 0.012, 0.01, 0.008)
"""How often the target takes what a head ranks first, second, ..., where nobody has measured it."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Nodes, parents before children and better-ranked siblings first.

    parents: as in Draft. ranks: of each node among what the head says at its place, 0 for the best.
    """

    parents: tuple[int, ...]
    ranks: tuple[int, ...]
    depths: tuple[int, ...]


def is_chain(budget: Budget) -> bool:
    """Whether a budget has no room beside its longest path."""
    return budget.nodes <= budget.depth


def best_shape(nodes: int, accuracies: Sequence[Sequence[float]]) -> Shape:
    """The tree of at most `nodes` nodes whose paths are taken most often.

    accuracies: per depth, how often each rank is the right one; a path's share is their product
    (Medusa, arXiv 2401.10774, section 2.3.3).
    """
    parents, ranks, depths = list[int](), list[int](), list[int]()
    # Of a node's siblings only the next best waits, so that the heap stays small.
    waiting: list[tuple[float, int, int, int, float]] = []

    def wait(above: float, depth: int, parent: int, rank: int) -> None:
        if depth <= len(accuracies) and rank < len(accuracies[depth - 1]):
            share = above * accuracies[depth - 1][rank]
            heappush(waiting, (-share, depth, parent, rank, above))

    wait(1.0, 1, ROOT, 0)
    while waiting and len(parents) < nodes:
        share, depth, parent, rank, above = heappop(waiting)
        node = len(parents)
        parents.append(parent)
        ranks.append(rank)
        depths.append(depth)
        wait(above, depth, parent, rank + 1)
        wait(-share, depth + 1, node, 0)
    return Shape(tuple(parents), tuple(ranks), tuple(depths))
