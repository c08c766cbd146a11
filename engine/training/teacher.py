"""What the target says on texts, among the drafted ids: asked once a text, then known.

Only the likeliest ids of a place are kept. A batch is taught over those that are likely anywhere in
it and some others drawn at random, which stand for all the rest: the target's head over every
drafted id would cost more than the whole drafter.
"""

# torch's own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from engine.models.causal_lm import FINAL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from engine.training.batches import Batch
    from engine.training.drafted_ids import DraftedIds

LIKELY = 16
"""Of 8,192 ids these hold 0.92 to 0.94 of a small model's probability."""

DRAWN = 512


@dataclass(frozen=True, slots=True, eq=False)
class Said:
    """Behind rows of replies: likely ids and their probabilities among each other, (rows, likely).

    likely: as places among the drafted ids. temperature: what the probabilities are at.
    """

    likely: Tensor
    probabilities: Tensor
    temperature: float


class Teacher:
    """Tells what the target says behind the replies' rows of a batch.

    temperature: at which it says that, and at which what a drafter says is compared with it. Below
    1 a drafter learns more of what comes first and less of what comes seldom, and what comes first
    is what drafts are judged by.
    """

    def __init__(self, drafted: DraftedIds, temperature: float) -> None:
        self._drafted = drafted
        self._temperature = temperature
        self._known: dict[int, Said] = {}

    def said(self, places: Sequence[int], batch: Batch) -> Said:
        """All rows of all replies; places: which texts these are."""
        every = [
            self._on(place, batch.hidden[FINAL][reply.start : reply.stop])
            for place, reply in zip(places, batch.replies, strict=True)
        ]
        return Said(
            torch.cat([each.likely for each in every]).long(),
            torch.cat([each.probabilities for each in every]),
            self._temperature,
        )

    def _on(self, place: int, states: Tensor) -> Said:
        if place not in self._known:
            self._known[place] = self._asked(states)
        return self._known[place]

    @torch.no_grad()
    def _asked(self, states: Tensor) -> Said:
        weight = self._drafted.weight
        logits = functional.linear(states.to(weight.dtype), weight).float()
        best = logits.topk(min(LIKELY, len(weight)))
        probabilities = (best.values / self._temperature).softmax(dim=-1)
        return Said(best.indices.int(), probabilities, self._temperature)


@dataclass(frozen=True, eq=False)
class Taught:
    """What is to be said behind the replies' rows of a batch, over the ids that matter there.

    weight: the head for these ids, (ids, hidden size). stands_for: (ids,) the logarithm of how many
    ids each counts for. said: its likely ids are places in `weight`.
    places: per row of the batch, where the id behind it stands among the drafted ones, or -1.
    """

    weight: Tensor
    stands_for: Tensor
    said: Said
    places: Tensor
    _index: Tensor

    @classmethod
    def of(cls, batch: Batch, said: Said, drafted: DraftedIds, chance: torch.Generator) -> Taught:
        """chance: draws the ids that stand for the rest."""
        likely, within = said.likely.unique(return_inverse=True)
        rest = torch.ones(len(drafted.ids), dtype=torch.bool, device=likely.device)
        rest[likely] = False
        others = rest.nonzero()[:, 0]
        chosen = torch.randperm(len(others), generator=chance)[:DRAWN]
        drawn = others[chosen.to(others.device)]
        stands_for = torch.zeros(len(likely) + len(drawn), device=likely.device)
        stands_for[len(likely) :] = math.log(len(others) / max(1, len(drawn)) or 1.0)
        rows = batch.index(batch.replies)
        index = torch.full((len(batch),), -1, device=rows.device)
        index[rows] = torch.arange(len(rows), device=rows.device)
        return cls(
            drafted.weight[torch.cat([likely, drawn])],
            stands_for,
            Said(within, said.probabilities, said.temperature),
            drafted.places[batch.next_ids],
            index,
        )

    def cross_entropy(self, states: Tensor, rows: Tensor, shares: Tensor) -> Tensor:
        """The sum of the shares of the cross-entropy between what is to be said and what is.

        states: what the head takes, (n, hidden size). rows: those of the batch's replies, (n,),
        behind which the target says what these states are to say.
        """
        lessons = self._index[rows]
        states = (states / self.said.temperature).to(self.weight.dtype)
        logits = functional.linear(states, self.weight).float() + self.stands_for
        log_q = logits.log_softmax(dim=-1).gather(1, self.said.likely[lessons])
        return -(self.said.probabilities[lessons] * log_q).sum(dim=-1) @ shares
