"""How far one drafter's proposals survive: shares per grade and depth, the latest weighing most."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.events import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from engine.draft import Draft

Grade = int
"""A drafter's own word for how sure it is of a node; nodes of one grade are taken to be alike."""

_FIRST_GUESS = 0.5
_GOING_ON_GUESS = 0.75
"""Below a node that was kept the next one more often holds than not, whoever proposed it."""

_GUESS_WEIGHT = 3.0
"""How many outcomes the guess counts for."""

_RUN_WEIGHT = 0.5
"""What an outcome at one depth tells about another: what is kept comes in long runs."""

_NIL = 0.01

_FADING = 0.97
"""What an outcome still weighs once the next draft of its kind is judged."""


class Survival:
    """Counts of what was kept and what was judged, which fade as drafts go by.

    What is not known of a grade is taken from all grades together, and what is not known of a
    depth from the depth above it.
    """

    def __init__(self) -> None:
        self._all = _Counts()
        self._grades: dict[Grade, _Counts] = {}

    def add(self, places: Sequence[tuple[Grade, int, bool]]) -> None:
        """Take in a draft: grade and depth of its judged places, and whether one was kept there."""
        self._all.fade(_FADING)
        for grade in {grade for grade, _, _ in places}:
            self._grades.setdefault(grade, _Counts()).fade(_FADING)
        for grade, depth, kept in places:
            self._all.add(depth, kept)
            self._grades[grade].add(depth, kept)

    def shares(self, grades: Sequence[Grade | None]) -> Iterator[float]:
        """Per depth 1, 2, ... of nodes of these grades the share that is kept where judged.

        None: a grade that is not known yet, so all of them together.
        """
        guess, above = _FIRST_GUESS, None
        going_on = self._all.going_on(_GOING_ON_GUESS)
        for place, grade in enumerate(grades):
            share = self._all.share(place, guess)
            own = None if grade is None else self._grades.get(grade)
            if own is not None:
                share = own.share(place, share if above is None else (share + above) / 2)
            yield share
            above = share
            guess = (share + going_on) / 2

    def reach(self, grades: Sequence[Grade | None]) -> list[float]:
        """Per depth 1, 2, ... the chance to be kept down to there, as far as there is one."""
        reached, chances = 1.0, list[float]()
        for share in self.shares(grades):
            reached *= share
            chances.append(reached)
            if reached < _NIL:
                break
        return chances

    def fade(self, weight: float) -> None:
        """Let everything so far weigh less, as what another reply has taught."""
        for counts in (self._all, *self._grades.values()):
            counts.fade(weight)

    @property
    def drafts(self) -> float:
        """How many drafts this rests on, faded ones by what is left of them."""
        return self._all.judged[0] if self._all.judged else 0.0


class _Counts:
    """Kept and judged per depth, from 0 for the root's children."""

    def __init__(self) -> None:
        self.kept: list[float] = []
        self.judged: list[float] = []

    def add(self, depth: int, kept: bool) -> None:
        missing = depth - len(self.judged)
        self.kept.extend([0.0] * missing)
        self.judged.extend([0.0] * missing)
        self.judged[depth - 1] += 1.0
        self.kept[depth - 1] += kept

    def fade(self, weight: float) -> None:
        self.kept = [count * weight for count in self.kept]
        self.judged = [count * weight for count in self.judged]

    def share(self, place: int, guess: float) -> float:
        if place >= len(self.judged):
            return guess
        return _weighed(self.kept[place], self.judged[place], guess)

    def going_on(self, guess: float) -> float:
        """The share kept at all depths but the first together."""
        kept, judged = sum(self.kept[1:]), sum(self.judged[1:])
        return _weighed(_RUN_WEIGHT * kept, _RUN_WEIGHT * judged, guess)


def _weighed(kept: float, judged: float, guess: float) -> float:
    return (kept + _GUESS_WEIGHT * guess) / (judged + _GUESS_WEIGHT)


def judged_places(draft: Draft, outcomes: Sequence[Outcome]) -> list[tuple[int, int, bool]]:
    """Grade, depth and whether a proposal was kept, of every place of a draft that was reached."""
    places: dict[int, tuple[int, int, bool]] = {}
    for node, (parent, outcome) in enumerate(zip(draft.parents, outcomes, strict=True)):
        if outcome is not Outcome.NOT_REACHED:
            grade, depth, kept = places.get(
                parent, (draft.grades[node] if draft.grades else 0, draft.depths[node], False)
            )
            places[parent] = (grade, depth, kept or outcome is Outcome.KEPT)
    return list(places.values())


def first_grades(draft: Draft) -> list[int | None]:
    """The grade of the first node at each depth, None throughout where there are no grades."""
    if not draft.grades or draft.is_chain:
        return list(draft.grades or (None,) * max(draft.depths))
    firsts = dict(zip(reversed(draft.depths), reversed(draft.grades), strict=True))
    return [firsts[depth] for depth in sorted(firsts)]
