"""What a pass over k rows costs at a cache length: measured, and corrected by live rounds.

Costs climb in steps (on a CPU with packed weights, of four rows), so a count that nobody measured
is taken from the nearest measured one above it, never from between two.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

EDGES_FIRST = (1, 4, 5, 8, 9, 2, 3, 12, 13, 16, 6, 7, 10, 11, 14, 15, 24, 32, 48, 64)
"""The counts of rows that are measured, in the order of what they tell where time is short."""

COUNTS = tuple(sorted(EDGES_FIRST))
MOST_ROWS = COUNTS[-1]

LENGTHS = (16, 256, 512, 2048, 8192, 32768)
"""The cache lengths between which costs are interpolated; the long ones only live rounds fill."""

_PACE_ROUNDS = 3
"""From so many live rounds it is told how fast the machine is now: from the quickest of them."""

_FEW = 8
"""So many live rounds tell what a cell costs now; until then a deviation is the cell's own."""

_MOST_SLOWER = 0.7
"""What disturbs a round slows it, so a deviation upwards counts, as a logarithm, up to here."""

_CELL_STEP, _MACHINE_STEP, _MOST_AT_ONCE = 0.03, 0.2, 0.3
"""Afterwards: how much of a deviation's logarithm a round passes on, and its limit; one slow round
moves its cell by less than one part in a hundred."""

_GUESSED_SLOPE = 0.25
"""What every further row costs, in rounds of one, while nothing but one row has been measured."""

_FRESH_ROUNDS, _FRESH_TOKENS = 16, 64
"""How long a table of ratios serves before it is worked out anew."""


@dataclass(slots=True)
class _Cell:
    """live: live rounds in which it was seen; is_new: none of its seconds were timed before."""

    seconds: float
    live: int = 0
    is_new: bool = False


class CostModel:
    """Seconds of a round, its drafting left out, per count of rows and cache length.

    A machine that slows down or recovers moves all cells alike, so that ratios stay. It is told
    from a cell that was measured wrongly by this: it changes cells that live rounds have seen.
    """

    def __init__(self, readings: Mapping[int, Mapping[int, float]] | None = None) -> None:
        self._cells: dict[int, dict[int, _Cell]] = {length: {} for length in LENGTHS}
        self._machine = 1.0
        self._paced = 0
        self._most_measured = 0
        self._observed = 0
        self._sources: dict[tuple[int, int], tuple[_Cell, _Cell, _Cell]] = {}
        self._table: tuple[tuple[int, int], tuple[float, ...]] | None = None
        for length, cells in (readings or {}).items():
            for rows, seconds in cells.items():
                self._cell(rows, length, seconds)

    @property
    def is_empty(self) -> bool:
        """Whether nothing has been measured."""
        return not any(self._cells.values())

    def is_measured(self, rows: int, length: int) -> bool:
        """Whether this very cell has been measured; length: one of LENGTHS."""
        return rows in self._cells[length]

    def readings(self) -> dict[int, dict[int, float]]:
        """Per cache length and count of rows the seconds now."""
        return {
            length: {rows: cell.seconds * self._machine for rows, cell in sorted(cells.items())}
            for length, cells in self._cells.items()
            if cells
        }

    def seconds(self, rows: int, cache_tokens: int) -> float:
        """What a round of so many rows takes now, behind so many cached tokens."""
        shorter, longer, share = _around(cache_tokens)
        low = self._at(rows, shorter)
        high = self._at(rows, longer) if share else low
        return self._machine * (low + share * (high - low))

    def ratios(self, cache_tokens: int) -> tuple[float, ...]:
        """What 1, 2, ... up to MOST_ROWS rows cost, in rounds of one row.

        No count costs more than a larger one: what was timed in a bad moment is taken no worse.
        """
        state = (cache_tokens // _FRESH_TOKENS, self._observed // _FRESH_ROUNDS)
        if self._table is None or self._table[0] != state:
            costs = [self.seconds(rows, cache_tokens) for rows in COUNTS]
            costs = [*accumulate(reversed(costs), min)][::-1]
            above = (bisect_left(COUNTS, rows) for rows in range(1, MOST_ROWS + 1))
            self._table = state, tuple(costs[place] / costs[0] for place in above)
        return self._table[1]

    def measure(self, rows: int, length: int, seconds: float) -> None:
        """Take in a round that was run to be timed; length: one of LENGTHS. The quickest counts."""
        cell = self._cell(rows, length, seconds / self._machine)
        cell.seconds = min(cell.seconds, seconds / self._machine)
        self._table = None

    def observe(self, rows: int, cache_tokens: int, seconds: float) -> None:
        """Take in a live round."""
        if not 0.0 < seconds < math.inf:
            return
        self._observed += 1
        shorter, longer, share = _around(cache_tokens)
        nearest = longer if share > 0.5 else shorter
        cell = self._cells[nearest].get(rows)
        if cell is None:
            # As it would be at that length, by what one row costs there and here.
            there = 1.0 if self.is_empty else self._at(1, nearest) / self.seconds(1, cache_tokens)
            cell = self._cell(rows, nearest, seconds * there)
            cell.is_new = True
        else:
            self._paced += not cell.is_new
            self._correct(cell, math.log(seconds / self.seconds(rows, cache_tokens)))
        cell.live += 1

    def _correct(self, cell: _Cell, off: float) -> None:
        """Take in how far a live round was off, as a logarithm."""
        setting_pace = self._paced == 1 or (self._paced <= _PACE_ROUNDS and off < 0.0)
        if setting_pace and not cell.is_new:
            self._machine *= math.exp(off)
        elif cell.live < _FEW:
            # The mean of what was seen live, and of what was timed before if anything was.
            cell.seconds *= math.exp(min(off, _MOST_SLOWER) / (cell.live + (2 - cell.is_new)))
            self._table = None
        else:
            off = max(-_MOST_AT_ONCE, min(off, _MOST_AT_ONCE))
            cell.seconds *= math.exp(_CELL_STEP * off)
            self._machine *= math.exp(_MACHINE_STEP * off)

    def _cell(self, rows: int, length: int, seconds: float) -> _Cell:
        """The cell of so many rows, a new one if need be."""
        cells = self._cells[length]
        if rows not in cells:
            cells[rows] = _Cell(seconds)
            self._most_measured = max(self._most_measured, rows)
            self._sources.clear()
            self._table = None
        return cells[rows]

    def _at(self, rows: int, length: int) -> float:
        """At one of LENGTHS; where it was measured elsewhere only, in proportion to one row."""
        source = self._sources.get((rows, length))
        if source is None:
            source = self._sources[rows, length] = self._source(rows, length)
        cell, one_there, one_here = source
        seconds = cell.seconds * one_here.seconds / one_there.seconds
        return seconds if rows <= self._most_measured else seconds * self._beyond(rows)

    def _source(self, rows: int, length: int) -> tuple[_Cell, _Cell, _Cell]:
        """The cell to go by, and what one row takes where it was measured and at this length."""
        counts = sorted({count for cells in self._cells.values() for count in cells})
        count = counts[min(bisect_left(counts, rows), len(counts) - 1)]
        cell, place = self._nearest(count, length)
        if 1 not in counts:
            return cell, cell, cell
        return cell, self._nearest(1, place)[0], self._nearest(1, length)[0]

    def _nearest(self, rows: int, length: int) -> tuple[_Cell, int]:
        """The cell of so many rows at the nearest length at which they were measured."""
        places = [place for place, cells in self._cells.items() if rows in cells]
        at = LENGTHS.index(length)
        place = min(places, key=lambda place: abs(LENGTHS.index(place) - at))
        return self._cells[place][rows], place

    def _beyond(self, rows: int) -> float:
        """How much more than the most rows measured so many more take, on at the pace so far."""
        most = self._most_measured
        length = next(length for length, cells in self._cells.items() if most in cells)
        growth = self._at(most, length) / self._at(1, length)
        slope = (growth - 1.0) / (most - 1) if most > 1 else _GUESSED_SLOPE
        return 1.0 + slope * (rows - most) / growth


def _around(cache_tokens: int) -> tuple[int, int, float]:
    """The two of LENGTHS on either side, and how far it is from the first to the second."""
    at = bisect_left(LENGTHS, cache_tokens)
    if at == 0 or at == len(LENGTHS):
        end = LENGTHS[min(at, len(LENGTHS) - 1)]
        return end, end, 0.0
    shorter, longer = LENGTHS[at - 1], LENGTHS[at]
    return shorter, longer, (cache_tokens - shorter) / (longer - shorter)
