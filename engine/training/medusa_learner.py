"""Learns Medusa heads: each guesses one token further ahead from the target's final state alone.

Cai et al., arXiv 2401.10774, with the target as it is (Medusa-1); what is said is compared with the
target's distribution, and all heads share the target's output.
"""

# torch's own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from engine.drafters.medusa_heads import MedusaHeads, medusa_of
from engine.models.causal_lm import FINAL
from engine.training.chain_lessons import ChainLessons, ranks
from engine.training.learner import Export
from engine.training.sharpness import said_of_sharpness
from engine.training.starts import linear_fit
from engine.training.weights import Weights, sizes_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from engine.training.batches import Batch
    from engine.training.starts import Beginning
    from engine.training.teacher import Taught

_RANKS = 10


class MedusaLearner:
    """As many heads as the recipe has depths, of as many residual blocks as it says."""

    taps: tuple[int, ...] = (FINAL,)

    def __init__(self, beginning: Beginning) -> None:
        self._with = beginning
        self.drafted = beginning.drafted
        recipe, sample = beginning.recipe, beginning.sample
        depths, blocks = recipe.depths, recipe.blocks
        sizes = sizes_of(sample.hidden[FINAL])
        names = [f"{head}.{block}.linear" for head in range(depths) for block in range(blocks)]
        hidden = len(sizes)
        start = {f"{name}.weight": torch.zeros(hidden, hidden) for name in names}
        start |= {f"{name}.bias": torch.zeros(hidden) for name in names}
        scales = {f"{name}.weight": 1 / sizes[None] for name in names}
        for depth in range(depths):
            name = f"{depth}.{blocks}.weight"
            start[name] = _linear_guess(sample, sizes, depth)
            scales[name] = sizes[:, None] / sizes[None]
        self.weights = Weights.scaled(start, scales, beginning.device)
        self._config = beginning.config() | {
            "medusa_num_heads": depths,
            "medusa_num_layers": blocks,
        }

    def heads(self) -> MedusaHeads:
        """The heads as their drafter would have them, but that gradients flow through."""
        return medusa_of(self._with.fitted(self._config, self.weights.tensors()))

    def loss(
        self, batch: Batch, taught: Taught, noise: torch.Generator, depths: int
    ) -> tuple[Tensor, dict[str, float]]:
        """Per head the cross-entropy."""
        del noise
        lessons = ChainLessons(batch, taught)
        total, parts = torch.zeros((), device=self._with.device), dict[str, float]()
        for depth, states in enumerate(self._ahead(batch, depths)):
            loss = lessons.loss(depth, states)
            parts[f"cross-entropy {depth + 1}"] = float(loss.detach())
            total = total + self._with.recipe.fading**depth * loss
        return total, parts

    def hits(self, batch: Batch) -> list[Tensor]:
        """Per example (places of the reply, heads) bool: whether a head's best token is right."""
        return [each == 0 for each in self._ranks(batch, 1)]

    @torch.no_grad()
    def export(self, held_out: Sequence[Batch], drawn: Sequence[Batch]) -> Export:
        """The folder that the family reads, with what is best measured here.

        How often each rank of each head is right, and how much log q should count.
        """
        found = [each for batch in held_out for each in self._ranks(batch, _RANKS)]
        depths = self._with.recipe.depths
        accuracies = {"rank_accuracies": _accuracies(torch.cat(found))} if found else {}
        ahead = ((batch, self._ahead(batch, depths)) for batch in drawn)
        sharpness = said_of_sharpness(ahead, self.drafted)
        tensors = self._with.stored(self.weights.tensors())
        return Export(self._config | accuracies | sharpness, tensors)

    @torch.no_grad()
    def _ranks(self, batch: Batch, count: int) -> list[Tensor]:
        count = min(count, len(self.drafted.ids))
        ahead = self._ahead(batch, self._with.recipe.depths)
        return ranks(batch, self.drafted, ahead, count)

    def _ahead(self, batch: Batch, depths: int) -> list[Tensor]:
        heads, states = self.heads(), batch.hidden[FINAL]
        return [
            heads.ahead(states[batch.index(batch.chains(depth))], depth) for depth in range(depths)
        ]


def _linear_guess(sample: Batch, sizes: Tensor, depth: int) -> Tensor:
    """From the target's state to the one that the head is about, elements of size 1."""
    rows = sample.index(sample.chains(depth))
    states = sample.hidden[FINAL].float() / sizes
    return linear_fit(states[rows], states[rows + depth + 1], centred=False)[0]


def _accuracies(found: Tensor) -> list[list[float]]:
    """How often each rank of a head is right where those of the heads before it were in reach."""
    shares, reached = list[list[float]](), torch.ones(len(found), dtype=torch.bool)
    for rank in found.unbind(dim=1):
        places = int(reached.sum())
        counts = torch.bincount(rank[reached], minlength=_RANKS + 1)[:_RANKS]
        shares.append([round(float(count) / max(1, places), 5) for count in counts])
        reached = reached & (rank < _RANKS)
    return shares
