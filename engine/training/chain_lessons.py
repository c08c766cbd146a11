"""What the chains of a batch are taught, and how they are judged beside its texts."""

# torch's own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from engine.training.batches import Batch
    from engine.training.drafted_ids import DraftedIds
    from engine.training.teacher import Taught


class ChainLessons:
    """A batch's chains beside what its texts say.

    A chain counts as far as all its tokens are drafted ids: what comes behind another one is never
    accepted.
    """

    def __init__(self, batch: Batch, taught: Taught) -> None:
        self._batch = batch
        self._taught = taught

    def loss(self, depth: int, states: Tensor) -> Tensor:
        """The mean cross-entropy of chains at a depth; states: what the output takes of them."""
        rows = self._batch.index(self._batch.chains(depth))
        counts = torch.ones(len(rows), device=states.device)
        for ahead in range(1, depth + 2):
            counts *= self._taught.places[rows + ahead] >= 0
        shares = counts / counts.sum().clamp(min=1.0)
        return self._taught.cross_entropy(states, rows + depth + 1, shares)


def ranks(
    batch: Batch, drafted: DraftedIds, states_by_depth: Sequence[Tensor], count: int
) -> list[Tensor]:
    """Per example (chains, depths) int64: where among the `count` best the text's token stands.

    `count` where it isn't among them, or where the text has ended.
    """
    spans = batch.chains(0)
    found = [torch.full((len(span), len(states_by_depth)), count) for span in spans]
    places = drafted.places[batch.next_ids]
    for depth, states in enumerate(states_by_depth):
        chains = batch.chains(depth)
        rows = batch.index(chains)
        right = drafted.best(states, count) == places[rows + depth + 1, None]
        rank = torch.where(right.any(dim=-1), right.int().argmax(dim=-1), count).cpu()
        for held, part in zip(found, rank.split([len(span) for span in chains]), strict=True):
            held[: len(part), depth] = part
    return found
