"""The measurement compares like with like and says when it cannot."""

from __future__ import annotations

import re

from app.engine_thread import EngineThread
from app.measure import measure
from app.settings import SettingsStore
from app.theme import load_theme
from app.window import MainWindow
from engine.errors import ModelError, OutOfMemory
from tests.app.fakes import FakeLoad, fails_with, says


async def measured(load: FakeLoad, store: SettingsStore) -> int:
    async with EngineThread(load) as engine:
        window = MainWindow(engine, store, load_theme("light"))
        code = await measure(window, engine, None, "off")
        window.close()
        await window.finish()
        window.deleteLater()
        return code


def test_both_speeds_and_their_ratio_are_printed(run, tmp_path, capsys):
    load = FakeLoad(says(*"abcdef"))

    code = run(measured(load, SettingsStore(tmp_path / "settings.ini")))

    lines = capsys.readouterr().out.splitlines()
    figures = [float(re.findall(r"[\d.]+", line)[0]) for line in lines]
    assert code == 0
    assert [line.split("  ")[0] for line in lines] == [
        "with the window",
        "without the window",
        "ratio",
    ]
    assert figures[2] > 0


def test_every_run_asks_the_same_in_a_conversation_of_its_own(run, tmp_path, capsys):
    load = FakeLoad(says("one"))

    run(measured(load, SettingsStore(tmp_path / "settings.ini")))

    asked = [session for session in load.engines[0].sessions if session.params]
    assert len(asked) == 8
    assert all(len(session.params) == 1 for session in asked)
    assert len({session.params[0] for session in asked}) == 1
    assert "ratio" in capsys.readouterr().out


def test_a_target_that_cannot_be_loaded_is_told_in_its_own_words(run, tmp_path, capsys):
    load = FakeLoad(says("one"), error=ModelError("a.txt is no model."))

    code = run(measured(load, SettingsStore(tmp_path / "settings.ini")))

    assert code == 1
    assert capsys.readouterr().err.strip() == "a.txt is no model."


def test_a_reply_that_fails_ends_the_measurement(run, tmp_path, capsys):
    load = FakeLoad(fails_with(OutOfMemory("No memory left.")))

    code = run(measured(load, SettingsStore(tmp_path / "settings.ini")))

    assert code == 1
    assert capsys.readouterr().err.strip() == "No memory left."
