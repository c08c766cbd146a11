"""Whether this copy works: one prompt, answered in the window with each of several drafters."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from app.errors import Failure
from engine.events import Round
from engine.params import ReplyParams, SamplingParams

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from app.window import MainWindow

logger = logging.getLogger(__name__)

_PROMPT = "Write the numbers from one to twenty as words, one a line."
_PARAMS = ReplyParams(sampling=SamplingParams(temperature=0.0), max_new_tokens=32)
_LOOK_SECONDS = 0.01


async def self_test(window: MainWindow, target: str, drafters: Sequence[str]) -> int:
    """Log what each drafter did, and whether all wrote the same text; the exit code."""
    try:
        texts = await SelfTest(window).run(target, drafters)
    except SelfTestFailed as failure:
        logger.error("Self-test: failed. %s", failure)
        return 1
    if len(set(texts)) != 1 or not all(texts):
        logger.error("Self-test: failed. The texts differ, or there is none: %r", texts)
        return 1
    logger.info("Self-test: passed.")
    return 0


class SelfTestFailed(Exception):
    """What the window showed as failed."""


class SelfTest:
    """Does what a user would do; it waits for the window to show it, or a failure."""

    def __init__(self, window: MainWindow) -> None:
        self._window = window
        self._words: list[str] = []
        self._failures: list[Failure] = []
        self._ended: list[None] = []
        window.loader.failed.connect(self._failures.append)
        window.loader.ended.connect(lambda: self._ended.append(None))
        window.chat.failed.connect(self._failures.append)
        window.chat.reply_failed.connect(lambda words: self._failures.append(Failure(words)))
        window.chat.events_arrived.connect(self._listen)

    async def run(self, target: str, drafters: Sequence[str]) -> list[str]:
        """The text that each drafter brought.

        Raises:
            SelfTestFailed: something went wrong; in the words of the window.
        """
        self._window.open_target(target)
        await self._until(lambda: bool(self._ended))
        return [await self._answer(spec) for spec in drafters]

    async def _answer(self, spec: str) -> str:
        chat, replies = self._window.chat, len(self._window.chat.replies)
        chat.swap(spec)
        await self._until(lambda: chat.drafter == spec)
        chat.new_chat()
        self._words.clear()
        await asyncio.sleep(_LOOK_SECONDS)  # The old conversation goes first.
        chat.submit(_PROMPT, _PARAMS, "")
        await self._until(lambda: not chat.busy and len(chat.replies) > replies)
        stats, reason = chat.replies[-1].stats, chat.replies[-1].reason
        figures = (spec, stats.tokens, reason, stats.accepted, stats.drafted)
        logger.info("Self-test: %s wrote %d tokens (%s); %d of %d drafted were kept.", *figures)
        return "".join(self._words)

    async def _until(self, done: Callable[[], bool]) -> None:
        while not done():
            if self._failures:
                raise SelfTestFailed(self._failures[0].sentence)
            await asyncio.sleep(_LOOK_SECONDS)

    def _listen(self, events: Sequence[object]) -> None:
        rounds = (event for event in events if isinstance(event, Round))
        self._words += [token.text for each in rounds for token in each.tokens]
