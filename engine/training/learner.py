"""What the loop asks of whatever learns to draft."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import torch
    from torch import Tensor

    from engine.training.batches import Batch
    from engine.training.drafted_ids import DraftedIds
    from engine.training.teacher import Taught
    from engine.training.weights import Weights


@dataclass(frozen=True, slots=True)
class Export:
    """What goes into a drafter's folder, beside its card."""

    config: dict[str, Any]
    tensors: dict[str, Tensor]


class Learner(Protocol):
    """A drafter in the making.

    taps: the target's layers whose states a batch must hold. drafted: the ids that it drafts.
    """

    taps: tuple[int, ...]
    drafted: DraftedIds
    weights: Weights

    def loss(
        self, batch: Batch, taught: Taught, noise: torch.Generator, depths: int
    ) -> tuple[Tensor, Mapping[str, float]]:
        """What is to become less, and the parts that it is the sum of, by name.

        taught: what the batch's texts are to be said with. depths: how many tokens of a chain
        count.
        """
        ...

    def hits(self, batch: Batch) -> list[Tensor]:
        """Per example (places of the reply, depths) bool: whether a greedy chain is right there."""
        ...

    def export(self, held_out: Sequence[Batch], drawn: Sequence[Batch]) -> Export:
        """As the family of drafters reads it.

        held_out, drawn: greedy and drawn texts, to measure on what the drafter is told.
        """
        ...
