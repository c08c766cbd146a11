"""An EAGLE head run over texts as its drafter runs it: on true states, then on its own guesses.

From every place of a reply begins a chain. Its first row takes the target's state, each later one
the guess before it, at the position and behind the rows that the drafter would have there. Tokens
are the text's: a chain that says others is turned down there, and nothing behind it counts.
"""

# torch's own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from engine.training.packed_attention import PackedAttention

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torch import Tensor

    from engine.drafters.eagle_head import EagleHead
    from engine.training.batches import Batch


def unroll(
    head: EagleHead, batch: Batch, features: Tensor, tokens: Tensor, depths: int
) -> Iterator[Tensor]:
    """Per depth the guessed features of all chains of the batch, (chains at this depth, width).

    features: of all rows. tokens: embeddings of the ids behind them. Fewer depths come where no
    text is as long.
    """
    chains = batch.chains(0)
    rows = batch.index(chains)
    inputs, residual = head.enter(features, tokens)
    queries, keys, values = head.layer.project(inputs, batch.positions)
    attention = PackedAttention(keys, values, batch.examples)
    mixed = attention.mix(queries[:, rows], chains)
    guess = head.leave(head.layer.finish(residual[rows], mixed))
    yield guess
    for depth in range(1, depths):
        before, chains = chains, batch.chains(depth)
        rows = batch.index(chains)
        if not len(rows):
            return
        inputs, residual = head.enter(guess[_still(before, chains)], tokens[rows + depth])
        positions = [batch.positions[row] + depth for row in rows.tolist()]
        queries, keys, values = head.layer.project(inputs, positions)
        attention.draft(keys, values, chains)
        guess = head.leave(head.layer.finish(residual, attention.mix(queries, chains)))
        yield guess


def _still(before: Sequence[range], chains: Sequence[range]) -> Tensor:
    """Which of the chains before are there still: the last ones of a text have come to its end."""
    kept, first = list[int](), 0
    for old, new in zip(before, chains, strict=True):
        kept += range(first, first + len(new))
        first += len(old)
    return torch.tensor(kept)
