"""From a GGUF file to a decoder whose weights keep the file's codes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from engine.models.blocks import Codes, read_codes, read_floats
from engine.models.native.config import read_config
from engine.models.native.decoder import Decoder, Layer, frequencies, head_scales
from engine.models.native.linear import Dense, Linear, Packed4, Packed8

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from engine.models.gguf import GgufFile

_FLOATS = frozenset({"F32", "F16", "BF16"})
_FOUR_BITS = frozenset({"Q4_0", "Q4_1", "Q4_K"})
_SMALLEST_GROUP = 32
_ROW_BLOCK = 16
"""The packed layout takes whole blocks of this many outputs."""


def load_decoder(file: GgufFile) -> Decoder:
    """A decoder from a mapped file."""
    config = read_config(file)
    reader = _Reader(file)
    embedding = file.tensors["token_embd.weight"]
    factors = reader.vector("rope_freqs.weight") if "rope_freqs.weight" in file.tensors else None
    head = "output.weight" if "output.weight" in file.tensors else embedding.name
    return Decoder(
        config=config,
        embed=_Lookup(file, embedding.name),
        layers=[_layer(reader, f"blk.{index}.") for index in range(config.layers)],
        final_norm=reader.vector("output_norm.weight"),
        head=reader.linear([head]),
        frequencies=frequencies(config, factors),
        head_scales=head_scales(config),
    )


def _layer(reader: _Reader, prefix: str) -> Layer:
    return Layer(
        attention_norm=reader.vector(prefix + "attn_norm.weight"),
        queries_keys_values=reader.linear([f"{prefix}attn_{part}.weight" for part in "qkv"]),
        attention_out=reader.linear([prefix + "attn_output.weight"]),
        feed_forward_norm=reader.vector(prefix + "ffn_norm.weight"),
        gate_up=reader.linear([prefix + "ffn_gate.weight", prefix + "ffn_up.weight"]),
        down=reader.linear([prefix + "ffn_down.weight"]),
    )


class _Reader:
    def __init__(self, file: GgufFile) -> None:
        self._file = file

    def vector(self, name: str) -> Tensor:
        """A norm's weights, float32."""
        tensor = self._file.tensors[name]
        return read_floats(self._file.blocks(name), tensor.type.name, tensor.shape).float().clone()

    def linear(self, names: Sequence[str]) -> Linear:
        """Matrices over one input as one projection, in their codes where all have one type."""
        tensors = [self._file.tensors[name] for name in names]
        kinds = {tensor.type.name for tensor in tensors}
        if kinds & _FLOATS or len(kinds) > 1:
            return Dense(torch.cat([self._weights(name) for name in names]))
        parts = [self._codes(name) for name in names]
        codes = Codes(*(torch.cat(same) for same in zip(*map(_fields, parts), strict=True)))
        if codes.group < _SMALLEST_GROUP or len(codes.codes) % _ROW_BLOCK:
            return Dense(codes.weights())
        return Packed4(codes) if kinds <= _FOUR_BITS else Packed8(codes)

    def _codes(self, name: str) -> Codes:
        tensor = self._file.tensors[name]
        rows, columns = tensor.shape
        return read_codes(self._file.blocks(name), tensor.type.name, (rows, columns))

    def _weights(self, name: str) -> Tensor:
        tensor = self._file.tensors[name]
        if tensor.type.name in _FLOATS:
            return read_floats(self._file.blocks(name), tensor.type.name, tensor.shape)
        return self._codes(name).weights()


class _Lookup:
    """Embedding rows straight from the file's blocks, exact in float32."""

    def __init__(self, file: GgufFile, name: str) -> None:
        tensor = file.tensors[name]
        self._kind = tensor.type.name
        self._columns = tensor.shape[1]
        self._block_bytes = tensor.type.size_bytes
        self._blocks = file.blocks(name).view(tensor.shape[0], -1)

    def __call__(self, ids: Tensor) -> Tensor:
        rows = self._blocks[ids]
        if self._kind in _FLOATS:
            return read_floats(rows, self._kind, (len(ids), self._columns)).float()
        return read_codes(
            rows.view(-1, self._block_bytes), self._kind, (len(ids), self._columns)
        ).weights()


def _fields(codes: Codes) -> tuple[Tensor, Tensor, Tensor]:
    return codes.codes, codes.scales, codes.offsets
