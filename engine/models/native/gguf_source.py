"""A GGUF file as the native decoder wants it: its config, and its tensors in their codes.

Norm weights stand in the file as they are multiplied, and the heads of "llama" files have the
elements side by side that turn together.
"""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING

import torch

from engine.errors import ModelError
from engine.models.blocks import Codes, read_codes, read_floats
from engine.models.native.gguf_config import FLOATS, read_config
from engine.models.native.linear import (
    joined,
    linear_for_many_rows,
    linear_of_codes,
    linear_of_floats,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from engine.models.gguf import GgufFile, Value
    from engine.models.native.linear import Linear

_LAYER = r"attn_(norm|output|q|k|v|qkv|q_norm|k_norm)|ffn_(norm|gate|up|down)"
_TENSORS = re.compile(
    r"(token_embd|output|output_norm|rope_freqs)\.weight"
    rf"|blk\.\d+\.({_LAYER}|post_attention_norm|post_ffw_norm)\.weight"
    r"|blk\.\d+\.attn_(q|k|v)\.bias"
)
_ARCHITECTURES = frozenset({"llama", "qwen2", "qwen3", "gemma3", "phi3"})
_WINDOWED = frozenset({"gemma3", "phi3"})
_SCALINGS = frozenset({"none", "linear"})
_BEYOND = (
    # What would change the numbers, if it is there and not 0.
    *("expert_count", "logit_scale", "residual_scale", "embedding_scale", "attention.scale"),
    *("attn_logit_softcapping", "final_logit_softcapping", "rope.scaling.attn_factor"),
)


class GgufSource:
    """The tensors and the config of a mapped file.

    Raises:
        ModelError: a number is missing or makes no sense, or the tensors don't fit the numbers.
    """

    def __init__(self, file: GgufFile, device: str = "cpu") -> None:
        self._file = file
        self.device = device
        self.config = read_config(file)
        self.halves = file.metadata["general.architecture"] != "llama"
        self.unpacks = any(tensor.type.name not in FLOATS for tensor in file.tensors.values())

    def has(self, name: str) -> bool:
        """Whether there is a tensor of this name."""
        return name in self._file.tensors

    def vector(self, name: str) -> Tensor:
        """A norm's or bias's numbers, float32."""
        tensor = self._file.tensors[name]
        numbers = read_floats(self._file.blocks(name), tensor.type.name, tensor.shape)
        return numbers.float().clone().to(self.device)

    def linear(self, names: Sequence[str], order: Tensor | None = None) -> Linear:
        """Matrices over one input as one projection in their codes, its outputs in `order`."""
        kinds = {self._file.tensors[name].type.name for name in names}
        if len(kinds) > 1:
            return joined([self.linear([name]) for name in names], order)
        if kinds <= FLOATS:
            weights = self._weights(names)
            return linear_of_floats(_ordered(weights, order).to(self.device))
        parts = [self._checked(name) for name in names]
        codes = Codes(
            _ordered(torch.cat([part.codes for part in parts]), order),
            _ordered(torch.cat([part.scales for part in parts]), order),
            _ordered(torch.cat([part.offsets for part in parts]), order),
        )
        return linear_of_codes(codes.to(self.device), kinds.pop())

    def unpacked(self, names: Sequence[str], order: Tensor | None = None) -> Linear:
        """The same with weights rounded to bfloat16, for many rows."""
        by_kind = groupby(names, lambda name: self._file.tensors[name].type.name)
        parts = [self._weights(list(group)).to(torch.bfloat16) for _, group in by_kind]
        weights = parts[0] if len(parts) == 1 else torch.cat(parts)
        return linear_for_many_rows(_ordered(weights, order).to(self.device))

    def lookup(self, name: str) -> Callable[[Tensor], Tensor]:
        """Rows of a matrix straight from the file's blocks: ids (n,) to (n, columns) float32."""
        tensor = self._file.tensors[name]
        columns, kind, size = tensor.shape[1], tensor.type.name, tensor.type.size_bytes
        blocks = self._file.blocks(name).view(tensor.shape[0], -1)

        def rows(ids: Tensor) -> Tensor:
            shape, found = (len(ids), columns), blocks[ids.cpu()]
            if kind in FLOATS:
                return read_floats(found, kind, shape).float().to(self.device)
            return read_codes(found.view(-1, size), kind, shape).weights().to(self.device)

        return rows

    def release(self) -> None:
        """Let go of the file's pages that were read; they come back when they are wanted."""
        self._file.release()

    def _checked(self, name: str) -> Codes:
        codes = self._codes(name)
        if not (codes.scales.isfinite().all() and codes.offsets.isfinite().all()):
            raise ModelError(
                f"{self._file.path.name} is damaged: {name} holds numbers that are none. "
                "Get the file again."
            )
        return codes

    def _codes(self, name: str) -> Codes:
        tensor = self._file.tensors[name]
        rows, columns = tensor.shape
        return read_codes(self._file.blocks(name), tensor.type.name, (rows, columns))

    def _weights(self, names: Sequence[str]) -> Tensor:
        """Matrices of one type, one below the other."""
        tensors = [self._file.tensors[name] for name in names]
        blocks = torch.cat([self._file.blocks(name) for name in names])
        kind = tensors[0].type.name
        shape = sum(tensor.shape[0] for tensor in tensors), tensors[0].shape[1]
        if kind in FLOATS:
            return read_floats(blocks, kind, shape)
        return read_codes(blocks, kind, shape).weights()


def knows(file: GgufFile) -> bool:
    """Whether the native decoder can run this file: its family, and nothing in it beyond that.

    Experts, biases elsewhere, capped logits and rotations stretched by other rules are left to
    transformers.
    """
    family = file.metadata.get("general.architecture")

    def says(key: str, otherwise: Value = 0) -> Value:
        return file.metadata.get(f"{family}.{key}", otherwise)

    return (
        family in _ARCHITECTURES
        and all(map(_TENSORS.fullmatch, file.tensors))
        and says("rope.scaling.type", "none") in _SCALINGS
        and says("attention.causal", otherwise=True) is True
        and not any(map(says, _BEYOND))
        and (family in _WINDOWED or not says("attention.sliding_window"))
    )


def _ordered(rows: Tensor, order: Tensor | None) -> Tensor:
    return rows if order is None else rows[order]
