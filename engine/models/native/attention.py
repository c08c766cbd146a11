"""Attention in which a row's bits follow from its position and its ancestors alone.

Sums of floating-point numbers depend on their order, so every row must meet the same shapes in the
same order whether it is scored alone, in a chain or in a tree. Each row at position t splits its
keys at a boundary b(t), a multiple of 32 at least 32 positions back: up to it stands the committed
prefix, which all rows with the same b share; behind it, at most 64 keys, gathered along the row's
own path and padded to 64. One softmax runs over both, and the two weighted sums are added.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

STEP = 32
WINDOW = 2 * STEP
DEEPEST = STEP
"""Trees must stay less deep than this, so that what lies before a boundary is committed."""

_MANY_SLOTS = 2048
_SMALL_PRODUCT = 16**3
_MOST_ROWS = 16
"""Rows in one product: from about 32 on, torch's bfloat16 `bmm` may sum in another order."""


def boundary(position: int) -> int:
    """Where a row's own window begins: b(t)."""
    return max(0, (position - STEP) // STEP * STEP)


@dataclass(frozen=True)
class Span:
    """Rows of a pass that share a boundary. first, last: their places in the pass.

    slots: (rows, WINDOW) cache slots of each row's window in path order; None where they are simply
    the WINDOW slots from the boundary on.
    blocked: (rows * group, WINDOW) what is added to the window's scores, 0 or minus infinity.
    """

    first: int
    last: int
    boundary: int
    slots: Tensor | None
    blocked: Tensor


def spans(
    positions: Sequence[int], paths: Sequence[Sequence[int]], *, prefix: int, group: int
) -> list[Span]:
    """How the rows of a pass look at the cache.

    positions: per row its absolute position; paths: per row the slots of its ancestors in the pass
    and itself, from the top; prefix: slots of the committed rows, which stand at their positions;
    group: query heads to a key head.
    """
    found: list[Span] = []
    first = 0
    while first < len(positions):
        start = boundary(positions[first])
        last = first
        most = min(len(positions), first + _MOST_ROWS)
        while last < most and boundary(positions[last]) == start:
            last += 1
        found.append(_span(range(first, last), start, positions, paths, prefix, group))
        first = last
    return found


def _span(
    rows: range,
    start: int,
    positions: Sequence[int],
    paths: Sequence[Sequence[int]],
    prefix: int,
    group: int,
) -> Span:
    windows: list[list[int]] = []
    blocked = torch.zeros(len(rows), WINDOW, dtype=torch.bfloat16)
    for at, row in enumerate(rows):
        # Only a chain reaches past the prefix this far, and there slots are positions.
        seen = [*range(start, prefix), *paths[row][max(0, start - prefix) :]]
        blocked[at, len(seen) :] = -torch.inf
        windows.append([*seen, *[start] * (WINDOW - len(seen))])
    straight = all(
        window[: positions[row] - start + 1] == list(range(start, positions[row] + 1))
        for row, window in zip(rows, windows, strict=True)
    )
    return Span(
        first=rows.start,
        last=rows.stop,
        boundary=start,
        slots=None if straight else torch.tensor(windows),
        blocked=blocked.repeat_interleave(group, dim=0),
    )


def attend(queries: Tensor, keys: Tensor, values: Tensor, where: Sequence[Span]) -> Tensor:
    """Weighted values for each row.

    queries: (kv heads, rows, group, width), scaled; keys, values: (kv heads, slots, width);
    bfloat16. Returns (rows, kv heads * group * width).
    """
    parts = [_attend_span(queries[:, span.first : span.last], keys, values, span) for span in where]
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def _attend_span(queries: Tensor, keys: Tensor, values: Tensor, span: Span) -> Tensor:
    heads, rows, group, width = queries.shape
    start, end, count = span.boundary, span.boundary + WINDOW, rows * group
    together = _padded(queries.reshape(heads, count, width), count, width)
    if span.slots is None:
        scores = _products(together, keys[:, :end].transpose(1, 2))[:, :count]
    else:
        own = _padded(queries, group, width) @ keys[:, span.slots].transpose(2, 3)
        scores = own[:, :, :group].reshape(heads, count, WINDOW)
        if start:
            before = _products(together, keys[:, :start].transpose(1, 2))[:, :count]
            scores = torch.cat([before, scores], dim=-1)
    # bfloat16's own kernels for sums and softmax work in float32 and round once.
    scores[..., start:] += span.blocked
    weights = torch.softmax(scores, dim=-1)
    summed = _own_sum(weights[..., start:], values, span, group)
    if start:
        padded = _padded(weights[..., :start], count, width)
        summed = summed + _products(padded, values[:, :start])[:, :count]
    return summed.view(heads, rows, group, width).transpose(0, 1).reshape(rows, -1)


def _own_sum(weights: Tensor, values: Tensor, span: Span, group: int) -> Tensor:
    """The weighted values of each row's own window, (heads, rows * group, width)."""
    heads, count, window = weights.shape
    width = values.shape[-1]
    if span.slots is None:
        own = values[:, span.boundary : span.boundary + window]
        return _products(_padded(weights, count, width), own)[:, :count]
    apart = _padded(weights.reshape(heads, -1, group, window), group, width)
    return (apart @ values[:, span.slots])[:, :, :group].reshape(heads, count, width)


def _products(rows: Tensor, matrices: Tensor) -> Tensor:
    """(heads, m, k) times a stretch of the cache, (heads, k, n).

    `bmm` copies the stretch before it multiplies; where it is long, a product a head is quicker,
    since one head's rows are contiguous. The length follows from the position alone.
    """
    if max(matrices.shape[1:]) < _MANY_SLOTS:
        return torch.bmm(rows, matrices)
    products = rows.new_empty(rows.shape[0], rows.shape[1], matrices.shape[2])
    for row, matrix, product in zip(rows, matrices, products, strict=True):
        torch.mm(row, matrix, out=product)
    return products


def _padded(rows: Tensor, count: int, width: int) -> Tensor:
    """More rows of zeros where a product is so small that torch takes another kernel.

    oneDNN's product is used from 16^3 multiplications on; the smallest here has STEP * width a row.
    """
    missing = _SMALL_PRODUCT // (STEP * width) + 1 - count
    return functional.pad(rows, (0, 0, 0, missing)) if missing > 0 else rows
