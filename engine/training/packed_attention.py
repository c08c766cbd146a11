"""Attention over conversations side by side, and over rows that chains draft behind them.

A chain's row sees the target's rows up to where the chain begins, and the chain's own rows: what a
drafter has in its cache there, since rows of accepted tokens are made anew from true states.
"""

# torch's own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor


class PackedAttention:
    """What chains see. keys, values: of all rows, (kv heads, rows, width).

    examples: the rows of each conversation.
    """

    def __init__(self, keys: Tensor, values: Tensor, examples: Sequence[range]) -> None:
        self._examples = examples
        self._keys = [keys[:, rows.start : rows.stop] for rows in examples]
        self._values = [values[:, rows.start : rows.stop] for rows in examples]
        self._drafted: list[tuple[list[Tensor], list[Tensor]]] = []

    def draft(self, keys: Tensor, values: Tensor, chains: Sequence[range]) -> None:
        """Put one more row behind each chain, (kv heads, chains, width)."""
        self._drafted.append((_parts(keys, chains), _parts(values, chains)))

    def mix(self, queries: Tensor, chains: Sequence[range]) -> Tensor:
        """What a row a chain takes of what it sees: (heads, chains, width).

        chains: per conversation the rows where they begin; of the rows that were put behind them
        before, the last ones may be missing here.
        """
        mixed = [
            self._mix_one(at, part, chains[at])
            for at, part in enumerate(_parts(queries, chains))
            if len(chains[at])
        ]
        return torch.cat(mixed, dim=1)

    def _mix_one(self, at: int, queries: Tensor, chains: range) -> Tensor:
        keys, values, rows = self._keys[at], self._values[at], self._examples[at]
        lanes, count, width = len(keys), len(chains), queries.shape[-1]
        grouped = (queries * width**-0.5).view(lanes, -1, count, width)
        seen = chains.stop - rows.start
        scores = grouped.flatten(1, 2) @ keys[:, :seen].transpose(1, 2)
        scores = scores.view(*grouped.shape[:3], seen) + _hidden_ahead(
            count, seen, chains.start - rows.start, scores
        )
        drafted = [
            (keys[at][:, None, :count], values[at][:, None, :count])
            for keys, values in self._drafted
        ]
        own = [(grouped * keys).sum(dim=-1, keepdim=True) for keys, _ in drafted]
        weights = torch.cat([scores, *own], dim=-1).softmax(dim=-1)
        mixed = weights[..., :seen].flatten(1, 2) @ values[:, :seen]
        mixed = mixed.view(grouped.shape)
        for place, (_, own_values) in enumerate(drafted):
            mixed = mixed + weights[..., seen + place, None] * own_values
        return mixed.flatten(0, 1)


def _parts(rows: Tensor, chains: Sequence[range]) -> list[Tensor]:
    """(heads, all chains, width) by conversation."""
    ends = [0]
    for span in chains:
        ends.append(ends[-1] + len(span))
    return [rows[:, first:last] for first, last in pairwise(ends)]


def _hidden_ahead(count: int, seen: int, first: int, like: Tensor) -> Tensor:
    """(count, seen): minus infinity where a chain that begins at first + row does not look."""
    blocked = torch.full((count, seen), -torch.inf, dtype=like.dtype, device=like.device)
    return blocked.triu_(first + 1)
