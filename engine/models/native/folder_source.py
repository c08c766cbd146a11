"""A folder of safetensors as the native decoder wants it: in bfloat16, or packed to 8 or 4 bits.

The files are mapped and a matrix is read at a time, so no second copy of the model is held. Gemma's
files hold the weights of its norms less one.
"""

# torch's own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from engine.errors import ModelError
from engine.models.blocks import Codes
from engine.models.native.folder_config import GEMMA, read_folder_config
from engine.models.native.folder_tensors import EMBEDDING, HEAD, find_tensors, mapped
from engine.models.native.linear import linear_of_codes, linear_of_floats, quantised

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from torch import Tensor

    from engine.models.native.folder_tensors import MappedFile
    from engine.models.native.linear import Linear

_KINDS = {8: "Q8_0", 4: "Q4_1"}
_HEAD_BITS = 8
_GROUP = 32
_ROWS_AT_ONCE = 4096


class FolderSource:
    """The tensors and the config of a model folder.

    bits: what its matrices are packed to, 8 or 4, the head to 8 with either; None for bfloat16.
    borrowing: whether embedding and head come from elsewhere. end_ids: those that end a turn.

    Raises:
        ModelError: the native decoder does not know this model.
    """

    halves = True
    unpacks = False

    def __init__(
        self,
        folder: Path,
        *,
        bits: int | None = None,
        borrowing: bool = False,
        device: str = "cpu",
    ) -> None:
        config = read_folder_config(folder)
        places = None if config is None else find_tensors(folder, config, borrowing=borrowing)
        if config is None or places is None:
            raise ModelError(f"{folder.name} is of a kind that the native decoder does not know.")
        self.config = config.decoder
        self.end_ids = config.end_ids
        self._places = places
        self._less_one = config.family in GEMMA
        self._bits = bits
        self.device = device
        self._files: dict[Path, MappedFile] = {}

    def has(self, name: str) -> bool:
        """Whether there is a tensor of this name."""
        return name in self._places

    def vector(self, name: str) -> Tensor:
        """A norm's or bias's numbers, float32."""
        added = 1.0 if self._less_one and name.endswith("norm.weight") else 0.0
        return self._tensor(name).to(self.device).float() + added

    def matrix(self, name: str) -> Tensor:
        """A matrix as it stands, float32."""
        return self._tensor(name).to(self.device).float()

    def whole_numbers(self, name: str) -> Tensor:
        """A map's numbers, int64."""
        return self._tensor(name).to(torch.int64)

    def linear(self, names: Sequence[str], order: Tensor | None = None) -> Linear:
        """Matrices over one input as one projection, its outputs in `order`."""
        weights = torch.cat([self._tensor(name) for name in names])
        bits = _HEAD_BITS if self._bits and names[0] in (EMBEDDING, HEAD) else self._bits
        weights = (weights if order is None else weights[order]).to(self.device)
        projection = _projection(weights, bits)
        bias = names[0].removesuffix("weight") + "bias"
        # Those of queries, keys and values are for the decoder to add.
        if bias.endswith("attn_output.bias") and self.has(bias):
            return _Biased(projection, self.vector(bias))
        return projection

    def unpacked(self, names: Sequence[str], order: Tensor | None = None) -> Linear:
        """The same: the packed weights are the model, and the file's own would be another."""
        return self.linear(names, order)

    def lookup(self, name: str) -> Callable[[Tensor], Tensor]:
        """Rows of a matrix straight from its file: ids (n,) to (n, columns) float32."""
        place = self._places[name]
        # Mapped once more, so that no more of it stays in memory than the rows that were asked for.
        table = mapped(place.file).get_tensor(place.name)
        return lambda ids: table[ids.cpu()].to(torch.bfloat16).to(self.device).float()

    def release(self) -> None:
        """Let go of the files; they are mapped again when they are wanted."""
        self._files.clear()

    def _tensor(self, name: str) -> Tensor:
        place = self._places[name]
        if place.file not in self._files:
            self._files[place.file] = mapped(place.file)
        return self._files[place.file].get_tensor(place.name)


class _Biased:
    """A projection and what is added to its outputs, (outputs,) float32."""

    def __init__(self, projection: Linear, bias: Tensor) -> None:
        self._projection = projection
        self._bias = bias

    def __call__(self, rows: Tensor) -> Tensor:
        return self.in_full(rows).to(torch.bfloat16)

    def in_full(self, rows: Tensor) -> Tensor:
        return self._projection.in_full(rows) + self._bias


def knows_folder(path: Path) -> bool:
    """Whether the native decoder can run this folder: its family, and nothing in it beyond that."""
    config = read_folder_config(path)
    return config is not None and find_tensors(path, config) is not None


def _projection(weights: Tensor, bits: int | None) -> Linear:
    if bits is None or weights.shape[1] % _GROUP:
        return linear_of_floats(weights)
    parts = [quantised(rows, bits=bits) for rows in weights.split(_ROWS_AT_ONCE)]
    codes = Codes(
        torch.cat([part.codes for part in parts]),
        torch.cat([part.scales for part in parts]),
        torch.cat([part.offsets for part in parts]),
    )
    return linear_of_codes(codes, _KINDS[bits])
