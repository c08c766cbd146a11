"""In a terminal: replies coloured by origin, their numbers in one line, and how far things are."""

from __future__ import annotations

import os
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self, TextIO

from engine.events import Event, Finished, Origin, Prefilled, Round

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from engine.stats import ReplyStats

# Colour and underline together, so that the three differ without colour too.
_STYLES = {
    Origin.DRAFT_ACCEPTED: "\x1b[32;4:1m",
    Origin.RESAMPLED: "\x1b[33;4:5m",
    Origin.TARGET_ONLY: "\x1b[34;4:4m",
}
_PLAIN = "\x1b[0m"
_LINE_ANEW = "\r\x1b[K"
_LONG_SECONDS = 1.0


class ReplyPrinter:
    """Writes a reply's events to a terminal, in colour where it is one that wants it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._coloured = stream.isatty() and "NO_COLOR" not in os.environ

    def show(self, event: Event) -> None:
        """Print what the event adds."""
        match event:
            case Round():
                for token in event.tokens:
                    self._write(token.text, _STYLES[token.origin])
            case Finished():
                self._write(event.text + "\n", "")
            case _:
                pass
        self._stream.flush()

    def _write(self, text: str, style: str) -> None:
        text = harmless(text)
        if self._coloured and style and text:
            # A style must not run over a line's end, or some terminals paint the whole line.
            lines = text.split("\n")
            text = "\n".join(f"{style}{line}{_PLAIN}" if line else "" for line in lines)
        self._stream.write(text)


class StatusLine:
    """One line on a terminal that says what is going on, and is gone at the end; nothing elsewhere.

    A context: leaving it clears the line.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._said = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def say(self, text: str) -> None:
        """Show this in place of what stood there."""
        if self._stream.isatty():
            self._said = True
            print(_LINE_ANEW + text, end="", file=self._stream, flush=True)

    def clear(self) -> None:
        """Make room for other output."""
        if self._said:
            self._said = False
            print(_LINE_ANEW, end="", file=self._stream, flush=True)


class ReadingLine(StatusLine):
    """How much of a prompt has been read, where that takes long; the first text takes it away."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(stream)
        self._clock = clock
        self._began = clock()

    def show(self, event: Event) -> None:
        """Say what the event tells of it."""
        match event:
            case Prefilled(done, total):
                if self._clock() - self._began >= _LONG_SECONDS:
                    self.say(f"Reading the prompt, {done / total:.0%} …")
            case _:
                self.clear()


def harmless(text: str) -> str:
    """Text without control characters but line breaks and tabs: no model steers a terminal."""
    return "".join(c if c in "\n\t" or c.isprintable() else _picture(c) for c in text)


def numbers(finished: Finished) -> str:
    """A reply's numbers in one line; what is not known is left out."""
    stats = finished.stats
    parts = ["1 token" if stats.tokens == 1 else f"{stats.tokens} tokens"]
    parts += [f"{stats.tokens_per_second:.1f} tokens/s", *_gains(stats)]
    parts.append(f"first token {stats.first_token_seconds:.2f} s")
    parts += [str(finished.reason), f"seed {stats.params.sampling.seed}"]
    if stats.may_depend_on_timing:
        parts.append("the text may depend on timing")
    return " · ".join(parts)


@contextmanager
def progress_bar() -> Generator[Callable[[str, int, int], None]]:
    """A bar on standard error; it is told what runs next, and how much of how much is done."""
    from tqdm import tqdm

    with tqdm(total=0, unit="run", disable=False, file=sys.stderr) as bar:

        def told(what: str, done: int, total: int) -> None:
            bar.total = total or None
            bar.set_description(what, refresh=False)
            bar.update(done - bar.n)
            bar.refresh()

        yield told


def _gains(stats: ReplyStats) -> list[str]:
    gains: list[str] = []
    if stats.speedup is not None and stats.baseline is not None:
        gains.append(f"{stats.speedup:.2f} × plain ({stats.baseline.source})")
    gains.append(f"{stats.mean_accepted_length:.2f} tokens per pass")
    if stats.acceptance_rate is not None:
        gains.append(f"{stats.acceptance_rate:.0%} accepted")
    return gains


def _picture(character: str) -> str:
    """Unicode's own picture of a control character; other invisible ones pass as they are."""
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    return "\ufffd" if code == 0x7F or 0x80 <= code < 0xA0 else character
