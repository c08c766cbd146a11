"""What a crowd's rows were at the taps, kept seat by seat until a conversation is done."""

# torch's own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.nn import functional

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor


class CrowdStates:
    """Per tap (seats, slots, hidden), bfloat16 on the CPU. Slots are positions.

    hidden: the width of a state. What stands behind a conversation's last row is no state of it.
    """

    def __init__(self, seats: int, taps: Sequence[int], hidden: int) -> None:
        none = torch.zeros(seats, 0, hidden, dtype=torch.bfloat16)
        self._kept = dict.fromkeys(taps, none)

    @torch.inference_mode()
    def make_room(self, more: int) -> None:
        """Add slots to every seat."""
        for tap, kept in self._kept.items():
            self._kept[tap] = functional.pad(kept, (0, 0, 0, more))

    @torch.inference_mode()
    def keep(self, tap: int, first_seat: int, places: Tensor, states: Tensor) -> None:
        """Keep rows of the seats from one on.

        places: (seats, rows), their positions; states: (seats * rows, hidden), one seat after
        another.
        """
        seats = torch.arange(first_seat, first_seat + len(places))[:, None]
        rows = states.to("cpu", torch.bfloat16).unflatten(0, places.shape)
        self._kept[tap][seats, places.cpu()] = rows

    @torch.inference_mode()
    def move(self, source: int, target: int) -> None:
        """Let the rows of one seat take another's place."""
        for kept in self._kept.values():
            kept[target] = kept[source]

    @torch.inference_mode()
    def of(self, seat: int, rows: int) -> dict[int, Tensor]:
        """Per tap a copy of a seat's first rows, (rows, hidden)."""
        return {tap: kept[seat, :rows].clone() for tap, kept in self._kept.items()}
