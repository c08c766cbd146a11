"""Whether a head fits a target, and where and in which numbers it is to be computed."""

# torch's own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from engine.drafters.head_files import positive_number
from engine.drafters.head_vocabulary import HeadVocabulary
from engine.drafters.projection import projections_for
from engine.drafters.published_heads import HeadFolder, Kind, read_heads
from engine.errors import DrafterMismatch
from engine.models.causal_lm import FINAL

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from engine.drafters.projection import Projections
    from engine.models.causal_lm import CausalLM, Lender

_OUTPUT, _ID_MAP = "lm_head.weight", "d2t"
_PADDING = 1024
"""Models have up to so many ids more than their tokenizer, so that sizes come out round."""


@dataclass(frozen=True, slots=True)
class FittedHeads:
    """Heads beside the target that they draft for.

    weights: the type of the matrices, that of the target's final state. numbers: of all else.
    make: what multiplies with them.
    """

    folder: HeadFolder
    lm: Lender
    device: torch.device
    weights: torch.dtype
    numbers: torch.dtype
    make: Projections

    def matrix(self, name: str, *shape: int | None) -> Tensor:
        """A weight that must be there, ready to multiply with."""
        return self._placed(name, shape, self.weights)

    def matrix_if_any(self, name: str, *shape: int | None) -> Tensor | None:
        """A weight that need not be there."""
        return self.matrix(name, *shape) if name in self.folder.tensors else None

    def vector(self, name: str, *shape: int | None) -> Tensor:
        """A norm's weight."""
        return self._placed(name, shape, self.numbers)

    def vector_if_any(self, name: str, *shape: int | None) -> Tensor | None:
        """A norm's weight that need not be there."""
        return self.vector(name, *shape) if name in self.folder.tensors else None

    def ids(self, count: int) -> Tensor | None:
        """The target's id of each of `count` logits; None where they are simply all.

        Raises:
            DrafterMismatch: the map is missing, or leads outside the vocabulary.
        """
        folder, offsets = self.folder, self.folder.optional("d2t", count)
        most = folder.vocabulary or self.lm.vocabulary + _PADDING
        if offsets is None:
            if count < self.lm.vocabulary:
                raise DrafterMismatch(
                    f"The {folder.kind} head {folder.name} knows {count:,} tokens and does not say "
                    "which: d2t is missing."
                )
            return None
        ids = torch.arange(count) + offsets.to(torch.int64)
        if len(ids.unique()) < count or int(ids.min()) < 0 or int(ids.max()) >= most:
            raise DrafterMismatch(
                f"The {folder.kind} head {folder.name} is damaged: its map d2t leads to tokens "
                "that there are not, or to one twice."
            )
        return ids.to(self.device)

    def known(self, weight: Tensor) -> tuple[Tensor, HeadVocabulary]:
        """An output's rows for tokens that the target has, and which ones these are."""
        ids = self.ids(len(weight))
        if ids is None:
            return weight[: self.lm.vocabulary], self._vocabulary(None)
        real = ids < self.lm.vocabulary
        return weight[real], self._vocabulary(ids[real])

    def output(self, width: int) -> tuple[Callable[[Tensor], Tensor], HeadVocabulary]:
        """From states to logits, and for which ids these are.

        The heads' own output, or the rows of the target's that they know, or the target's.

        Raises:
            DrafterMismatch: there is neither.
        """
        own, folder = self.matrix_if_any(_OUTPUT, None, width), self.folder
        if own is not None:
            weight, vocabulary = self.known(own)
            return self.make.output(weight), vocabulary
        reduced = _ID_MAP in folder.tensors
        if width != folder.states or (reduced and not folder.target_head):
            raise DrafterMismatch(f"The {folder.kind} head {folder.name} lacks {_OUTPUT}.")
        if not reduced:
            head, kind = self.lm.head, self.weights
            return lambda states: head(states.to(kind)), self._vocabulary(None)
        ids = self.ids(len(folder.tensor(_ID_MAP, None)))
        assert ids is not None
        ids = ids[ids < self.lm.vocabulary]
        rows = self.lm.head_rows(ids).to(self.device, self.weights)
        return self.make.output(rows), self._vocabulary(ids)

    def _vocabulary(self, ids: Tensor | None) -> HeadVocabulary:
        sharpness = positive_number(self.folder.config, "sharpness") or 1.0
        return HeadVocabulary(self.lm.vocabulary, ids, sharpness)

    def _placed(self, name: str, shape: Sequence[int | None], kind: torch.dtype) -> Tensor:
        held = self.folder.tensor(name, *shape).to(self.device, kind, copy=True).contiguous()
        if not held.isfinite().all():
            raise DrafterMismatch(
                f"The {self.folder.kind} head {self.folder.name} is damaged: {name} holds what is "
                "no number."
            )
        return held


def fitted_heads(path: str, lm: CausalLM, kind: Kind, family: str) -> FittedHeads:
    """The heads in a folder, if they are of this kind and for this target.

    Raises:
        DrafterMismatch: they are not; the sentence says what they are.
    """
    folder = read_heads(path)
    if folder.kind is not kind:
        raise DrafterMismatch(
            f"{folder.name} holds an {folder.kind} head, not one for the drafter {family}."
            if folder.kind is not Kind.MEDUSA
            else f"{folder.name} holds Medusa heads, not one for the drafter {family}."
        )
    probe = lm.score(lm.new_memo(), [0], taps=(FINAL,)).hidden[FINAL]
    _check(folder, lm, probe.shape[-1])
    numbers = torch.promote_types(probe.dtype, torch.float32)
    make = projections_for(probe)
    return FittedHeads(folder, lm, probe.device, probe.dtype, numbers, make)


def taps_of(folder: HeadFolder, lm: Lender) -> tuple[int, ...]:
    """The taps that an EAGLE-3 head fuses.

    Raises:
        DrafterMismatch: the target has no such layers.
    """
    if folder.taps == ():
        return (FINAL,)
    taps = folder.taps or (2, lm.num_layers // 2, lm.num_layers - 3)
    in_order = folder.taps is not None or taps[0] < taps[1] < taps[2]
    if not in_order or min(taps) < 0 or max(taps) >= lm.num_layers:
        raise DrafterMismatch(
            f"{_other_model(folder)}: it looks into layers that this model, with its "
            f"{lm.num_layers}, has not."
        )
    return taps


def _check(folder: HeadFolder, lm: CausalLM, states: int) -> None:
    if folder.states != states:
        raise DrafterMismatch(
            f"{_other_model(folder)}: its states are {folder.states:,} wide, and this model's "
            f"{states:,}."
        )
    ids = folder.vocabulary
    if ids is not None and not lm.vocabulary <= ids <= lm.vocabulary + _PADDING:
        raise DrafterMismatch(
            f"{_other_model(folder)}: its vocabulary has {ids:,} tokens, and this model's "
            f"{lm.vocabulary:,}."
        )
    if folder.target_layers not in (None, lm.num_layers):
        raise DrafterMismatch(
            f"{_other_model(folder)}: that has {folder.target_layers} layers, and this model "
            f"{lm.num_layers}."
        )


def _other_model(folder: HeadFolder) -> str:
    name = folder.made_for or "another model, which it does not name"
    return f"The {folder.kind} head {folder.name} is for {name}"
