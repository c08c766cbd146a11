"""How far a drafter's chains would be accepted, from what it drafts at every place of a text.

On a text that the target wrote greedily, a drafter with a chain goes on right exactly as long as it
drafts what the text says, so one look at all places tells what decoding would do.
"""

# torch's own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

CHAIN = 3
"""Tokens of the chain that is judged: a pass of four rows is the sweet spot of small machines."""


@dataclass(frozen=True, slots=True)
class Acceptance:
    """length: tokens committed a pass, mean. survival: of all places, how many get so deep."""

    length: float
    survival: tuple[float, ...]


def acceptance(hits: Sequence[Tensor]) -> Acceptance:
    """From (places, depths) bool per text: whether a chain from a place is right at a depth.

    A text's first place is where its reply begins, and each has one place a token.
    """
    tokens = rounds = 0
    survived = torch.zeros(max((each.shape[1] for each in hits), default=0), dtype=torch.float64)
    for each in hits:
        alive = each.long().cumprod(dim=1)
        survived[: each.shape[1]] += alive.sum(dim=0).cpu()
        tokens += len(each)
        rounds += _rounds(alive[:, :CHAIN].sum(dim=1).tolist())
    shares = (survived / max(1, tokens)).tolist()
    return Acceptance(tokens / max(1, rounds), tuple(shares))


def _rounds(accepted: Sequence[int]) -> int:
    """Passes that it takes to walk a text; each commits what was accepted and one token more."""
    rounds = place = 0
    while place < len(accepted):
        place += accepted[place] + 1
        rounds += 1
    return rounds
