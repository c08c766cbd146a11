"""Draft models that borrow their embedding and head from the target: a folder that says so.

Its config says `"target_embedding": true` and `"target_head": true`; beside a Llama's layers and
last norm, d2t may pick the ids that it drafts, as in EAGLE-3's files, and output_map.weight be what
states are multiplied with before the target's head.
"""

# torch's own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from engine.errors import DrafterMismatch
from engine.models.native.folder_source import FolderSource
from engine.models.native.folder_tensors import EMBEDDING, HEAD, ID_MAP, OUTPUT_MAP
from engine.models.native.linear import linear_of_floats
from engine.models.native.loading import load_decoder
from engine.models.native.native_lm import NativeLM

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from torch import Tensor

    from engine.models.causal_lm import Lender
    from engine.models.native.linear import Linear


def load_borrowing(folder: Path, target: Lender, *, device: str, bits: int | None) -> NativeLM:
    """A draft model beside a target. bits: as in FolderSource.

    Raises:
        ModelError: it is damaged. DrafterMismatch: it was made for another target.
    """
    own = FolderSource(folder, bits=bits, borrowing=True, device=device)
    hidden = target.embed(torch.zeros(1, dtype=torch.int64, device=device)).shape[-1]
    made_for = own.config.hidden, own.config.vocabulary
    if made_for != (hidden, target.vocabulary):
        raise DrafterMismatch(
            f"The draft model {folder.name} is for another model: its states are "
            f"{made_for[0]:,} wide over {made_for[1]:,} tokens, and this model's {hidden:,} over "
            f"{target.vocabulary:,}."
        )
    source = _Borrowing(own, target)
    return NativeLM(load_decoder(source), vocabulary=target.vocabulary, end_ids=frozenset())


class _Borrowing:
    """A folder's tensors beside what a target lends."""

    unpacks = False

    def __init__(self, own: FolderSource, target: Lender) -> None:
        self._own = own
        self._target = target
        self.config = own.config
        self.device = own.device
        self.halves = own.halves

    def has(self, name: str) -> bool:
        return name == HEAD or self._own.has(name)

    def vector(self, name: str) -> Tensor:
        return self._own.vector(name)

    def linear(self, names: Sequence[str], order: Tensor | None = None) -> Linear:
        if names[0] != HEAD:
            return self._own.linear(names, order)
        before = self._own.matrix(OUTPUT_MAP) if self._own.has(OUTPUT_MAP) else None
        if self._own.has(ID_MAP):
            return _PartOfHead(self._target, self._ids(), before)
        return _WholeHead(self._target, before)

    def unpacked(self, names: Sequence[str], order: Tensor | None = None) -> Linear:
        return self.linear(names, order)

    def lookup(self, name: str) -> Callable[[Tensor], Tensor]:
        look_up = self._target.embed if name == EMBEDDING else self._target.head_rows
        return lambda ids: look_up(ids).float()

    def release(self) -> None:
        self._own.release()

    def _ids(self) -> Tensor:
        offsets = self._own.whole_numbers(ID_MAP)
        ids = (torch.arange(len(offsets)) + offsets).to(self.device)
        if len(ids.unique()) < len(ids) or not 0 <= int(ids.min()) <= int(ids.max()) < (
            self._target.vocabulary
        ):
            raise DrafterMismatch(
                "The draft model is damaged: its map d2t leads to tokens that there are not, or to "
                "one twice."
            )
        return ids


class _WholeHead:
    """The target's head, behind a map if there is one."""

    def __init__(self, target: Lender, before: Tensor | None) -> None:
        self._target = target
        self._before = None if before is None else linear_of_floats(before)

    def __call__(self, rows: Tensor) -> Tensor:
        return self.in_full(rows).to(torch.bfloat16)

    def in_full(self, rows: Tensor) -> Tensor:
        return self._target.head(rows if self._before is None else self._before(rows)).float()


class _PartOfHead:
    """The target's head for some ids; all others can't come."""

    def __init__(self, target: Lender, ids: Tensor, before: Tensor | None) -> None:
        self._ids = ids
        self._vocabulary = target.vocabulary
        rows = target.head_rows(ids).float()
        self._rows = linear_of_floats(rows if before is None else rows @ before)

    def __call__(self, rows: Tensor) -> Tensor:
        return self.in_full(rows).to(torch.bfloat16)

    def in_full(self, rows: Tensor) -> Tensor:
        logits = self._rows.in_full(rows)
        whole = logits.new_full((len(rows), self._vocabulary), -torch.inf)
        whole[:, self._ids] = logits
        return whole
