"""Examples side by side without padding: rows of several conversations, one after another."""

# torch's own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torch import Tensor

    from engine.training.examples import Example

_MANY = 1_000_003
"""More epochs than there will be: so seeds don't share an order."""


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Rows of examples. Row i of one stands for its ids up to i, and all but the last id have one.

    ids: what each row has read last; next_ids: what follows. positions: within the example.
    hidden: per tap the target's states, (rows, hidden size). examples: the rows of each;
    replies: those of them behind which an id of the reply comes.
    """

    ids: Tensor
    next_ids: Tensor
    positions: tuple[int, ...]
    hidden: Mapping[int, Tensor]
    examples: tuple[range, ...]
    replies: tuple[range, ...]

    def __len__(self) -> int:
        return len(self.positions)

    def chains(self, depth: int) -> tuple[range, ...]:
        """Per example, the rows from which a head drafts a token of the reply at this depth.

        A row drafts behind its next id, which it is given: at depth 0 the id two further on.
        """
        return tuple(
            range(first := max(rows.start, reply.start - 1), max(first, rows.stop - 1 - depth))
            for rows, reply in zip(self.examples, self.replies, strict=True)
        )

    def index(self, spans: Sequence[range]) -> Tensor:
        """Rows of spans, one after another."""
        return torch.tensor(list(chain.from_iterable(spans)), device=self.ids.device)


def packed(examples: Sequence[Example], taps: Sequence[int], device: torch.device) -> Batch:
    """A batch of examples, with the states of these taps."""
    rows, replies, first = list[range](), list[range](), 0
    for example in examples:
        last = first + len(example.ids) - 1
        rows.append(range(first, last))
        replies.append(range(min(last, first + max(0, example.first_reply - 1)), last))
        first = last
    return Batch(
        ids=torch.cat([example.ids[:-1] for example in examples]).to(device),
        next_ids=torch.cat([example.ids[1:] for example in examples]).to(device),
        positions=tuple(chain.from_iterable(range(len(each)) for each in rows)),
        hidden={
            tap: torch.cat([example.hidden[tap] for example in examples]).to(device) for tap in taps
        },
        examples=tuple(rows),
        replies=tuple(replies),
    )


def generator_of(number: int) -> torch.Generator:
    """One that draws what follows from a whole number, which may be larger than torch takes."""
    return torch.Generator().manual_seed(number % 2**63)


class Order:
    """Which examples a step learns from: a function of the seed and the step alone.

    lengths: ids of each example. Epoch after epoch, each in another order.
    """

    def __init__(self, lengths: Sequence[int], rows: int, seed: int) -> None:
        self._lengths = lengths
        self._rows = rows
        self._seed = seed
        self._batches: list[tuple[int, ...]] = []
        self._epochs = 0

    def __call__(self, step: int) -> Sequence[int]:
        """Places of a step's examples."""
        while len(self._batches) <= step:
            self._add_epoch()
        return self._batches[step]

    def _add_epoch(self) -> None:
        """Another turn through all examples, in batches of about as many rows each."""
        generator = generator_of(self._seed * _MANY + self._epochs)
        batch, rows = list[int](), 0
        for place in torch.randperm(len(self._lengths), generator=generator).tolist():
            if batch and rows + self._lengths[place] > self._rows:
                self._batches.append(tuple(batch))
                batch, rows = [], 0
            batch.append(place)
            rows += self._lengths[place]
        self._batches.append(tuple(batch))
        self._epochs += 1
