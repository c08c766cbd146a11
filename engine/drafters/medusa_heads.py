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
from engine.drafters.head_vocabulary import HeadVocabulary
from engine.drafters.published_heads import Kind
from engine.drafters.tree_shape import RANKS
from engine.errors import DrafterMismatch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from engine.drafters.head_fit import FittedHeads
    from engine.drafters.published_heads import HeadFolder
    from engine.models.causal_lm import CausalLM

_FADING = 0.85
"""What a head's ranks are worth beside those of the head before it, where nobody has measured."""


@dataclass(frozen=True)
class MedusaHeads:
    """Heads over a state of position t, the first for the token at t + 2.

    blocks: per head the weights (hidden, hidden) and biases (hidden,) of its residual blocks.
    outputs: per head from its states (1, hidden) to logits (1, ids).
    accuracies: per head, how often its best, second, ... token is right.
    maps: per head what its states are multiplied with behind the blocks, (hidden, hidden), if
    anything.
    """

    blocks: Sequence[Sequence[tuple[Tensor, Tensor]]]
    outputs: Sequence[Callable[[Tensor], Tensor]]
    vocabulary: HeadVocabulary
    accuracies: Sequence[Sequence[float]]
    maps: Sequence[Tensor | None] = ()

    def __len__(self) -> int:
        return len(self.blocks)

    @torch.inference_mode()
    def logits(self, state: Tensor, head: int) -> Tensor:
        """One head's logits (1, ids) over a state (hidden,)."""
        return self.outputs[head](self.ahead(state[None], head))

    def ahead(self, states: Tensor, head: int) -> Tensor:
        """What a head's output takes of states (rows, hidden)."""
        for weight, bias in self.blocks[head]:
            states = states.to(weight.dtype)
            states = states + functional.silu(functional.linear(states, weight, bias))
        mapping = self.maps[head] if self.maps else None
        return states if mapping is None else functional.linear(states, mapping)


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
    return MedusaHeads(blocks, outputs, vocabulary, _accuracies(fit.folder, count), maps)


def _head_of(name: str) -> int:
    number = name.partition(".")[0]
    return int(number) if number.isdecimal() else 0


def _blocks(fit: FittedHeads, head: int) -> list[tuple[Tensor, Tensor]]:
    width, count = fit.folder.states, 1
    while f"{head}.{count}.linear.weight" in fit.folder.tensors:
        count += 1
    names = [f"{head}.{at}.linear" for at in range(count)]
    return [
        (fit.matrix(f"{name}.weight", width, width), fit.matrix(f"{name}.bias", width))
        for name in names
    ]


def _map(fit: FittedHeads, name: str) -> Tensor | None:
    """What with the target's rows makes the output of a head that shares them."""
    if not fit.folder.target_head:
        return None
    return fit.matrix_if_any(name, fit.folder.states, fit.folder.states)


def _outputs(
    fit: FittedHeads, own: Sequence[str]
) -> tuple[list[Callable[[Tensor], Tensor]], HeadVocabulary]:
    """Per head its own output, else one that all share, else the target's."""
    folder, lm = fit.folder, fit.lm
    if not folder.target_head and any(name in folder.tensors for name in own):
        rows = len(folder.tensor(own[0], None, folder.states))
        known = [fit.known(fit.matrix(name, rows, folder.states)) for name in own]
        return [_linear(fit, weight) for weight, _ in known], known[0][1]
    shared = fit.output(folder.states)
    if shared is None:
        return [lm.head] * len(own), HeadVocabulary(lm.vocabulary)
    weight, vocabulary = shared
    return [_linear(fit, weight)] * len(own), vocabulary


def _linear(fit: FittedHeads, weight: Tensor) -> Callable[[Tensor], Tensor]:
    numbers = fit.numbers
    return lambda states: functional.linear(states.to(weight.dtype), weight).to(numbers)


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
