"""A suffix automaton that grows token by token: every run of a text, how often, and what followed.

Blumer et al., 1985. A state stands for all runs that end at the same places of the text; its link
leads to the longest of their endings that stands at more places.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT = 0
"""The state of the empty run."""

_NOWHERE = -1

_MOST_COUNTED = 64
"""States told of a token: ever shorter endings, so that a text that repeats itself stays quick."""


class SuffixAutomaton:
    """The runs of a text of ids.

    Adding a token takes constant time on average. `counts` tells at how many places a state's runs
    end (in a text that repeats itself for long, fewer for the short ones) and `newest` the last of
    them.
    """

    def __init__(self) -> None:
        self.text: list[int] = []
        self.counts: list[int] = [0]
        self.newest: list[int] = [_NOWHERE]
        self._lengths: list[int] = [0]
        self._links: list[int] = [_NOWHERE]
        self._next: list[dict[int, int]] = [{}]
        self._whole = ROOT
        self._before = ROOT

    def add(self, token: int) -> None:
        """Go on by one token."""
        self._before = self.match[0]
        end = self._state(self._lengths[self._whole] + 1, {})
        before = self._whole
        while before != _NOWHERE and token not in self._next[before]:
            self._next[before][token] = end
            before = self._links[before]
        self._links[end] = ROOT if before == _NOWHERE else self._ending(before, token)
        self._whole = end
        self._count(end, len(self.text))
        self.text.append(token)

    @property
    def match(self) -> tuple[int, int]:
        """The longest ending of the text that stood in it before: its state and its length."""
        state = max(ROOT, self._links[self._whole])
        return state, self._lengths[state]

    @property
    def match_before(self) -> tuple[int, int]:
        """The match as it was before the last token."""
        return self._before, self._lengths[self._before]

    def step(self, state: int, length: int, token: int) -> tuple[int, int]:
        """From a run of `length` in `state` to its longest ending that `token` follows, with it."""
        while token not in self._next[state]:
            state = self._links[state]
            if state == _NOWHERE:
                return ROOT, 0
            length = self._lengths[state]
        return self._next[state][token], length + 1

    def following(self, state: int) -> Mapping[int, int]:
        """What followed a state's runs: per token the state of the longer run."""
        return self._next[state]

    def endings(self, state: int) -> Iterator[tuple[int, int]]:
        """A state and those of its ever shorter endings, with their lengths; not the empty run."""
        while state > ROOT:
            yield state, self._lengths[state]
            state = self._links[state]

    def _ending(self, before: int, token: int) -> int:
        """The state whose longest run is that of `before` with `token`; split off where needed."""
        state = self._next[before][token]
        length = self._lengths[before] + 1
        if self._lengths[state] == length:
            return state
        split = self._state(length, dict(self._next[state]))
        self.counts[split], self.newest[split] = self.counts[state], self.newest[state]
        self._links[split] = self._links[state]
        self._links[state] = split
        while before != _NOWHERE and self._next[before].get(token) == state:
            self._next[before][token] = split
            before = self._links[before]
        return split

    def _state(self, length: int, following: dict[int, int]) -> int:
        self._lengths.append(length)
        self._next.append(following)
        self._links.append(_NOWHERE)
        self.counts.append(0)
        self.newest.append(_NOWHERE)
        return len(self._lengths) - 1

    def _count(self, state: int, place: int) -> None:
        for _ in range(_MOST_COUNTED):
            if state <= ROOT:
                break
            self.counts[state] += 1
            self.newest[state] = place
            state = self._links[state]
