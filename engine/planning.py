"""How far to draft: costs and outcomes in, a budget and a sentence out; knows no families."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Budget:
    """How far a draft may go: depth of its longest path, and nodes in all; 0 means no draft."""

    depth: int
    nodes: int


def fixed_budget(*, draft_length: int, tree_nodes: int, remaining_tokens: int) -> Budget:
    """The length the user chose, and no further than the reply can go.

    A pass commits its accepted path and one token more, so the path stays one short of what
    remains.
    """
    depth = max(0, min(draft_length, remaining_tokens - 1))
    return Budget(depth=depth, nodes=max(depth, tree_nodes) if depth else 0)
