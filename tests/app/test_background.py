"""Coroutines started from slots are kept, ended together, and never fail in silence."""

from __future__ import annotations

import asyncio
import sys

from app.background import Background
from tests.app.fakes import until


def test_an_error_nobody_caught_reaches_the_excepthook(run, monkeypatch):
    caught: list[BaseException] = []
    monkeypatch.setattr(sys, "excepthook", lambda kind, error, trace: caught.append(error))
    error = KeyError("lost")

    async def fail() -> None:
        raise error

    async def scenario():
        Background().start(fail())
        await until(lambda: caught)

    run(scenario())

    assert caught == [error]


def test_finishing_cancels_what_is_still_going_on(run):
    cancelled: list[bool] = []

    async def wait_for_ever() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    async def scenario():
        tasks = Background()
        tasks.start(wait_for_ever())
        await asyncio.sleep(0)
        await tasks.finish()
        await tasks.finish()

    run(scenario())

    assert cancelled == [True]


def test_nothing_begins_after_the_end(run):
    begun: list[bool] = []

    async def begin() -> None:
        begun.append(True)

    async def scenario():
        tasks = Background()
        await tasks.finish()
        late = tasks.start(begin())
        await asyncio.wait({late})
        return late.cancelled()

    assert run(scenario())
    assert not begun
