"""What of the texts is learnt from, and what is held out to measure on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

_HELD_OUT = 25
"""One prompt of so many is held out, and no writing of it is learnt from."""

_MOST_HELD_OUT = 48
_FEWEST_TOKENS = 2


class Fact(Protocol):
    """What is known of an example; see engine.training.features."""

    @property
    def prompt(self) -> str:
        """A key in hexadecimal digits, which a hash gave."""
        ...

    @property
    def temperature(self) -> float:
        """At which the reply was written."""
        ...

    @property
    def length(self) -> int:
        """How many ids there are."""
        ...

    @property
    def first_reply(self) -> int:
        """Where the reply begins."""
        ...


@dataclass(frozen=True, slots=True)
class Split:
    """Places of examples. held_out: greedy texts; drawn: some others of held-out prompts."""

    learnt: tuple[int, ...]
    held_out: tuple[int, ...]
    drawn: tuple[int, ...]


def is_held_out(prompt: str) -> bool:
    """Whether a prompt of this key is; whatever other prompts there are."""
    return int(prompt, 16) % _HELD_OUT == 0


def split(facts: Sequence[Fact]) -> Split:
    """Learn from prompts that are not held out; measure on greedy replies to those that are.

    Of a few texts, the first greedy one is held out, if any.
    """
    usable = [
        place
        for place, fact in enumerate(facts)
        if fact.length - fact.first_reply >= _FEWEST_TOKENS and fact.first_reply >= _FEWEST_TOKENS
    ]
    greedy = [place for place in usable if facts[place].temperature == 0]
    held_out = [place for place in greedy if is_held_out(facts[place].prompt)]
    prompts = {facts[place].prompt for place in held_out or greedy[:1]}
    learnt = tuple(
        place
        for place in usable
        if facts[place].prompt not in prompts and not is_held_out(facts[place].prompt)
    )
    drawn = [
        place
        for place in usable
        if facts[place].temperature > 0 and is_held_out(facts[place].prompt)
    ]
    return Split(
        learnt,
        tuple(_spread(held_out, _MOST_HELD_OUT) or greedy[:1]),
        tuple(_spread(drawn, _MOST_HELD_OUT)),
    )


def _spread(places: Sequence[int], most: int) -> list[int]:
    """Some from everywhere: texts that were written one after another are alike."""
    count = min(most, len(places))
    return [places[index * len(places) // count] for index in range(count)]
