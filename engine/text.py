"""From token ids to text while they arrive: whole characters only, and nothing of a stop text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.events import FinishReason

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_UNFINISHED = "\ufffd"
"""What decoders put where bytes of a character are missing."""


class StreamDecoder:
    """Turns ids into text one at a time, holding back characters whose bytes are not all there.

    decode: ids to text. Each id is decoded beside the few before it, since what an id spells may
    depend on its neighbours; the window moves on with every complete character, so the cost does
    not grow.
    """

    def __init__(self, decode: Callable[[Sequence[int]], str]) -> None:
        self._decode = decode
        self._window: list[int] = []
        self._shown_ids = 0

    def push(self, token_id: int) -> str:
        """The text that this id completes; empty while a character is unfinished."""
        self._window.append(token_id)
        new = self._new_text()
        if not new or new.endswith(_UNFINISHED):
            return ""
        self._window = self._window[self._shown_ids :]
        self._shown_ids = len(self._window)
        return new

    def flush(self) -> str:
        """What is held back, without the character that will never be finished."""
        rest = self._new_text().rstrip(_UNFINISHED)
        self._window, self._shown_ids = [], 0
        return rest

    def peek(self, ids: Sequence[int]) -> str:
        """The text that these ids would add, as a preview; nothing is remembered."""
        return self._new_text(ids).rstrip(_UNFINISHED)

    def _new_text(self, more: Sequence[int] = ()) -> str:
        before = self._decode(self._window[: self._shown_ids])
        after = self._decode([*self._window, *more])
        return after[len(before) :] if after.startswith(before) else ""


class StopFilter:
    """Lets text through up to the first stop text, holding back what may begin one."""

    def __init__(self, stop_texts: Sequence[str]) -> None:
        self._stop_texts = tuple(stop_texts)
        self._held = ""

    def push(self, text: str) -> tuple[str, bool]:
        """The text that may be shown, and whether a stop text was completed."""
        text = self._held + text
        found = [place for stop in self._stop_texts if (place := text.find(stop)) >= 0]
        if found:
            self._held = ""
            return text[: min(found)], True
        held = self._length_to_hold(text)
        self._held = text[len(text) - held :]
        return text[: len(text) - held], False

    def flush(self) -> str:
        """What was held back and turned out to be no stop text."""
        held, self._held = self._held, ""
        return held

    def _length_to_hold(self, text: str) -> int:
        """The longest end of `text` that begins a stop text."""
        longest = max(map(len, self._stop_texts), default=1) - 1
        for length in range(min(longest, len(text)), 0, -1):
            if any(stop.startswith(text[-length:]) for stop in self._stop_texts):
                return length
        return 0


@dataclass(frozen=True, slots=True)
class Cut:
    """What is committed of a round: each kept token's text, and why the reply ends, if it does."""

    texts: tuple[str, ...]
    reason: FinishReason | None = None


class ReplyText:
    """One reply's text and its end: end of turn, stop texts, and the room that is left.

    decode: ids to text; context_room: tokens until the context is full.
    """

    def __init__(
        self,
        decode: Callable[[Sequence[int]], str],
        *,
        end_ids: frozenset[int],
        stop_texts: Sequence[str],
        max_new_tokens: int,
        context_room: int,
    ) -> None:
        self._decoder = StreamDecoder(decode)
        self._stops = StopFilter(stop_texts)
        self._end_ids = end_ids
        self._limit = min(max_new_tokens, context_room)
        self._limit_reason = (
            FinishReason.LENGTH if max_new_tokens <= context_room else FinishReason.CONTEXT
        )
        self._count = 0

    @property
    def remaining_tokens(self) -> int:
        """How many tokens may still come."""
        return self._limit - self._count

    def cut(self, ids: Sequence[int]) -> Cut:
        """Commit ids up to the reply's end; those behind it never happened."""
        texts: list[str] = []
        for token_id in ids:
            self._count += 1
            reason = None
            if token_id in self._end_ids:
                text, reason = "", FinishReason.END_OF_TURN
            else:
                text, stopped = self._stops.push(self._decoder.push(token_id))
                if stopped:
                    return Cut((*texts, text), FinishReason.STOP_TEXT)
                if self._count == self._limit:
                    reason = self._limit_reason
            if reason is not None:
                rest, stopped = self.flush()
                return Cut((*texts, text + rest), FinishReason.STOP_TEXT if stopped else reason)
            texts.append(text)
        return Cut(tuple(texts))

    def flush(self) -> tuple[str, bool]:
        """What is still held back, and whether a stop text was completed by it."""
        text, stopped = self._stops.push(self._decoder.flush())
        return (text, True) if stopped else (text + self._stops.flush(), False)

    def preview(self, ids: Sequence[int]) -> str:
        """A draft as text, up to an end of turn in it."""
        until = next((at for at, token_id in enumerate(ids) if token_id in self._end_ids), len(ids))
        return self._decoder.peek(ids[:until])
