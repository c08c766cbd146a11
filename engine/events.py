"""What a reply tells its reader, round by round: frozen facts, never a whole vocabulary."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.stats import ReplyStats


class Origin(StrEnum):
    """Where a token came from.

    DRAFT_ACCEPTED: proposed and kept. RESAMPLED: the target's replacement at the first place where
    every proposal was turned down (vLLM says "recovered"). TARGET_ONLY: the target's own with
    nothing turned down there ("bonus"), as in plain decoding.
    """

    DRAFT_ACCEPTED = "draft-accepted"
    RESAMPLED = "resampled"
    TARGET_ONLY = "target-only"

    @property
    def letter(self) -> str:
        """`a`, `r` or `t`, the spelling of the benchmark's files."""
        return {Origin.DRAFT_ACCEPTED: "a", Origin.RESAMPLED: "r", Origin.TARGET_ONLY: "t"}[self]


class Outcome(StrEnum):
    """What became of a proposed token."""

    KEPT = "kept"
    TURNED_DOWN = "turned down"
    NOT_REACHED = "not reached"


class FinishReason(StrEnum):
    """Why a reply ended."""

    END_OF_TURN = "end of turn"
    STOP_TEXT = "stop text"
    LENGTH = "token limit"
    CONTEXT = "context full"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Token:
    """One committed token.

    text: what it adds to the reply; empty while its character is incomplete or it may be the
    beginning of
        a stop text. The token that completes it carries the whole text.
    position: absolute position in the conversation; depth: 1 for the first token of its round.
    p, q: the target's and the drafter's probability of it, after all processors (at temperature 0
    of the
        unscaled softmax); q is None where no drafter proposed it or the proposal had no
        probability.
    margin: by how much its score leads the runner-up's, in nats; the score is log p, with the noise
    added
        under COUPLED. None under REJECTION above temperature 0, where no score decides.
    """

    id: int
    text: str
    origin: Origin
    position: int
    depth: int
    p: float
    q: float | None
    margin: float | None


@dataclass(frozen=True, slots=True)
class Node:
    """One proposed token; parent is an index into the round's nodes, -1 being the root.

    text: what its id spells by itself, control tokens included.
    """

    id: int
    parent: int
    depth: int
    drafter: str
    p: float | None
    q: float | None
    outcome: Outcome
    text: str = ""


@dataclass(frozen=True, slots=True)
class Prefilled:
    """Prompt rows present so far, of all that are needed."""

    done: int
    total: int


@dataclass(frozen=True, slots=True)
class Drafted:
    """A draft's first path as text, not yet judged; the next Round confirms or withdraws it."""

    text: str
    drafter: str


@dataclass(frozen=True, slots=True)
class Round:
    """A draft and its pass, judged and committed.

    rows: scored positions of the pass: the root, the nodes and any passengers.
    drafter: the drafter in charge. other_seconds: verification, text and bookkeeping.
    """

    index: int
    tokens: tuple[Token, ...]
    nodes: tuple[Node, ...]
    drafter: str
    rows: int
    draft_seconds: float
    pass_seconds: float
    other_seconds: float

    @property
    def seconds(self) -> float:
        """The whole round."""
        return self.draft_seconds + self.pass_seconds + self.other_seconds

    @property
    def accepted(self) -> int:
        """Committed tokens that a drafter proposed."""
        return sum(token.origin is Origin.DRAFT_ACCEPTED for token in self.tokens)


@dataclass(frozen=True, slots=True)
class Finished:
    """The reply is complete. text: what was still held back (may be empty)."""

    reason: FinishReason
    stats: ReplyStats
    text: str = ""


Event = Prefilled | Drafted | Round | Finished
