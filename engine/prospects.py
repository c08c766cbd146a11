"""What one proposer's drafts cost and bring, and when it is worth trying it again."""

from __future__ import annotations

from collections import deque
from itertools import accumulate
from math import inf
from statistics import median_low
from typing import TYPE_CHECKING

from engine.survival import Survival

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from engine.survival import Grade

_CHEAP = 0.03
"""Up to this share of a plain round asking is all but free, whatever comes of it."""

_ENOUGH_ASKED = 2
"""The first time a proposer is asked it may have to read the whole prompt."""

_FIRST_GAP = 8
_LOSS = 0.005
"""Trials grow rarer until they cost this share of the time."""

_LONGEST_GAP = 1024


class Backoff:
    """When something that does not pay is due again: after gaps that double while it does not."""

    def __init__(self, gap: int = _FIRST_GAP) -> None:
        self._first = gap
        self._gap = gap
        self._due = gap

    def is_due(self, round_index: int) -> bool:
        """Whether its time has come."""
        return round_index >= self._due

    def put_off(self, round_index: int) -> None:
        """It came about by itself: the gap begins anew, as long as before."""
        self._due = round_index + self._gap

    def tried(self, round_index: int, *, paid: bool, loss: float) -> None:
        """It was tried, and is again if it paid; loss: rounds that a trial is expected to cost."""
        if paid:
            self._due = round_index + 1
            return
        longest = max(self._first, min(int(loss / _LOSS), _LONGEST_GAP))
        self._gap = min(2 * self._gap, longest)
        self._due = round_index + self._gap

    def begin_anew(self, round_index: int) -> None:
        """What was learned may no longer hold."""
        self._gap = max(self._first, self._gap // 4)
        self._due = min(self._due, round_index + self._gap)


class Prospects:
    """One proposer. Costs are in rounds of one row, gains in tokens over plain decoding.

    riders: rows of its own that go into a pass beside what it drafts.
    """

    def __init__(self) -> None:
        self.riders = 0
        self.survival = Survival()
        self.trials = Backoff()
        self._asked_seconds: deque[float] = deque(maxlen=7)
        self._token_seconds: deque[float] = deque(maxlen=7)

    @property
    def is_known(self) -> bool:
        """Whether it has been asked often enough to tell what that costs."""
        return len(self._asked_seconds) >= _ENOUGH_ASKED

    def is_cheap(self, plain_seconds: float) -> bool:
        """Whether asking costs next to nothing, so that one can ask first and decide then."""
        quick = self.is_known and median_low(self._asked_seconds) <= _CHEAP * plain_seconds
        return quick and not self.riders

    def token_cost(self, plain_seconds: float) -> float:
        """What a drafted token costs to propose."""
        return median_low(self._token_seconds) / plain_seconds if self._token_seconds else 0.0

    def asked(self, seconds: float, tokens: int) -> None:
        """It took so long to propose so many tokens."""
        self._asked_seconds.append(seconds)
        if tokens:
            self._token_seconds.append(seconds / tokens)

    def best(
        self,
        grades: Sequence[Grade | None],
        sizes: Iterable[tuple[int, int]],
        ratios: Sequence[float],
        rate: float,
        *,
        token_cost: float = 0.0,
    ) -> tuple[int, float]:
        """Which of these sizes gains most, by its place among them, and the gain.

        grades: of the nodes at depth 1, 2, ...; sizes: nodes in all, and the depth they reach.
        ratios: what 1, 2, ... rows cost. rate: tokens that a plain round's time brings otherwise.
        """
        expected = [0.0, *accumulate(self.survival.reach(grades))]
        best_place, best_gain = 0, -inf
        for place, (nodes, depth) in enumerate(sizes):
            rows = min(nodes + self.riders, len(ratios) - 1)
            cost = ratios[rows] - 1.0 + token_cost * depth
            gain = expected[min(depth, len(expected) - 1)] - rate * cost
            if gain > best_gain:
                best_place, best_gain = place, gain
        return best_place, best_gain
