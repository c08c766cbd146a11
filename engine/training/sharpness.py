"""How much a head's log q should count beside the noise that it shares with its target.

Under COUPLED (see engine.verification) target and head take the best of log p and of log q with the
same noise added. A head that is unsure of p spreads q wider, and would follow the noise too far.
"""

# torch's own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from engine.models.causal_lm import FINAL

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from torch import Tensor

    from engine.training.batches import Batch
    from engine.training.drafted_ids import DraftedIds

CHOICES = (1.0, 1.2, 1.4, 1.6, 1.8, 2.0)

_TEMPERATURE = 0.8
_ROWS_AT_ONCE = 256


def said_of_sharpness(
    unrolled: Iterable[tuple[Batch, Sequence[Tensor]]], drafted: DraftedIds
) -> dict[str, float]:
    """For a config: the best sharpness, or nothing where none is known."""
    found = best_sharpness(unrolled, drafted)
    return {} if found is None else {"sharpness": found}


@torch.no_grad()
def best_sharpness(
    unrolled: Iterable[tuple[Batch, Sequence[Tensor]]], drafted: DraftedIds
) -> float | None:
    """The choice with which a head most often takes what its target takes; None if it never does.

    unrolled: batches of drawn texts, as greedy ones keep to where p is sharp, and per depth what
    the output takes of their chains, (chains at this depth, hidden size). The target is asked for
    the drafted ids alone.
    """
    noise, alike = torch.Generator().manual_seed(0), torch.zeros(len(CHOICES))
    for batch, states_by_depth in unrolled:
        for depth, states in enumerate(states_by_depth):
            rows = batch.index(batch.chains(depth)) + depth + 1
            alike += _alike(batch.hidden[FINAL][rows], states, drafted, noise)
    return CHOICES[int(alike.argmax())] if alike.any() else None


def _alike(true: Tensor, guessed: Tensor, drafted: DraftedIds, noise: torch.Generator) -> Tensor:
    """Per choice, behind how many states target and head take the same."""
    counts = torch.zeros(len(CHOICES))
    for of_target, of_head in zip(
        true.split(_ROWS_AT_ONCE), guessed.split(_ROWS_AT_ONCE), strict=True
    ):
        log_p, log_q = (_log_probabilities(each, drafted) for each in (of_target, of_head))
        drawn = torch.empty(log_p.shape).exponential_(generator=noise)
        gumbel = -drawn.log().to(log_p.device)
        taken = (log_p + gumbel).argmax(dim=-1)
        for place, choice in enumerate(CHOICES):
            counts[place] += ((choice * log_q + gumbel).argmax(dim=-1) == taken).sum().cpu()
    return counts


def _log_probabilities(states: Tensor, drafted: DraftedIds) -> Tensor:
    weight = drafted.weight
    logits = functional.linear(states.to(weight.dtype), weight).float()
    return (logits / _TEMPERATURE).log_softmax(dim=-1)
