"""Which characters of a reply each token wrote: offsets kept as text arrives, never a search."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.chat.origin_format import WORDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.events import Origin, Round, Token


@dataclass(frozen=True, slots=True)
class TokenFacts:
    """A committed token, its round, and the drafter that proposed it or was in charge."""

    token: Token
    round_index: int
    drafter: str

    def sentence(self) -> str:
        """What hovering shows; no text of the model is in it."""
        token = self.token
        origin = WORDS[token.origin]
        figures = [f"p {token.p:.3g}"]
        if token.q is not None:
            figures.append(f"q {token.q:.3g}")
        if token.margin is not None:
            figures.append(f"margin {token.margin:.2f} nats")
        return (
            f"{origin} · {self.drafter}\n"
            f"id {token.id} · round {self.round_index} · depth {token.depth}\n"
            f"{' · '.join(figures)}"
        )


def facts_of(done: Round) -> Iterator[TokenFacts]:
    """The facts on every token of a round, in order."""
    proposers = {(node.depth, node.id): node.drafter for node in done.nodes}
    for token in done.tokens:
        drafter = proposers.get((token.depth, token.id), done.drafter)
        yield TokenFacts(token, done.index, drafter)


class TokenRuns:
    """The tokens of one reply and where in the document each one's text stands."""

    def __init__(self) -> None:
        self._facts: list[TokenFacts] = []
        self._starts: list[int] = []
        self._owners: list[int] = []
        self._end = 0

    @property
    def end(self) -> int:
        """The offset after the last character that a token wrote."""
        return self._end

    @property
    def newest(self) -> int:
        """The number of the last token taken in; -1 before the first."""
        return len(self._facts) - 1

    def add(self, facts: TokenFacts) -> int:
        """Take in a token; returns its number, by which its text is written later."""
        self._facts.append(facts)
        return self.newest

    def wrote(self, owner: int, start: int, end: int) -> None:
        """Note that this token's text stands at [start, end), after everything noted before."""
        if owner < 0:
            return
        if not self._owners or self._owners[-1] != owner:
            self._starts.append(start)
            self._owners.append(owner)
        self._end = end

    def at(self, offset: int) -> TokenFacts | None:
        """The token whose text holds the character at this offset."""
        if not self._starts or not self._starts[0] <= offset < self._end:
            return None
        return self._facts[self._owners[bisect_right(self._starts, offset) - 1]]

    def stretches(self, start: int, end: int) -> Iterator[tuple[int, int, Origin]]:
        """[start, end) cut wherever the origin changes: (from, to, origin)."""
        index = max(bisect_right(self._starts, start) - 1, 0)
        begun, origin = start, None
        while index < len(self._starts) and self._starts[index] < min(end, self._end):
            here = self._facts[self._owners[index]].token.origin
            if origin is not None and here is not origin:
                yield begun, self._starts[index], origin
                begun = self._starts[index]
            origin = here
            index += 1
        if origin is not None:
            yield begun, min(end, self._end), origin
