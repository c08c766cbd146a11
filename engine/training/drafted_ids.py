"""The reduced vocabulary that drafts are made of: which ids, and which of them are said.

The target's own head dominates all else in a small model, and few of its ids are ever said.
"""

# torch's own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torch import Tensor

    from engine.models.causal_lm import Lender
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
