"""What an engine must offer to be measured beside ours, and what it tells of one reply."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from engine.errors import EngineError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from engine.events import FinishReason

PLAIN = "plain"
"""The mode of every peer that its other modes are compared with."""


class PeerError(EngineError):
    """A peer that could not be measured; the sentence says why."""


@dataclass(frozen=True, slots=True)
class PeerReply:
    """One greedy reply of a peer.

    ids: the end of turn included. first_tokens: how many of them came out of the pass that read the
    prompt; decode_seconds: the time of the others. drafted, accepted: None where it does not say.
    """

    ids: tuple[int, ...]
    text: str
    first_tokens: int
    prefill_seconds: float
    decode_seconds: float
    finish_reason: FinishReason
    drafted: int | None = None
    accepted: int | None = None

    @property
    def tokens_per_second(self) -> float | None:
        """Tokens a second of decoding; None where there was nothing to decode."""
        tokens = len(self.ids) - self.first_tokens
        return tokens / self.decode_seconds if tokens > 0 and self.decode_seconds > 0 else None

    @property
    def whole_tokens_per_second(self) -> float:
        """Tokens a second of the whole reply, the prompt's reading included."""
        return len(self.ids) / (self.prefill_seconds + self.decode_seconds)


Answer = Callable[[Sequence[int], int], PeerReply]
"""A prompt's ids and the most new tokens to a reply; raises EngineError."""


class Peer(Protocol):
    """An engine with its ways of decoding, plain first.

    name: with its version; dtype: the form of its weights.
    """

    name: str
    dtype: str
    modes: tuple[str, ...]

    def opened(self, mode: str) -> AbstractContextManager[Answer]:
        """Ready to answer in one of its modes.

        Raises:
            EngineError: it cannot be brought up; nothing of it is left running.
        """
        ...

    def close(self) -> None:
        """Give back what it holds between modes."""
        ...
