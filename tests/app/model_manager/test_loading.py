"""Loads follow one another; each says how it went."""

from __future__ import annotations

import pytest

from app.engine_thread import EngineThread
from app.model_manager.loading import TargetLoader
from engine.errors import ModelError
from tests.app.fakes import FakeLoad, says, until

SIGNALS = ("started", "progressed", "loaded", "failed", "ended")


def listen(loader: TargetLoader) -> list[str]:
    heard: list[str] = []
    for name in SIGNALS:
        getattr(loader, name).connect(lambda *_, name=name: heard.append(name))
    return heard


@pytest.mark.parametrize(
    ("error", "outcome"),
    [(None, "loaded"), (ModelError("no model"), "failed"), (KeyError(), "failed")],
)
def test_a_load_says_how_it_goes_and_that_it_has_ended(run, error, outcome):
    async def scenario():
        async with EngineThread(FakeLoad(says("one"), error)) as engine:
            loader = TargetLoader(engine)
            heard = listen(loader)
            loader.load("default", "auto")
            await until(lambda: "ended" in heard)
            return heard

    assert run(scenario()) == ["started", "progressed", outcome, "ended"]


def test_another_load_gives_up_the_first_and_says_so_before_it_starts(run):
    load = FakeLoad(says("one"))
    load.gate.clear()

    async def scenario():
        async with EngineThread(load) as engine:
            loader = TargetLoader(engine)
            heard = listen(loader)
            targets = []
            loader.loaded.connect(targets.append)
            loader.load("/first", "auto")
            await until(lambda: "progressed" in heard)
            loader.load("/second", "auto")
            await until(lambda: heard.count("started") == 2)
            load.gate.set()
            await until(lambda: heard.count("ended") == 2)
            return heard, targets

    heard, targets = run(scenario())

    assert heard == ["started", "progressed", "ended", "started", "progressed", "loaded", "ended"]
    assert load.targets == ["/first", "/second"]
    assert len(targets) == 1


def test_closing_during_a_load_does_not_report_it(run):
    load = FakeLoad(says("one"))
    load.gate.clear()

    async def scenario():
        async with EngineThread(load) as engine:
            loader = TargetLoader(engine)
            heard = listen(loader)
            loader.load("default", "auto")
            await until(lambda: "progressed" in heard)
            await loader.finish()
            load.gate.set()
            return heard

    assert not {"loaded", "failed"} & set(run(scenario()))
