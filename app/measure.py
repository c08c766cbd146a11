"""What the window costs: the same prompt with the window open and without, and their ratio."""

from __future__ import annotations

import asyncio
import sys
import time
from statistics import median
from typing import TYPE_CHECKING

from app.errors import Failure, failure_of
from engine.events import Finished
from engine.params import ReplyParams, SamplingParams

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtCore import SignalInstance

    from app.engine_thread import EngineThread
    from app.window import MainWindow
    from engine.events import Event

_PROMPT = "Explain in a few paragraphs how bread is baked, and why each step is needed."
_PARAMS = ReplyParams(sampling=SamplingParams(temperature=0.0), max_new_tokens=128)
_REPEATS = 3
_SETTLING_SECONDS = 0.5
"""A window just shown or hidden still draws; what is asked is what an open one costs."""


async def measure(
    window: MainWindow, engine: EngineThread, target: str | None, drafter: str | None
) -> int:
    """Print both speeds, in tokens a second from the question to the last token; the exit code.

    The runs take turns, after one of each that does not count: a machine that gets warm or busy
    meanwhile is unfair to neither.
    """
    failures: list[Failure] = []
    window.loader.failed.connect(failures.append)
    window.chat.failed.connect(failures.append)
    window.open_target(target, drafter)
    await _once(window.loader.ended)
    pairs: list[tuple[float, float]] = []
    try:
        while not failures and len(pairs) < 1 + _REPEATS:
            pairs.append((await _with_window(window), await _without(window, engine)))
    except Exception as error:
        failures.append(failure_of(error))
    if failures:
        print(failures[0].sentence, file=sys.stderr)
        return 1
    _report(*(median(speeds) for speeds in zip(*pairs[1:], strict=True)))
    return 0


async def _with_window(window: MainWindow) -> float:
    window.show()
    window.chat.new_chat()
    await _once(window.chat.chat_cleared)
    await asyncio.sleep(_SETTLING_SECONDS)
    began = time.perf_counter()
    window.chat.submit(_PROMPT, _PARAMS, "")
    await _once(window.chat.busy_changed)
    return _tokens(window.chat.replies[-1:]) / (time.perf_counter() - began)


async def _without(window: MainWindow, engine: EngineThread) -> float:
    window.hide()
    await engine.new_chat()
    await asyncio.sleep(_SETTLING_SECONDS)
    began = time.perf_counter()
    events = await engine.reply_unseen(_PROMPT, _PARAMS)
    return _tokens(events) / (time.perf_counter() - began)


def _tokens(events: Sequence[Event]) -> int:
    return sum(event.stats.tokens for event in events if isinstance(event, Finished))


def _report(with_window: float, without: float) -> None:
    print(f"with the window     {with_window:8.1f} tokens/s")
    print(f"without the window  {without:8.1f} tokens/s")
    print(f"ratio               {with_window / without:8.3f}")


async def _once(signal: SignalInstance) -> None:
    """Wait until a signal is emitted the next time."""
    emitted = asyncio.Event()
    connection = signal.connect(lambda *_: emitted.set())
    await emitted.wait()
    signal.disconnect(connection)
