"""Coroutines started from Qt slots: kept alive, their errors shown, ended together."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Coroutine


class Background:
    """The tasks that one object has started and that are still going on."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._finished = False

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a coroutine on the running loop; an error nobody caught goes to the excepthook.

        After `finish` it is cancelled before it has begun: a timer of a closed window may ask.
        """
        task = asyncio.get_running_loop().create_task(work)
        if self._finished:
            task.cancel()
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    async def finish(self) -> None:
        """Cancel what is still going on, and wait for it; nothing begins any more."""
        self._finished = True
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            sys.excepthook(type(error), error, error.__traceback__)
