"""Projections whose every row has the same bits alone and beside others: packed codes, or dense.

torch's packed 4-bit product computes (code - 8) * scale + zero in groups of at least 32 columns,
with scales and zeros in bfloat16. Relative to the exact product (root mean square; weights and
inputs normally distributed, at any scale; tested):

| stored as | here | error |
|---|---|---|
| Q4_0, Q4_1, Q4_K | their codes | 0.3 % |
| Q8_0 | its codes, in two 4-bit planes | 0.35 % |
| Q5_0, Q5_1, Q5_K | their codes, in two 4-bit planes | 0.5 % |
| Q6_K | 8-bit codes in groups of 32 instead of 16, in two planes | 0.7 % |
| F16, BF16, F32, matrices that don't fill the packed layout | bfloat16 | 0.3 % |
| a folder's weights, packed to 8 bits | 8-bit codes in groups of 32, in two planes | 0.7 % |
| a folder's weights, packed to 4 bits | 4-bit codes in groups of 32 | 8 % |

Where a few weights outweigh the rest of their group twentyfold, up to 1 %, and of a folder's
weights up to 1.5 % packed to 8 bits and 13 % to 4.
"""

# torch's own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor
from torch.nn import functional

from engine.devices import fast_dtype
from engine.models.blocks import Codes
from engine.models.native.few_rows import padded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

_NIBBLE = 16
_CODE_ZERO = 8
_SIGNED_ZERO = 128
_LARGEST_CODE = 127
_SMALLEST_GROUP = 32
_ROW_BLOCK = 16
"""The packed layout takes whole blocks of this many outputs."""

_SLICE_ROWS = 4096
_FEWEST_ROWS = 8
"""Float32 products of fewer rows are summed in another order."""

_CUDA_INNER_TILES = 2
"""How many tiles of 16 inputs the CUDA layout puts together: 2, for any multiple of 32 inputs."""

_FOUR_BITS = frozenset({"Q4_0", "Q4_1", "Q4_K"})


class Linear(Protocol):
    """y = W x for rows x (rows, inputs) in bfloat16."""

    def __call__(self, rows: Tensor) -> Tensor:
        """(rows, outputs) in bfloat16."""
        ...

    def in_full(self, rows: Tensor) -> Tensor:
        """(rows, outputs) in float32, as precise as the kernel gives them."""
        ...


def linear_of_floats(weight: Tensor) -> Linear:
    """A projection with weights (outputs, inputs) in bfloat16."""
    return Dense(weight)


def linear_for_many_rows(weight: Tensor) -> Linear:
    """The same for a prompt's rows, in float32 where the processor only emulates bfloat16."""
    if fast_dtype(weight.device.type) == torch.bfloat16:
        return Dense(weight)
    return DenseFloat32(weight)


def linear_of_codes(codes: Codes, kind: str) -> Linear:
    """A projection that keeps a block type's codes where torch has a product for them."""
    if not packs(*codes.codes.shape):
        return Dense(codes.weights())
    if codes.group < _SMALLEST_GROUP:
        return Packed8(quantised(codes.weights(), bits=8))
    return Packed4(codes) if kind in _FOUR_BITS else Packed8(codes)


def packs(outputs: int, inputs: int) -> bool:
    """Whether a matrix fills the packed layout."""
    return not (outputs % _ROW_BLOCK or inputs % _SMALLEST_GROUP)


def joined(parts: Sequence[Linear], order: Tensor | None) -> Linear:
    """Projections of one input side by side, their outputs in `order`."""
    return _Joined(parts, order)


def quantised(weights: Tensor, *, bits: int) -> Codes:
    """Weights (rows, columns) as codes of 4 or 8 bits in groups of 32, rounded to the nearest.

    8 bits are symmetric; 4 bits reach from each group's least weight to its largest.
    """
    grouped = weights.float().unflatten(1, (-1, _SMALLEST_GROUP))
    if bits == 8:
        scales = grouped.abs().amax(dim=-1) / _LARGEST_CODE
        offsets = torch.zeros_like(scales)
    else:
        offsets = grouped.amin(dim=-1)
        scales = (grouped.amax(dim=-1) - offsets) / (_NIBBLE - 1)
    steps = torch.where(scales > 0, scales, 1.0)[..., None]
    codes = ((grouped - offsets[..., None]) / steps).round().to(torch.int8)
    return Codes(codes.flatten(1), scales, offsets)


class Dense:
    """Weights in bfloat16, (outputs, inputs)."""

    def __init__(self, weight: Tensor) -> None:
        self._weight = weight.to(torch.bfloat16).contiguous()

    def __call__(self, rows: Tensor) -> Tensor:
        """(rows, outputs) in bfloat16."""
        if len(rows) == 1:
            # torch's product of a matrix and a single row adds up in another order.
            return functional.linear(rows.repeat(2, 1), self._weight)[:1]
        return functional.linear(rows, self._weight)

    def in_full(self, rows: Tensor) -> Tensor:
        """The same in float32."""
        return self(rows).float()


class DenseFloat32:
    """Weights in float32, (outputs, inputs): twice the room, and several times the speed."""

    def __init__(self, weight: Tensor) -> None:
        self._weight = weight.to(torch.float32).contiguous()

    def __call__(self, rows: Tensor) -> Tensor:
        """(rows, outputs) in bfloat16."""
        return self.in_full(rows).to(torch.bfloat16)

    def in_full(self, rows: Tensor) -> Tensor:
        """(rows, outputs) in float32."""
        filled = padded(rows.float(), _FEWEST_ROWS)
        return functional.linear(filled, self._weight)[: len(rows)]


class Packed4:
    """4-bit codes as the file has them, in torch's packed layout."""

    def __init__(self, codes: Codes) -> None:
        self._group = codes.group
        self._multiply = _product(codes.codes.device.type)
        self._weight, self._scales = _packed(
            (part.codes, part.scales, part.offsets) for part in _slices(codes)
        )

    def __call__(self, rows: Tensor) -> Tensor:
        """(rows, outputs) in bfloat16."""
        return self._multiply(rows, self._weight, self._group, self._scales)

    def in_full(self, rows: Tensor) -> Tensor:
        """The same in float32."""
        return self(rows).float()


class Packed8:
    """Codes of up to 8 bits as two 4-bit planes, 16 * high + low, added up in float32."""

    def __init__(self, codes: Codes) -> None:
        self._group = codes.group
        self._multiply = _product(codes.codes.device.type)
        zero = _SIGNED_ZERO if int(codes.codes.min()) < 0 else 0
        # The product counts codes from 8. Moving the high plane to both sides of it keeps its zeros
        # small: large ones would be rounded to bfloat16 apart from the scales that cancel them.
        highest = (int(codes.codes.max()) + zero) // _NIBBLE
        middle = (highest + 1) // 2
        self._high = _packed(_high_plane(part, zero, middle) for part in _slices(codes))
        self._low = _packed(_low_plane(part, zero) for part in _slices(codes))

    def __call__(self, rows: Tensor) -> Tensor:
        """(rows, outputs) in bfloat16."""
        return self.in_full(rows).to(torch.bfloat16)

    def in_full(self, rows: Tensor) -> Tensor:
        """(rows, outputs) in float32: the planes' sum is not rounded again."""
        high = self._multiply(rows, self._high[0], self._group, self._high[1])
        low = self._multiply(rows, self._low[0], self._group, self._low[1])
        return high.to(torch.float32) + low


class _Joined:
    def __init__(self, parts: Sequence[Linear], order: Tensor | None) -> None:
        self._parts = parts
        self._order = order

    def __call__(self, rows: Tensor) -> Tensor:
        return self._together([part(rows) for part in self._parts])

    def in_full(self, rows: Tensor) -> Tensor:
        return self._together([part.in_full(rows) for part in self._parts])

    def _together(self, outputs: list[Tensor]) -> Tensor:
        both = torch.cat(outputs, dim=-1)
        return both if self._order is None else both[:, self._order]


def _high_plane(codes: Codes, zero: int, middle: int) -> _Plane:
    high = (codes.codes.to(torch.int16) + zero) // _NIBBLE
    scales = _NIBBLE * codes.scales
    offsets = codes.offsets - zero * codes.scales + (middle - _CODE_ZERO) * scales
    return high + _CODE_ZERO - middle, scales, offsets


def _low_plane(codes: Codes, zero: int) -> _Plane:
    low = (codes.codes.to(torch.int16) + zero) % _NIBBLE
    return low, codes.scales, torch.zeros_like(codes.scales)


_Plane = tuple[Tensor, Tensor, Tensor]
"""4-bit codes with their scales and offsets."""


def _slices(codes: Codes) -> Iterator[Codes]:
    """Some outputs at a time: packing takes several times the room of what it packs."""
    for first in range(0, len(codes.codes), _SLICE_ROWS):
        part = slice(first, first + _SLICE_ROWS)
        yield Codes(codes.codes[part], codes.scales[part], codes.offsets[part])


def _packed(planes: Iterable[_Plane]) -> tuple[Tensor, Tensor]:
    weights, pairs = list[Tensor](), list[Tensor]()
    for codes, scales, offsets in planes:
        weights.append(_in_layout(codes))
        zeros = offsets + _CODE_ZERO * scales
        pairs.append(torch.stack([scales, zeros], dim=-1).to(torch.bfloat16))
    return torch.cat(weights), torch.cat(pairs).transpose(0, 1).contiguous()


def _in_layout(codes: Tensor) -> Tensor:
    """4-bit codes (outputs, inputs) as the device's product takes them."""
    if codes.device.type == "cpu":
        return torch.ops.aten._convert_weight_to_int4pack_for_cpu(codes.to(torch.int32), 1)
    pairs = codes.to(torch.uint8).view(len(codes), -1, 2)
    return torch.ops.aten._convert_weight_to_int4pack(
        pairs[..., 0] << 4 | pairs[..., 1], _CUDA_INNER_TILES
    )


def _product(device: str) -> Callable[[Tensor, Tensor, int, Tensor], Tensor]:
    """The device's packed product: rows, weight, group, scales."""
    if device == "cpu":
        return torch._weight_int4pack_mm_for_cpu  # pyright: ignore[reportPrivateImportUsage, reportPrivateUsage]
    return torch._weight_int4pack_mm  # pyright: ignore[reportPrivateImportUsage, reportPrivateUsage]
