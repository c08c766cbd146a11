"""What learning is made of: a conversation's ids, and the target's states while it read them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor


@dataclass(frozen=True, slots=True)
class Text:
    """One conversation's ids, as the target saw and wrote them.

    The ids before first_reply are the prompt; the last id is an end id where the reply ended.
    """

    ids: tuple[int, ...]
    first_reply: int
    temperature: float


@dataclass(frozen=True, slots=True, eq=False)
class Example:
    """A text's ids (n,), and for each tap the target's states (n - 1, hidden), bfloat16.

    Row i of a tap is the target's state after it had read ids[: i + 1]. The last id has none, as
    nothing follows it.
    """

    ids: Tensor
    first_reply: int
    hidden: Mapping[int, Tensor]

    @classmethod
    def of(cls, text: Text, hidden: Mapping[int, Tensor]) -> Example:
        """A text with its states."""
        return cls(torch.tensor(text.ids), text.first_reply, hidden)

    def taught_from(self, place: int) -> Example:
        """As if the reply began no later than there: what is before is then not learnt."""
        return replace(self, first_reply=min(self.first_reply, place))
