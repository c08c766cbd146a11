"""The one column in which conversation, legend and composer stand."""

from __future__ import annotations

COLUMN_PIXELS = 680
EDGE_PIXELS = 24  # The least room left and right of it.


def column_in(width: int) -> tuple[int, int]:
    """Where the column begins in a space of this width, and how wide it is there."""
    pixels = max(min(COLUMN_PIXELS, width - 2 * EDGE_PIXELS), 0)
    return (width - pixels) // 2, pixels
