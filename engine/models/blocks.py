"""GGUF blocks as integer codes with their scales and offsets, exactly as the file has them.

Every type here is affine in its codes: weight = scale * code + offset, one scale and offset a
group. Block layouts: ggml's definitions of its quantised types (facts only).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor


@dataclass(frozen=True, slots=True)
class Codes:
    """A matrix in codes.

    codes: (rows, columns) int8, as signed or unsigned as the type has them.
    scales, offsets: (rows, columns / group) float32, computed from the file's own numbers.
    """

    codes: Tensor
    scales: Tensor
    offsets: Tensor

    @property
    def group(self) -> int:
        """Columns that share a scale."""
        return self.codes.shape[1] // self.scales.shape[1]

    def to(self, device: str) -> Codes:
        """The same on a device."""
        return Codes(self.codes.to(device), self.scales.to(device), self.offsets.to(device))

    def weights(self) -> Tensor:
        """The file's exact values, (rows, columns) float32."""
        rows, columns = self.codes.shape
        grouped = self.codes.view(rows, -1, self.group).to(torch.float32)
        scales, offsets = self.scales[..., None], self.offsets[..., None]
        return grouped.mul_(scales).add_(offsets).view(rows, columns)


def read_codes(blocks: Tensor, kind: str, shape: tuple[int, int]) -> Codes:
    """Blocks (blocks, bytes) of a quantised type as codes of a (rows, columns) matrix."""
    codes, scales, offsets = _READERS[kind](blocks)
    rows, columns = shape
    return Codes(
        codes.reshape(rows, columns).view(torch.int8),
        scales.reshape(rows, -1),
        offsets.reshape(rows, -1),
    )


def read_floats(blocks: Tensor, kind: str, shape: tuple[int, ...]) -> Tensor:
    """Blocks of an unquantised type, in the file's own dtype."""
    dtype = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}[kind]
    return blocks.reshape(-1).view(dtype).view(shape)


_Parts = tuple["Tensor", "Tensor", "Tensor"]


def _q4_0(blocks: Tensor) -> _Parts:
    scale = _half(blocks, 0)
    return _nibbles(blocks[:, 2:]), scale, -8.0 * scale


def _q4_1(blocks: Tensor) -> _Parts:
    return _nibbles(blocks[:, 4:]), _half(blocks, 0), _half(blocks, 2)


def _q5_0(blocks: Tensor) -> _Parts:
    scale = _half(blocks, 0)
    return _nibbles(blocks[:, 6:]) + 16 * _bits(blocks[:, 2:6]), scale, -16.0 * scale


def _q5_1(blocks: Tensor) -> _Parts:
    codes = _nibbles(blocks[:, 8:]) + 16 * _bits(blocks[:, 4:8])
    return codes, _half(blocks, 0), _half(blocks, 2)


def _q8_0(blocks: Tensor) -> _Parts:
    scale = _half(blocks, 0)
    return blocks[:, 2:].contiguous().view(torch.int8), scale, torch.zeros_like(scale)


def _q4_k(blocks: Tensor) -> _Parts:
    scales, offsets = _k_scales(blocks)
    return _nibbles(blocks[:, 16:].reshape(-1, 4, 32)), scales, offsets


def _q5_k(blocks: Tensor) -> _Parts:
    scales, offsets = _k_scales(blocks)
    fifth = blocks[:, 16:48]
    # Bit g of a byte belongs to the g-th group of 32.
    high = torch.stack([fifth >> bit & 1 for bit in range(8)], dim=1)
    codes = _nibbles(blocks[:, 48:].reshape(-1, 4, 32)).reshape(-1, 8, 32)
    return codes + 16 * high, scales, offsets


def _q6_k(blocks: Tensor) -> _Parts:
    low, high = blocks[:, :128].reshape(-1, 2, 64), blocks[:, 128:192].reshape(-1, 2, 1, 32)
    nibbles = torch.stack([low & 15, low >> 4], dim=2).reshape(-1, 2, 4, 32)
    shifts = torch.tensor([0, 2, 4, 6], dtype=torch.uint8).view(1, 1, 4, 1)
    codes = nibbles + 16 * (high >> shifts & 3)
    scales = _half(blocks, 208) * blocks[:, 192:208].contiguous().view(torch.int8)
    return codes, scales, -32.0 * scales


_READERS: dict[str, Callable[[Tensor], _Parts]] = {
    "Q4_0": _q4_0,
    "Q4_1": _q4_1,
    "Q5_0": _q5_0,
    "Q5_1": _q5_1,
    "Q8_0": _q8_0,
    "Q4_K": _q4_k,
    "Q5_K": _q5_k,
    "Q6_K": _q6_k,
}


def _half(blocks: Tensor, at: int) -> Tensor:
    """The float16 at a byte offset of each block, (blocks, 1) float32."""
    return blocks[:, at : at + 2].contiguous().view(torch.float16).to(torch.float32)


def _nibbles(packed: Tensor) -> Tensor:
    """Two codes a byte: all low halves of a run come before all high ones."""
    packed = packed.contiguous()  # elementwise kernels crawl over the gaps between blocks
    return torch.cat([packed & 15, packed >> 4], dim=-1)


def _bits(packed: Tensor) -> Tensor:
    """32 bits from 4 bytes, the lowest first."""
    shifts = torch.arange(8, dtype=torch.uint8)
    return (packed[:, :, None] >> shifts & 1).reshape(len(packed), 32)


def _k_scales(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """Eight scales and offsets of a super-block, from 6-bit numbers in 12 bytes."""
    packed = blocks[:, 4:16]
    first, second, last = packed[:, :4], packed[:, 4:8], packed[:, 8:]
    scale = torch.cat([first & 63, last & 15 | first >> 6 << 4], dim=1).to(torch.float32)
    least = torch.cat([second & 63, last >> 4 | second >> 6 << 4], dim=1).to(torch.float32)
    return _half(blocks, 0) * scale, -_half(blocks, 2) * least
