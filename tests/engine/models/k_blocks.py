"""Floats as Q4_K, Q5_K and Q6_K blocks, which the `gguf` package only reads.

Each group of weights is rounded to the nearest code. The layouts are ggml's (facts only); that they
are right is for the package's own dequantisation to say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Bytes = NDArray[np.uint8]

KINDS = ("Q4_K", "Q5_K", "Q6_K")
COLUMNS = 256
"""Of one block."""


def quantise(weights: Floats, kind: str) -> Bytes:
    """Weights (rows, columns) as blocks, (rows, bytes)."""
    blocks = weights.astype(np.float32).reshape(-1, COLUMNS)
    packed = _q6_k(blocks) if kind == "Q6_K" else _q45_k(blocks, bits=int(kind[1]))
    return packed.reshape(len(weights), -1)


def _q45_k(blocks: Floats, *, bits: int) -> Bytes:
    """Unsigned codes in groups of 32, each with a scale and a least value, both of 6 bits."""
    groups = blocks.reshape(-1, 8, 32)
    least = np.maximum(-groups.min(axis=2), 0.0)
    steps = (groups.max(axis=2) + least) / (2**bits - 1)
    scale, scales = _in_steps(steps, 63)
    offset, offsets = _in_steps(least, 63)
    widths = _positive(scale.astype(np.float32) * scales)[..., None]
    starts = (offset.astype(np.float32) * offsets)[..., None]
    codes = _codes((groups + starts) / widths, 2**bits - 1)
    parts = [_bytes(scale), _bytes(offset), _six_bits(scales, offsets)]
    if bits == 5:
        fifth = codes >> 4 & 1
        parts.append(np.bitwise_or.reduce(fifth << np.arange(8)[:, None], axis=1))
    low, high = (codes[:, first::2] & 15 for first in (0, 1))
    parts.append((low | high << 4).reshape(len(codes), -1))
    return np.concatenate([part.astype(np.uint8) for part in parts], axis=1)


def _q6_k(blocks: Floats) -> Bytes:
    """Codes from -32 to 31 in groups of 16, each with a scale of 8 bits, of either sign."""
    groups = blocks.reshape(-1, 16, 16)
    scale, scales = _in_steps(np.abs(groups).max(axis=2) / 31, 127)
    signs = np.where(np.arange(16) % 2, -1, 1)
    widths = (_positive(scale.astype(np.float32) * scales) * signs)[..., None]
    codes = _codes(groups / widths + 32, 63).reshape(-1, 2, 4, 32)
    low = codes[:, :, :2] & 15 | (codes[:, :, 2:] & 15) << 4
    high = np.bitwise_or.reduce((codes >> 4) << np.array([0, 2, 4, 6])[:, None], axis=2)
    parts = [low.reshape(len(codes), -1), high.reshape(len(codes), -1)]
    parts += [scales * signs, _bytes(scale)]
    return np.concatenate([part.astype(np.uint8) for part in parts], axis=1)


def _in_steps(values: Floats, most: int) -> tuple[NDArray[np.float16], NDArray[np.int64]]:
    """Values (blocks, groups) as one float16 a block, (blocks, 1), times whole numbers."""
    step = (values.max(axis=1, keepdims=True) / most).astype(np.float16)
    return step, _codes(values / _positive(step.astype(np.float32)), most)


def _six_bits(scales: NDArray[np.int64], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Eight pairs of 6-bit numbers in 12 bytes."""
    first = scales[:, :4] | scales[:, 4:] >> 4 << 6
    second = offsets[:, :4] | offsets[:, 4:] >> 4 << 6
    return np.concatenate([first, second, scales[:, 4:] & 15 | (offsets[:, 4:] & 15) << 4], axis=1)


def _codes(values: NDArray[np.floating[Any]], most: int) -> NDArray[np.int64]:
    return np.clip(np.rint(values), 0, most).astype(np.int64)


def _positive(values: Floats) -> Floats:
    return np.where(values > 0, values, 1.0)


def _bytes(halves: NDArray[np.float16]) -> Bytes:
    return halves.view(np.uint8)
