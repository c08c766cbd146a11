"""Attention over a stretch of a prompt, in blocks of rows on an absolute grid.

Every product has the shape of a whole block, whichever of its rows a stretch holds, so that a row's
bits follow from its position and what stands before it. Large products lane by lane keep all
threads busy; many small ones batched don't.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

BLOCK = 128
"""Rows of a block; a cache needs slots for whole ones."""

_STEP = 32


@dataclass(frozen=True)
class Block:
    """Rows of a stretch that lie in one block of the grid.

    first, last: their places in the stretch. offset: rows of the block before them.
    begin, end: the slots that any row of the whole block sees; masked_from: those before it are
    seen by all of them. blocked: (BLOCK * queries a lane, end - masked_from), 0 or minus infinity.
    """

    first: int
    last: int
    offset: int
    begin: int
    masked_from: int
    end: int
    blocked: Tensor


def whole_blocks(slots: int) -> int:
    """The slots of the blocks that hold so many rows."""
    return -(-slots // BLOCK) * BLOCK


def blocks(
    start: int, count: int, *, queries: int, sliding: int | None = None, device: str = "cpu"
) -> list[Block]:
    """How `count` rows from position `start` on, one behind the other, look at the cache.

    queries: of one row, in a lane; sliding: how many positions back a row sees, itself included.
    """
    triangle = torch.full((BLOCK, BLOCK), -torch.inf).triu(1).repeat_interleave(queries, dim=0)
    triangle = triangle.to(device)
    found: list[Block] = []
    for at in range(start // BLOCK * BLOCK, start + count, BLOCK):
        begin, masked_from, blocked = 0, at, triangle
        if sliding is not None and at + BLOCK > sliding:
            begin = masked_from = max(0, at + 1 - sliding) // _STEP * _STEP
            blocked = _window(at, begin, sliding).repeat_interleave(queries, dim=0).to(device)
        first, last = max(at, start), min(at + BLOCK, start + count)
        found.append(
            Block(
                first=first - start,
                last=last - start,
                offset=first - at,
                begin=begin,
                masked_from=masked_from,
                end=at + BLOCK,
                blocked=blocked,
            )
        )
    return found


def attend_in_blocks(
    queries: Tensor, keys: Tensor, values: Tensor, where: Sequence[Block]
) -> Tensor:
    """Weighted values for each row.

    queries: (lanes, rows, queries, width), scaled; keys: (lanes, width, slots); values: (lanes,
    slots, width); float32.
    Returns (rows, lanes * queries * width) bfloat16.
    """
    lanes, rows, each, width = queries.shape
    out = queries.new_empty(rows, lanes, each * width, dtype=torch.bfloat16)
    widest = BLOCK * each * max(block.end - block.begin for block in where)
    room = queries.new_empty(widest)
    mixed = queries.new_empty(BLOCK * each, width)
    asked = queries.new_zeros(BLOCK, each, width)
    for block in where:
        slots, count = slice(block.begin, block.end), block.last - block.first
        shape = (BLOCK * each, block.end - block.begin)
        scores = room[: shape[0] * shape[1]].view(shape)
        masked = scores[:, block.masked_from - block.begin :]
        inside = slice(block.offset, block.offset + count)
        for lane in range(lanes):
            asked[inside] = queries[lane, block.first : block.last]
            torch.mm(asked.view(-1, width), keys[lane, :, slots], out=scores)
            masked.add_(block.blocked)
            weights = torch.softmax(scores, -1, out=scores)  # in place, so that it stays at hand
            torch.mm(weights, values[lane, slots], out=mixed)
            out[block.first : block.last, lane] = mixed.view(BLOCK, -1)[inside]
    return out.view(rows, -1)


def _window(at: int, begin: int, sliding: int) -> Tensor:
    """What the rows of a block don't see from slot `begin` to the block's end: (BLOCK, slots)."""
    rows = torch.arange(at, at + BLOCK)[:, None]
    slots = torch.arange(begin, at + BLOCK)[None]
    unseen = (slots > rows) | (slots <= rows - sliding)
    return torch.zeros(unseen.shape).masked_fill_(unseen, -torch.inf)
