"""How far reading has come: against the texts there are, and against the room for their states."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.training.examples import Example

_ID_BYTES = 4
_FACT_BYTES = 256
"""More than what a text takes in a shard's header."""

_HEAD_BYTES = 2048
"""More than what else stands there."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How far reading has come. share: of the texts, or of the room for them."""

    texts: int
    tokens: int
    share: float
    tokens_per_second: float
    seconds_left: float | None


class Room:
    """Bytes that are left, less what has been taken of them, counted as they'll be on disk."""

    def __init__(self, room: int) -> None:
        self._room = room - _HEAD_BYTES
        self._used = 0

    @property
    def share(self) -> float:
        """How much of it is taken."""
        return self._used / self._room

    def takes(self, example: Example) -> bool:
        """Count an example in, unless there is no room for it."""
        states = sum(state.nbytes for state in example.hidden.values())
        size = states + _ID_BYTES * len(example.ids) + _FACT_BYTES
        if self._used + size > self._room:
            return False
        self._used += size
        return True


class Pace:
    """Counts what is read against what there is to read and the room for it."""

    def __init__(self, tokens: int, room: Room) -> None:
        self._wanted = tokens
        self._room = room
        self._texts = self._tokens = 0
        self._start = time.monotonic()

    def reading_after(self, example: Example) -> Reading:
        """How far reading is with one more."""
        self._texts += 1
        self._tokens += len(example.ids)
        share = max(self._tokens / self._wanted, self._room.share)
        seconds = max(time.monotonic() - self._start, 1e-9)
        left = seconds * (1 / share - 1) if share else None
        return Reading(self._texts, self._tokens, share, self._tokens / seconds, left)
