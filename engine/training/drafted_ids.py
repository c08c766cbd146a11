"""The reduced vocabulary that drafts are made of: which ids, and what is taught.

The target's own head dominates all else in a small model, and few of its ids are ever said.
"""

# torch's own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import torch
from torch.nn import functional

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torch import Tensor

    from engine.models.causal_lm import Lender
    from engine.training.batches import Batch
    from engine.training.examples import Text

_ROWS_AT_ONCE = 256
"""Logits of so many rows stay in a core's cache, and are worth a product of matrices."""


def frequent_ids(texts: Iterable[Text], most: int, *, always: Iterable[int]) -> Tensor:
    """The ids that replies say most often, in ascending order, with some whatever they are."""
    counted = Counter[int]()
    for text in texts:
        counted.update(text.ids[text.first_reply :])
    kept = sorted(set(always))[:most]
    by_count = sorted(counted.keys() - set(kept), key=lambda token: (-counted[token], token))
    return torch.tensor(sorted([*kept, *by_count[: most - len(kept)]]))


@dataclass(frozen=True, eq=False)
class DraftedIds:
    """Ids (n,) that are drafted, and the target's head for them, (n, hidden size).

    places: per id of the target's its place among them, or -1.
    """

    ids: Tensor
    weight: Tensor
    places: Tensor

    @classmethod
    def of(
        cls, lender: Lender, ids: Tensor, dtype: torch.dtype, device: torch.device
    ) -> DraftedIds:
        """Some of a target's ids."""
        ids = ids.to(device)
        places = torch.full((lender.vocabulary,), -1, device=device)
        places[ids] = torch.arange(len(ids), device=device)
        # Cloned: what inference has made, gradients can't flow through.
        return cls(ids, lender.head_rows(ids).to(device, dtype).clone(), places)

    def offsets(self) -> Tensor:
        """As head files have them under d2t."""
        return (self.ids - torch.arange(len(self.ids), device=self.ids.device)).cpu()

    @torch.no_grad()
    def best(self, states: Tensor, count: int = 1) -> Tensor:
        """Places of what states (rows, hidden size) make most probable, (rows, count)."""
        parts = [
            functional.linear(part.to(self.weight.dtype), self.weight).topk(count).indices
            for part in states.split(_ROWS_AT_ONCE)
        ]
        return torch.cat(parts)


@dataclass(frozen=True, eq=False)
class Taught:
    """What the target says behind the replies' rows of a batch.

    probabilities: of the drafted ids among each other, (rows of replies, ids). places: per row of
    the batch, where the id behind it stands among the drafted ones, or -1.
    """

    probabilities: Tensor
    places: Tensor
    _index: Tensor

    @classmethod
    @torch.no_grad()
    def of(cls, batch: Batch, states: Tensor, drafted: DraftedIds) -> Taught:
        """From the target's final states, (rows, hidden size)."""
        rows = batch.index(batch.replies)
        weight = drafted.weight
        probabilities = weight.new_empty(len(rows), len(weight))
        for done in range(0, len(rows), _ROWS_AT_ONCE):
            part = states[rows[done : done + _ROWS_AT_ONCE]].to(weight.dtype)
            logits = functional.linear(part, weight).float()
            probabilities[done : done + _ROWS_AT_ONCE] = logits.softmax(dim=-1)
        index = torch.full((len(batch),), -1, device=rows.device)
        index[rows] = torch.arange(len(rows), device=rows.device)
        return cls(probabilities, drafted.places[batch.next_ids], index)

    def lesson(self, rows: Tensor) -> Tensor:
        """Where among the probabilities those behind some rows of replies stand."""
        return self._index[rows]


def soft_cross_entropy(
    states: Tensor, drafted: DraftedIds, taught: Taught, lessons: Tensor, shares: Tensor
) -> Tensor:
    """The sum over rows of their shares of the cross-entropy between what is taught and drafted.

    states: what the head takes, (rows, hidden size). lessons: as `Taught.lesson` has them.
    """
    return _SoftCrossEntropy.apply(states, drafted.weight, taught.probabilities, lessons, shares)


Gradients = tuple["Tensor | None", ...]


class _SoftCrossEntropy(torch.autograd.Function):
    """Computes the gradient on the way: so no more logits are held than those of a few rows."""

    @staticmethod
    def forward(
        ctx: torch.autograd.function.FunctionCtx,
        states: Tensor,
        weight: Tensor,
        probabilities: Tensor,
        lessons: Tensor,
        shares: Tensor,
    ) -> Tensor:
        gradient, total = torch.empty_like(states), shares.new_zeros(())
        for first in range(0, len(states), _ROWS_AT_ONCE):
            part = slice(first, first + _ROWS_AT_ONCE)
            logits = functional.linear(states[part].to(weight.dtype), weight).float()
            log_q, p = logits.log_softmax(dim=-1), probabilities[lessons[part]].float()
            total -= (p * log_q).sum(dim=-1) @ shares[part]
            error = log_q.exp_().sub_(p).mul_(shares[part, None])
            gradient[part] = (error.to(weight.dtype) @ weight).to(states.dtype)
        ctx.save_for_backward(gradient)
        return total

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, *grad_outputs: Tensor) -> Gradients:
        (gradient,) = cast("torch.autograd.function.BackwardCFunction", ctx).saved_tensors
        return gradient * grad_outputs[0], None, None, None, None
