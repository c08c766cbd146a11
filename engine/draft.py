"""A draft: a tree of proposed tokens under the root, and the rows and mask of its pass."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Self

import torch
from torch import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = -1
"""The parent of the nodes at depth 1."""


@dataclass(frozen=True)
class Draft:
    """Proposed tokens, parents before children.

    ids: n token ids.
    parents: per node the index of its parent node, or ROOT.
    drafters: per node the name of the family that proposed it.
    q_rows: per node the distribution it was really drawn from, (vocabulary,), given its earlier
    siblings;
        None for a deterministic proposal, which never gets a made-up one.
    q: per node its probability by the drafter, to be shown; None where there is none.
    grades: per node the drafter's own word for how sure it is; nodes of one grade are taken to be
    alike. Empty where there is one only.

    Raises:
        ValueError: fields of different lengths, or a parent that does not precede its child.
    """

    ids: tuple[int, ...] = ()
    parents: tuple[int, ...] = ()
    drafters: tuple[str, ...] = ()
    q_rows: tuple[Tensor | None, ...] = ()
    q: tuple[float | None, ...] = ()
    grades: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        lengths = {
            len(self.ids),
            len(self.parents),
            len(self.drafters),
            len(self.q_rows),
            len(self.q),
            len(self.grades or self.ids),
        }
        if len(lengths) > 1:
            raise ValueError("A draft's fields must have one entry per node.")
        if any(not ROOT <= parent < node for node, parent in enumerate(self.parents)):
            raise ValueError("A draft's parents must precede their children.")

    @classmethod
    def chain(
        cls,
        ids: Sequence[int],
        drafter: str,
        *,
        q_rows: Sequence[Tensor | None] | None = None,
        q: Sequence[float | None] | None = None,
        grade: int | None = None,
    ) -> Self:
        """One path, of one grade: each token under the one before it."""
        count = len(ids)
        return cls(
            ids=tuple(ids),
            parents=tuple(range(ROOT, count - 1)),
            drafters=(drafter,) * count,
            q_rows=tuple(q_rows) if q_rows is not None else (None,) * count,
            q=tuple(q) if q is not None else (None,) * count,
            grades=() if grade is None else (grade,) * count,
        )

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def is_chain(self) -> bool:
        """Whether every node hangs under the one before it."""
        return self.parents == tuple(range(ROOT, len(self) - 1))

    @cached_property
    def depths(self) -> tuple[int, ...]:
        """Per node its distance from the root, 1 or more."""
        depths: list[int] = []
        for parent in self.parents:
            depths.append(1 if parent == ROOT else depths[parent] + 1)
        return tuple(depths)

    @cached_property
    def children(self) -> dict[int, tuple[int, ...]]:
        """The nodes under each node and under ROOT, in the order proposed."""
        found: dict[int, tuple[int, ...]] = {}
        for node, parent in enumerate(self.parents):
            found[parent] = (*found.get(parent, ()), node)
        return found

    @property
    def is_deterministic(self) -> bool:
        """Whether no node was drawn, so that any may be dropped."""
        return all(row is None for row in self.q_rows)

    def first(self, count: int) -> Draft:
        """The first `count` nodes alone."""
        return Draft(
            self.ids[:count],
            self.parents[:count],
            self.drafters[:count],
            self.q_rows[:count],
            self.q[:count],
            self.grades[:count],
        )

    def path(self, node: int) -> tuple[int, ...]:
        """The nodes from depth 1 down to `node`; empty for ROOT."""
        nodes: list[int] = []
        while node != ROOT:
            nodes.append(node)
            node = self.parents[node]
        return tuple(reversed(nodes))

    def path_ids(self, node: int) -> tuple[int, ...]:
        """The token ids from depth 1 down to `node`."""
        return tuple(self.ids[index] for index in self.path(node))

    def first_path(self) -> tuple[int, ...]:
        """The ids of the path that takes each node's first child: what a preview shows."""
        ids: list[int] = []
        node = ROOT
        while node in self.children:
            node = self.children[node][0]
            ids.append(self.ids[node])
        return tuple(ids)


NO_DRAFT = Draft()


@dataclass(frozen=True)
class Passengers:
    """Rows that ride along in a pass without being proposals, as lookahead's window does.

    ids: m token ids. offsets: per row its position after the root, 1 or more.
    sees: (m, m) bool, which passengers each one attends to, itself included; all see the prefix and
    root.
    """

    ids: tuple[int, ...] = ()
    offsets: tuple[int, ...] = ()
    sees: Tensor = field(default_factory=lambda: torch.zeros(0, 0, dtype=torch.bool))

    def __len__(self) -> int:
        return len(self.ids)


NO_PASSENGERS = Passengers()


def row_ids(root: int, draft: Draft, passengers: Passengers) -> tuple[int, ...]:
    """The token ids of a pass, in row order: root, nodes, passengers."""
    return (root, *draft.ids, *passengers.ids)


def row_positions(root_position: int, draft: Draft, passengers: Passengers) -> tuple[int, ...]:
    """The absolute positions of a pass, in row order."""
    return (
        root_position,
        *(root_position + depth for depth in draft.depths),
        *(root_position + offset for offset in passengers.offsets),
    )


def row_mask(draft: Draft, passengers: Passengers) -> Tensor:
    """Which rows of a pass see which: (rows, rows) bool; every row also sees the whole prefix.

    A node sees the root, its ancestors and itself: its row is its parent's with itself added.
    """
    nodes, extra = len(draft), len(passengers)
    mask = torch.zeros(1 + nodes + extra, 1 + nodes + extra, dtype=torch.bool)
    mask[:, 0] = True
    for node, parent in enumerate(draft.parents):
        mask[1 + node] = mask[1 + parent]
        mask[1 + node, 1 + node] = True
    mask[1 + nodes :, 1 + nodes :] = passengers.sees
    return mask


def rows_behind(before: int, mask: Tensor) -> Tensor:
    """`mask` with `before` more rows in front: a causal run that everything after it sees."""
    rows = before + len(mask)
    whole = torch.ones(rows, rows, dtype=torch.bool).tril()
    whole[before:, before:] = mask
    return whole
