"""Medusa heads: residual blocks on the target's final state, then an output."""

# torch's own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

from engine.drafters.head_fit import fitted_heads
from engine.drafters.published_heads import Kind
from engine.drafters.tree_shape import RANKS
from engine.errors import DrafterMismatch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from engine.drafters.head_fit import FittedHeads
    from engine.drafters.head_vocabulary import HeadVocabulary
    from engine.drafters.projection import Projection
    from engine.drafters.published_heads import HeadFolder
    from engine.models.causal_lm import CausalLM

_FADING = 0.85
"""What a head's ranks are worth beside those of the head before it, where nobody has measured."""


@dataclass(frozen=True)
class MedusaHeads:
    """Heads over a state of position t, the first for the token at t + 2.

    blocks: per head its residual blocks. outputs: per head from its states to logits over the
    vocabulary. accuracies: per head, how often its best, second, ... token is right. maps: per head
    what its states go through behind the blocks, if anything. numbers: what all is computed in.
    """

    blocks: Sequence[Sequence[Projection]]
    outputs: Sequence[Callable[[Tensor], Tensor]]
    vocabulary: HeadVocabulary
    accuracies: Sequence[Sequence[float]]
    maps: Sequence[Projection | None]
    numbers: torch.dtype

    def __len__(self) -> int:
        return len(self.blocks)

    @torch.inference_mode()
    def logits(self, state: Tensor, head: int) -> Tensor:
        """One head's logits (1, ids) over a state (hidden,)."""
        return self.outputs[head](self.ahead(state[None], head))

    def ahead(self, states: Tensor, head: int) -> Tensor:
        """What a head's output takes of states (rows, hidden)."""
        states = states.to(self.numbers)
        for block in self.blocks[head]:
            states = states + functional.silu(block(states))
        mapping = self.maps[head]
        return states if mapping is None else mapping(states)


def load_medusa(path: str, lm: CausalLM, family: str) -> MedusaHeads:
    """The Medusa heads in a folder for a target.

    Raises:
        DrafterMismatch: it holds none, or some for another target.
    """
    return medusa_of(fitted_heads(path, lm, Kind.MEDUSA, family))


def medusa_of(fit: FittedHeads) -> MedusaHeads:
    """Medusa heads from tensors that fit.

    Raises:
        DrafterMismatch: they don't fit together.
    """
    # Some configs are wrong about how many heads there are; the tensors can't be.
    count = 1 + max(_head_of(name) for name in fit.folder.tensors)
    blocks = [_blocks(fit, head) for head in range(count)]
    names = [f"{head}.{len(each)}.weight" for head, each in enumerate(blocks)]
    maps = [_map(fit, name) for name in names]
    outputs, vocabulary = _outputs(fit, names)
    accuracies = _accuracies(fit.folder, count)
    return MedusaHeads(blocks, outputs, vocabulary, accuracies, maps, fit.numbers)


def _head_of(name: str) -> int:
    number = name.partition(".")[0]
    return int(number) if number.isdecimal() else 0


def _blocks(fit: FittedHeads, head: int) -> list[Projection]:
    width, count = fit.folder.states, 1
    while f"{head}.{count}.linear.weight" in fit.folder.tensors:
        count += 1
    names = [f"{head}.{at}.linear" for at in range(count)]
    weights = [fit.matrix(f"{name}.weight", width, width) for name in names]
    biases = [fit.matrix(f"{name}.bias", width) for name in names]
    return [fit.make.inner(*each) for each in zip(weights, biases, strict=True)]


def _map(fit: FittedHeads, name: str) -> Projection | None:
    """What with the target's rows makes the output of a head that shares them."""
    if not fit.folder.target_head:
        return None
    weight = fit.matrix_if_any(name, fit.folder.states, fit.folder.states)
    return None if weight is None else fit.make.inner(weight)


def _outputs(
    fit: FittedHeads, own: Sequence[str]
) -> tuple[list[Callable[[Tensor], Tensor]], HeadVocabulary]:
    """Per head its own output, else one that all share, else the target's."""
    folder = fit.folder
    if not folder.target_head and any(name in folder.tensors for name in own):
        rows = len(folder.tensor(own[0], None, folder.states))
        known = [fit.known(fit.matrix(name, rows, folder.states)) for name in own]
        return [fit.make.output(weight) for weight, _ in known], known[0][1]
    shared, vocabulary = fit.output(folder.states)
    return [shared] * len(own), vocabulary


def _accuracies(folder: HeadFolder, count: int) -> list[list[float]]:
    """As measured in training, else a guess."""
    measured: Any = folder.config.get("rank_accuracies")
    if measured is None:
        return [[rank * _FADING**head for rank in RANKS] for head in range(count)]
    try:
        found = [[min(1.0, max(0.0, float(rank))) for rank in head] for head in measured]
    except (TypeError, ValueError):
        found = []
    if len(found) < count or not all(found):
        raise DrafterMismatch(f"The config of {folder.name} says no usable rank_accuracies.")
    return found
