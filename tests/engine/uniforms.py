"""The exact law of a function that takes its chance from uniforms, found without looking inside.

Such a function is constant on boxes of the unit cube. Their faces are found by bisection, one draw
after another, and the boxes' volumes added up.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Hashable
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

from engine.sampling import Noise

if TYPE_CHECKING:
    from tests.engine.reference import Ids, Proposal, Proposals

Result = TypeVar("Result", bound=Hashable)

LAST = 1 - 2.0**-53
"""The largest uniform."""

_RESOLUTION = 2.0**-46
_GRID = 4


class OutOfDrawsError(Exception):
    """The function asked for more uniforms than the script holds."""


class ScriptedNoise(Noise):
    """Noise whose uniforms are given; `tail` answers once they are used up."""

    def __init__(self, draws: tuple[float, ...], tail: float | None = None) -> None:
        super().__init__(0)
        self._draws = draws
        self._tail = tail
        self.taken = 0

    def uniform(self) -> float:
        """The next of the draws."""
        self.taken += 1
        if self.taken <= len(self._draws):
            return self._draws[self.taken - 1]
        if self._tail is None:
            raise OutOfDrawsError
        return self._tail


class UniformLaw(Generic[Result]):
    """The law of `play`, which is constant on boxes, taking its draws from the noise given."""

    def __init__(self, play: Callable[[ScriptedNoise], Result]) -> None:
        self._play = play
        self._faces: set[float] = set()  # found so far; often faces of the next box too

    def measured(self) -> dict[Result, float]:
        """Each result with its probability."""
        return self._measured(())

    def _measured(self, draws: tuple[float, ...]) -> dict[Result, float]:
        try:
            return {self._play(ScriptedNoise(draws)): 1.0}
        except OutOfDrawsError:
            pass
        law: dict[Result, float] = defaultdict(float)
        for low, high in self._cells(draws):
            for result, weight in self._measured((*draws, (low + high) / 2)).items():
                law[result] += (high - low) * weight
        return law

    def _cells(self, draws: tuple[float, ...]) -> list[tuple[float, float]]:
        points = {0.0, LAST, *(step / _GRID for step in range(1, _GRID))}
        for face in self._faces:
            points |= {face - _RESOLUTION, face + _RESOLUTION}
        ordered = sorted(point for point in points if 0.0 <= point <= LAST)
        marks = [self._signature(draws, point) for point in ordered]
        faces: list[float] = []
        for low, high in itertools.pairwise(zip(ordered, marks, strict=True)):
            faces += self._between(draws, low, high)
        self._faces.update(faces)
        edges = [0.0, *sorted(faces), 1.0]
        return list(itertools.pairwise(edges))

    def _between(
        self, draws: tuple[float, ...], low: tuple[float, object], high: tuple[float, object]
    ) -> list[float]:
        if low[1] == high[1]:
            return []
        middle = (low[0] + high[0]) / 2
        if high[0] - low[0] <= 2 * _RESOLUTION:
            return [middle]
        half = (middle, self._signature(draws, middle))
        return self._between(draws, low, half) + self._between(draws, half, high)

    def _signature(self, draws: tuple[float, ...], draw: float) -> tuple[Result, ...]:
        """What comes of this draw when all later ones are as high, and as low, as can be."""
        scripts = [ScriptedNoise((*draws, draw), tail) for tail in (LAST, 0.0)]
        return tuple(self._play(script) for script in scripts)


def measured_law(
    proposals: Proposals, judge: Callable[[Proposal, ScriptedNoise], Ids]
) -> dict[Ids, float]:
    """What a round commits, over all drafts, if `judge` says what becomes of one."""
    law: dict[Ids, float] = defaultdict(float)
    for weight, proposal in proposals:
        for ids, chance in UniformLaw(partial(judge, proposal)).measured().items():
            law[ids] += float(weight) * chance
    return law
