"""Ctrl+C: the first one asks for an end, the second one makes it."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import threading
    from collections.abc import Generator


@contextmanager
def stopped_by_interrupt(stop: threading.Event) -> Generator[None]:
    """The first Ctrl+C asks the work to end at its next step, the second one ends the program."""

    def interrupted(number: int, frame: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    before = signal.signal(signal.SIGINT, interrupted)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
