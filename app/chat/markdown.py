"""Fenced code in streamed text, found line by line; everything else is literal text.

A line that may turn out to be a fence is held back until that is decided, so back-ticks never flash
up. Every character is looked at once.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterator

_LONGEST_INFO = 40  # A "fence" with more words behind it than a language's name is prose.
_FEWEST_TICKS = 3
_DEEPER = 3  # How much deeper than its opening a closing fence may stand.


@dataclass(frozen=True, slots=True)
class Piece:
    """Text to show after what is there already.

    text: without line breaks. breaks: line breaks before it. block: 0 for prose, else the number of
    the code block. owner: what was given with the text to `FenceReader.feed`.
    """

    text: str
    breaks: int
    block: int
    owner: int


class FenceReader:
    """Splits a stream of text into pieces of prose and of code."""

    def __init__(self) -> None:
        self._blocks = 0
        self._in_code = False
        self._fence = _Line()
        self._line = _Line()
        self._held: list[tuple[str, int]] = []
        self._breaks = 0
        self._shown = False
        self._shown_since_fence = False

    def fork(self) -> Self:
        """A reader in the same state that goes its own way, for text that may be withdrawn."""
        other = copy.copy(self)
        other._line = copy.copy(self._line)
        other._held = list(self._held)
        return other

    def feed(self, text: str, owner: int) -> Iterator[Piece]:
        """The pieces that are decided by this text."""
        lines = text.replace("\r", "").split("\n")
        for number, part in enumerate(lines):
            if number:
                yield from self._end_line()
            if part:
                yield from self._take(part, owner)

    def finish(self) -> Iterator[Piece]:
        """What was still held back; a closing fence without a line break closes."""
        if not (self._in_code and self._closes()):
            yield from self._release()
        self._held.clear()

    def _take(self, part: str, owner: int) -> Iterator[Piece]:
        if self._line.decided:
            yield self._piece(part, owner)
            return
        self._held.append((part, owner))
        deepest = self._fence.indent + _DEEPER if self._in_code else None
        if not self._line.may_be_fence(part, deepest):
            yield from self._release()

    def _end_line(self) -> Iterator[Piece]:
        if self._in_code and self._closes():
            self._enter(in_code=False)
        elif not self._in_code and self._line.is_fence:
            self._enter(in_code=True)
        else:
            yield from self._release()
            # Blank lines beside a code block add nothing to its own margin.
            if self._in_code or self._shown_since_fence:
                self._breaks += 1
        self._line = _Line()

    def _closes(self) -> bool:
        return self._line.is_fence and self._line.ticks >= self._fence.ticks

    def _enter(self, *, in_code: bool) -> None:
        self._in_code = in_code
        self._blocks += in_code
        self._fence = self._line
        self._breaks = int(self._shown)
        self._held.clear()
        self._shown_since_fence = False

    def _release(self) -> Iterator[Piece]:
        held, self._held = self._held, []
        for part, owner in held:
            yield self._piece(part, owner)

    def _piece(self, text: str, owner: int) -> Piece:
        breaks, self._breaks = self._breaks, 0
        self._shown = self._shown_since_fence = True
        return Piece(text, breaks, self._blocks if self._in_code else 0, owner)


@dataclass(slots=True)
class _Line:
    """How far a line goes on looking like a fence."""

    indent: int = 0
    ticks: int = 0
    info: int = 0
    decided: bool = False

    @property
    def is_fence(self) -> bool:
        """Whether the line, were it to end here, would be a fence."""
        return not self.decided and self.ticks >= _FEWEST_TICKS

    def may_be_fence(self, part: str, deepest: int | None) -> bool:
        """Read on; `deepest` is how far a closing fence may stand in, None where one would open."""
        for character in part:
            if character == "`" and not self.info:
                self.ticks += 1
            elif character == " " and not self.ticks:
                self.indent += 1
            else:
                self.info += 1
            self.decided = not self._fits(character, deepest)
            if self.decided:
                return False
        return True

    def _fits(self, character: str, deepest: int | None) -> bool:
        if self.info and self.ticks < _FEWEST_TICKS:
            return False
        if self.info and character == "`":
            return False
        if deepest is None:
            return self.info <= _LONGEST_INFO
        return self.indent <= deepest and (not self.info or character in " \t")
