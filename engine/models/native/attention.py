"""Attention in which a row's bits follow from its position and its ancestors alone.

Sums of floating-point numbers depend on their order, so every row must meet the same lengths in the
same order whether it is scored alone, in a chain or in a tree. Each row at position t splits its
keys at a boundary b(t), a multiple of 32 at least 32 positions back: up to it stands the committed
prefix, which all rows with the same b share; behind it, at most 64 keys, gathered along the row's
own path and padded to 64. One softmax runs over both, and the two weighted sums are added.

All in float32: torch's batched float32 product gives a row the same bits whatever stands beside it,
and calls faster than the bfloat16 one, which copies what it multiplies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from engine.models.native.few_rows import padded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

STEP = 32
WINDOW = 2 * STEP
DEEPEST = STEP
"""Trees must stay less deep than this, so that what lies before a boundary is committed."""


_FEWEST_ROWS = 4
"""Products of fewer rows are summed in another order."""


def boundary(position: int) -> int:
    """Where a row's own window begins: b(t)."""
    return max(0, (position - STEP) // STEP * STEP)


@dataclass(frozen=True)
class Span:
    """Rows of a pass that share a boundary. first, last: their places in the pass.

    begin: the first slot that any of them sees, 0 without a sliding window; a multiple of STEP.
    slots: (rows, WINDOW) cache slots of each row's window in path order; None where they are simply
    the WINDOW slots from the boundary on.
    blocked: (rows * queries a lane, boundary - begin + WINDOW) what is added to the scores, 0 or
    minus infinity; at least _FEWEST_ROWS of them.
    """

    first: int
    last: int
    begin: int
    boundary: int
    slots: Tensor | None
    blocked: Tensor


@dataclass(frozen=True)
class Rows:
    """The rows of a pass.

    positions: absolute. paths: per row the slots of its ancestors in the pass and itself, from the
    top. prefix: how many slots before them hold committed rows, which stand at their positions.
    """

    positions: Sequence[int]
    paths: Sequence[Sequence[int]]
    prefix: int

    def without_first(self, count: int) -> Rows:
        """The others, which may still descend from the first."""
        return Rows(self.positions[count:], self.paths[count:], self.prefix)

    def chained(self) -> int:
        """How many of the first rows stand one behind the other, each seeing all before it."""
        for row, (position, path) in enumerate(zip(self.positions, self.paths, strict=True)):
            if position != self.prefix + row or len(path) != row + 1:
                return row
        return len(self.positions)


def spans(
    rows: Rows, *, queries: int, sliding: int | None = None, device: str = "cpu"
) -> list[Span]:
    """How the rows of a pass look at the cache.

    queries: of one row, in a lane; sliding: how many positions back a row sees, itself included.
    """
    found: list[Span] = []
    first = 0
    for row, position in enumerate(rows.positions):
        if boundary(position) != boundary(rows.positions[first]):
            found.append(_span(rows, range(first, row), queries, sliding, device))
            first = row
    return [*found, _span(rows, range(first, len(rows.positions)), queries, sliding, device)]


def _span(rows: Rows, places: range, queries: int, sliding: int | None, device: str) -> Span:
    start = boundary(rows.positions[places.start])
    # The lowest position with this boundary is STEP further, or 0.
    begin = 0 if sliding is None else max(0, start + STEP + 1 - sliding) // STEP * STEP
    begin = min(begin, start)
    straight, windows = True, [list[int]() for _ in places]
    blocked = torch.zeros(len(places), start - begin + WINDOW)
    for at, row in enumerate(places):
        position = rows.positions[row]
        # Only a chain reaches past the prefix this far, and there slots are positions.
        path = rows.paths[row][max(0, start - rows.prefix) :]
        seen = [*range(start, rows.prefix), *path]
        straight = straight and seen == list(range(start, position + 1))
        windows[at] = [*seen, *[start] * (WINDOW - len(seen))]
        blocked[at, start - begin + len(seen) :] = -torch.inf
        if sliding is not None:
            blocked[at, : max(0, position + 1 - sliding - begin)] = -torch.inf
    return Span(
        first=places.start,
        last=places.stop,
        begin=begin,
        boundary=start,
        slots=None if straight else torch.tensor(windows, device=device),
        blocked=padded(blocked.repeat_interleave(queries, dim=0), _FEWEST_ROWS).to(device),
    )


def attend(queries: Tensor, keys: Tensor, values: Tensor, where: Sequence[Span]) -> Tensor:
    """Weighted values for each row.

    queries: (lanes, rows, queries, width), scaled; keys: (lanes, width, slots); values: (lanes,
    slots, width); float32.
    Returns (rows, lanes * queries * width) bfloat16.
    """
    parts = [_attend_span(queries[:, span.first : span.last], keys, values, span) for span in where]
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def _attend_span(queries: Tensor, keys: Tensor, values: Tensor, span: Span) -> Tensor:
    lanes, rows, each, width = queries.shape
    begin, start, end = span.begin, span.boundary, span.boundary + WINDOW
    count = rows * each
    together = padded(queries.reshape(lanes, count, width), _FEWEST_ROWS)
    if span.slots is None:
        scores = torch.baddbmm(span.blocked, together, keys[..., begin:end])
    else:
        near = keys[..., span.slots.flatten()].view(lanes, width, rows, WINDOW)
        own = padded(queries, _FEWEST_ROWS) @ near.transpose(1, 2)
        before = torch.bmm(together, keys[..., begin:start])
        own = padded(own[:, :, :each].reshape(lanes, count, WINDOW), _FEWEST_ROWS)
        scores = torch.cat([before, own], dim=-1) + span.blocked
    weights = torch.softmax(scores, dim=-1)
    before, own = torch.split_with_sizes(weights, [start - begin, WINDOW], 2)
    if span.slots is None:
        summed = torch.bmm(own, values[:, start:end])
    else:
        apart = padded(own[:, :count].reshape(lanes, rows, each, WINDOW), _FEWEST_ROWS)
        summed = (apart @ values[:, span.slots])[:, :, :each].reshape(lanes, count, width)
        summed = padded(summed, _FEWEST_ROWS)
    if start > begin:
        summed.baddbmm_(before, values[:, begin:start])
    out = summed[:, :count].bfloat16().view(lanes, rows, each, width)
    return out.transpose(0, 1).reshape(rows, -1)
