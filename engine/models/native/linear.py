"""Projections whose every row has the same bits alone and beside others: packed codes, or bfloat16.

torch's packed 4-bit product computes (code - 8) * scale + zero in groups of at least 32 columns,
with scales and zeros in bfloat16. That rounding is all that changes a file's numbers: relative to
the exact product the error is about 0.3 %, that of bfloat16 weights 0.2 %.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor

if TYPE_CHECKING:
    from engine.models.blocks import Codes

_NIBBLE = 16
_CODE_ZERO = 8
_SIGNED_ZERO = 128


class Linear(Protocol):
    """y = W x for rows x (rows, inputs) in bfloat16."""

    def __call__(self, rows: Tensor) -> Tensor:
        """(rows, outputs) in bfloat16."""
        ...

    def in_full(self, rows: Tensor) -> Tensor:
        """(rows, outputs) in float32, as precise as the kernel gives them."""
        ...


class Dense:
    """Weights in bfloat16, (outputs, inputs)."""

    def __init__(self, weight: Tensor) -> None:
        self._weight = weight.to(torch.bfloat16).contiguous()

    def __call__(self, rows: Tensor) -> Tensor:
        """(rows, outputs) in bfloat16."""
        return torch.nn.functional.linear(rows, self._weight)

    def in_full(self, rows: Tensor) -> Tensor:
        """The same in float32."""
        return self(rows).float()


class Packed4:
    """4-bit codes as the file has them, in torch's packed layout."""

    def __init__(self, codes: Codes) -> None:
        self._group = codes.group
        self._weight, self._scales = _packed(codes.codes, codes.scales, codes.offsets)

    def __call__(self, rows: Tensor) -> Tensor:
        """(rows, outputs) in bfloat16."""
        return torch.ops.aten._weight_int4pack_mm_for_cpu(
            rows, self._weight, self._group, self._scales
        )

    def in_full(self, rows: Tensor) -> Tensor:
        """The same in float32."""
        return self(rows).float()


class Packed8:
    """Codes of up to 8 bits as two 4-bit planes, 16 * high + low, added up in float32."""

    def __init__(self, codes: Codes) -> None:
        self._group = codes.group
        signed = int(codes.codes.min()) < 0
        whole = codes.codes.to(torch.int16) + (_SIGNED_ZERO if signed else 0)
        high, low = whole // _NIBBLE, whole % _NIBBLE
        # The product counts codes from 8. Moving the high plane to both sides of it keeps its zeros
        # small: large ones would be rounded to bfloat16 apart from the scales that cancel them.
        middle = (int(high.max()) + 1) // 2
        scales = _NIBBLE * codes.scales
        least = codes.offsets - (_SIGNED_ZERO if signed else 0) * codes.scales
        offsets = least + (middle - _CODE_ZERO) * scales
        self._high = _packed(high + _CODE_ZERO - middle, scales, offsets)
        self._low = _packed(low, codes.scales, torch.zeros_like(codes.scales))

    def __call__(self, rows: Tensor) -> Tensor:
        """(rows, outputs) in bfloat16."""
        return self.in_full(rows).to(torch.bfloat16)

    def in_full(self, rows: Tensor) -> Tensor:
        """(rows, outputs) in float32: the planes' sum is not rounded again."""
        multiply = torch.ops.aten._weight_int4pack_mm_for_cpu
        high = multiply(rows, self._high[0], self._group, self._high[1])
        low = multiply(rows, self._low[0], self._group, self._low[1])
        return high.to(torch.float32) + low


def _packed(codes: Tensor, scales: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor]:
    weight = torch.ops.aten._convert_weight_to_int4pack_for_cpu(codes.to(torch.int32), 1)
    zeros = offsets + _CODE_ZERO * scales
    pairs = torch.stack([scales, zeros], dim=-1).to(torch.bfloat16).transpose(0, 1).contiguous()
    return weight, pairs
