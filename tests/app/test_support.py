"""Help around the window, with a played engine."""

from __future__ import annotations

import threading

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPlainTextEdit

from app.crash_watch import Crash, CrashWatch
from app.report_dialog import ReportDialog
from app.support import Support
from app.welcome import Welcome
from tests.app.fakes import FakeLoad, says, talks_until_stopped, until
from tests.app.opened import opened, type_and_send
from tests.app.widgets import part_of


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch):
    monkeypatch.setattr("app.support.log_file", lambda: tmp_path / "log" / "draftlight.log")
    monkeypatch.setattr("app.support.settings_file", lambda: tmp_path / "settings.ini")
    (tmp_path / "log").mkdir()
    return tmp_path


def test_a_reply_is_noted_while_it_is_written(run, store, folders):
    gate = threading.Semaphore(1)
    note = folders / "running.json"

    async def scenario():
        async with opened(FakeLoad(talks_until_stopped(gate)), store) as window:
            Support(window, CrashWatch(folders))
            type_and_send(window, "hello")
            await until(lambda: window.chat.busy)
            during = note.read_text()
            window.chat.stop()
            gate.release(10)
            await until(lambda: not window.chat.busy)
            return during, note.read_text()

    during, after = run(scenario())

    assert "answering with" in during
    assert "answering" not in after


def test_a_crash_is_told_with_its_report_and_no_model_is_opened(run, store, folders):
    load = FakeLoad(says("one"))

    async def scenario():
        async with opened(load, store) as window:
            support = Support(window, CrashWatch(folders))
            support.tell_crash(Crash("opening /a.gguf", "trace"))
            return window.banner.sentence

    sentence = run(scenario())

    assert "while opening /a.gguf" in sentence
    assert "choose one" in sentence
    assert list((folders / "log").glob("crash *.txt"))


@pytest.mark.qt_log_ignore("This plugin does not support")
def test_help_stands_at_the_side_and_comes_by_its_key(run, store, folders):
    async def scenario():
        async with opened(FakeLoad(says("one")), store) as window:
            support = Support(window, CrashWatch(folders))
            QTest.keyClick(window, Qt.Key.Key_F1)
            await until(support.help.choices.isVisible)
            support.help.choices.close()
            return window.sidebar.isAncestorOf(support.help)

    assert run(scenario())


def test_a_report_can_be_asked_for(run, store, folders):
    async def scenario():
        async with opened(FakeLoad(says("one")), store) as window:
            support = Support(window, CrashWatch(folders))
            support.help.report_requested.emit()
            return part_of(part_of(window, ReportDialog), QPlainTextEdit).toPlainText()

    assert "== Settings ==" in run(scenario())


def test_a_model_chosen_in_the_welcome_is_opened(run, store, folders):
    load = FakeLoad(says("one"))

    async def scenario():
        async with opened(load, store) as window:
            support = Support(window, CrashWatch(folders))
            support.welcome()
            part_of(window, Welcome).target_chosen.emit("/models/b.gguf")
            await until(lambda: len(load.targets) > 1)

    run(scenario())

    assert load.targets[-1] == "/models/b.gguf"
