"""Lookahead's two stores: the window of parallel guesses and the pool of n-grams it has seen."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import torch

from engine.draft import Passengers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor


class JacobiWindow:
    """Columns of guesses for the positions ahead, one level a pass; Fu et al., arXiv 2402.02057.

    The lowest level is a run after the root. A column's higher levels go on from its place in that
    run, a position each, so that root, run and column read as one text; what the target says after
    the topmost token becomes the next level. Until all `order` - 1 levels are there, each pass adds
    one; from then on the lowest goes. The window moves on by one position a pass, whatever was
    committed: its tokens are guesses anyway.

    text: what the first run is made of, the latest of it.
    """

    def __init__(self, columns: int, order: int, text: Sequence[int]) -> None:
        self._columns = columns
        self._order = order
        run = columns + order - 3
        latest = text[-run:]
        self.levels = [[latest[place % len(latest)] for place in range(run)]]

    def rows(self) -> Passengers:
        """The whole window, the lowest level first."""
        offsets, sees = _layout(self._columns, self._order, len(self.levels))
        return Passengers(tuple(token for level in self.levels for token in level), offsets, sees)

    def advance(self, root: int, said: Sequence[int]) -> list[tuple[int, ...]]:
        """Go on by a pass; the n-grams that are complete now, one a column.

        root: the pass's. said: what the target said after the last `columns` rows.
        """
        lowest, *higher = self.levels
        if len(self.levels) < self._order - 1:
            self.levels = [lowest[1:], *higher, list(said)]
            return []
        self.levels = [higher[0][1:], *higher[1:], list(said)]
        return list(zip([root, *lowest], *higher, said, strict=True))


@cache
def _layout(columns: int, order: int, levels: int) -> tuple[tuple[int, ...], Tensor]:
    """Offsets of a window's rows, and which of them each sees."""
    before = order - 1 - levels  # tokens of the run in front of the first column's
    run = before + columns - 1
    rows = run + (levels - 1) * columns
    offsets, sees = list(range(1, run + 1)), torch.zeros(rows, rows, dtype=torch.bool)
    sees[:run, :run] = torch.ones(run, run, dtype=torch.bool).tril()
    for level in range(1, levels):
        for column in range(columns):
            row = len(offsets)
            sees[row, : before + column] = True
            sees[row, run + column : row + 1 : columns] = True
            offsets.append(before + column + level)
    return tuple(offsets), sees


class NgramPool:
    """What went on after a token: by first token the newest few n-grams, each without it."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._after: dict[int, dict[tuple[int, ...], None]] = {}

    def add(self, ngram: tuple[int, ...]) -> None:
        """Take one in as the newest; the oldest of its first token goes where there are more."""
        known = self._after.setdefault(ngram[0], {})
        known.pop(ngram[1:], None)
        known[ngram[1:]] = None
        if len(known) > self._most:
            del known[next(iter(known))]

    def after(self, token: int) -> list[tuple[int, ...]]:
        """The newest first."""
        return list(reversed(self._after.get(token, {})))
