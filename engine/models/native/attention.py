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
"""Drafts must stay less deep than this, so that what lies before a boundary is always committed."""

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
    blocked: (rows, 1, boundary + WINDOW) what is added to the scores, 0 or minus infinity.
    """

    first: int
    last: int
    boundary: int
    slots: Tensor | None
    blocked: Tensor


def spans(positions: Sequence[int], paths: Sequence[Sequence[int]], prefix: int) -> list[Span]:
    """How the rows of a pass look at the cache.

    positions: per row its absolute position; paths: per row the slots of its ancestors in the pass
    and itself, from the top; prefix: slots of the committed rows, which stand at their positions.
    """
    found: list[Span] = []
    first = 0
    while first < len(positions):
        start = boundary(positions[first])
        last = first
        most = min(len(positions), first + _MOST_ROWS)
        while last < most and boundary(positions[last]) == start:
            last += 1
        found.append(_span(first, last, start, positions, paths, prefix))
        first = last
    return found


def _span(
    first: int,
    last: int,
    start: int,
    positions: Sequence[int],
    paths: Sequence[Sequence[int]],
    prefix: int,
) -> Span:
    windows: list[list[int]] = []
    blocked = torch.zeros(last - first, 1, start + WINDOW)
    for row in range(first, last):
        # Only a chain reaches past the prefix this far, and there slots are positions.
        seen = [*range(start, prefix), *paths[row][max(0, start - prefix) :]]
        blocked[row - first, 0, start + len(seen) :] = -torch.inf
        windows.append([*seen, *[start] * (WINDOW - len(seen))])
    straight = all(
        window[: positions[first + at] - start + 1] == list(range(start, positions[first + at] + 1))
        for at, window in enumerate(windows)
    )
    return Span(first, last, start, None if straight else torch.tensor(windows), blocked)


def attend(queries: Tensor, keys: Tensor, values: Tensor, where: Sequence[Span]) -> Tensor:
    """Weighted values for each row.

    queries: (kv heads, rows, group, width), scaled; keys, values: (kv heads, slots, width);
    bfloat16. Returns (rows, kv heads * group * width).
    """
    parts = [_attend_span(queries[:, span.first : span.last], keys, values, span) for span in where]
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def _attend_span(queries: Tensor, keys: Tensor, values: Tensor, span: Span) -> Tensor:
    heads, rows, group, width = queries.shape
    start, end = span.boundary, span.boundary + WINDOW
    together = _padded(queries.reshape(heads, rows * group, width), rows * group, width)
    if span.slots is None:
        own = torch.bmm(together, keys[:, start:end].transpose(1, 2))
        own = own[:, : rows * group].view(heads, rows, group, WINDOW)
    else:
        apart = _padded(queries, group, width)
        own = torch.matmul(apart, keys[:, span.slots].transpose(2, 3))[:, :, :group]
    scores = own
    if start:
        before = torch.bmm(together, keys[:, :start].transpose(1, 2))[:, : rows * group]
        scores = torch.cat([before.view(heads, rows, group, start), own], dim=-1)
    weights = torch.softmax(scores.float() + span.blocked, dim=-1).to(torch.bfloat16)
    summed = _own_sum(weights[..., start:], values, span, width)
    if start:
        earlier = weights[..., :start].reshape(heads, rows * group, start)
        sums = torch.bmm(_padded(earlier, rows * group, width), values[:, :start])
        summed = summed.float() + sums[:, : rows * group].view(heads, rows, group, width)
    return summed.to(torch.bfloat16).permute(1, 0, 2, 3).reshape(rows, -1)


def _own_sum(weights: Tensor, values: Tensor, span: Span, width: int) -> Tensor:
    """The weighted values of each row's own window, (heads, rows, group, width)."""
    heads, rows, group, window = weights.shape
    if span.slots is not None:
        padded = _padded(weights, group, width)
        return torch.matmul(padded, values[:, span.slots])[:, :, :group]
    flat = _padded(weights.reshape(heads, rows * group, window), rows * group, width)
    sums = torch.bmm(flat, values[:, span.boundary : span.boundary + window])
    return sums[:, : rows * group].view(heads, rows, group, width)


def _padded(rows: Tensor, count: int, width: int) -> Tensor:
    """More rows of zeros where a product is so small that torch takes another kernel.

    oneDNN's product is used from 16^3 multiplications on; the smallest here has STEP * width a row.
    """
    missing = _SMALL_PRODUCT // (STEP * width) + 1 - count
    return functional.pad(rows, (0, 0, 0, missing)) if missing > 0 else rows
