"""A report holds what helps, and nothing that was typed."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from app.crash_watch import Crash
from app.report import keep_crash_report, log_tail, problem_report
from app.settings import Settings, SettingsStore
from engine import __version__
from tests.app.fakes import FakeDevice, FakeEngine


@pytest.fixture
def log(tmp_path) -> Path:
    path = tmp_path / "log" / "draftlight.log"
    path.parent.mkdir()
    path.write_text("\n".join(f"line {number}" for number in range(1000)), encoding="utf-8")
    return path


@pytest.fixture
def settings(tmp_path) -> Path:
    path = tmp_path / "settings.ini"
    typed = {"system_prompt": "You are Ada's aunt.", "stop_texts": ["Dear Ada"], "top_k": 7}
    SettingsStore(path).save(Settings(device="cuda:0", sampling=typed))
    return path


def loaded() -> Any:
    """A target as the window knows it."""
    target = cast("Any", FakeEngine(lambda session, stop: iter(())))
    target.devices = (FakeDevice(),)
    return target


def test_versions_device_settings_and_the_end_of_the_log_are_there(settings, log):
    text = problem_report(loaded(), settings, log)

    assert f"Draftlight {__version__}, from a checkout" in text
    assert "torch 2" in text
    assert "CPU, 2 cores, 4.0 GiB" in text
    assert "Fake 1M runs on cpu, float32" in text
    assert 'device = "cuda:0"' in text
    assert '"top_k": 7' in text
    assert "line 999" in text
    assert "line 1\n" not in text


def test_nothing_that_was_typed_is_in_it(settings, log):
    text = problem_report(None, settings, log)

    assert "Ada" not in text


def test_the_home_folder_does_not_give_a_name_away(settings, log, monkeypatch):
    monkeypatch.setattr(Path, "home", lambda: Path("/home/ada"))
    log.write_text("Opened /home/ada/models/a.gguf")

    text = problem_report(None, settings, log)

    assert "Opened ~/models/a.gguf" in text
    assert "ada" not in text


def test_without_a_log_there_is_a_report_all_the_same(settings, tmp_path):
    assert "There is no log." in problem_report(None, settings, tmp_path / "none.log")


def test_the_log_before_a_change_of_files_belongs_to_its_end(log):
    log.with_name("draftlight.log.1").write_text("older\nold")
    log.write_text("new")

    assert log_tail(log) == "older\nold\nnew"


def test_a_crash_is_written_down_so_that_it_can_be_read(log):
    text = keep_crash_report(Crash("opening /a.gguf", 'File "a.py", line 7'), log)

    [path] = log.parent.glob("crash *.txt")
    assert path.read_text(encoding="utf-8") == text
    assert "While opening /a.gguf." in text
    assert "line 7" in text
    assert "line 999" in text


def test_a_problem_report_brings_the_last_crash(settings, log):
    keep_crash_report(Crash("opening /a.gguf", ""), log)

    assert "While opening /a.gguf." in problem_report(None, settings, log)


def test_only_the_newest_crashes_are_kept(log):
    for day in range(10, 20):
        (log.parent / f"crash 2026-01-{day} 00-00-00.txt").write_text("old")

    keep_crash_report(Crash("", "trace"), log)

    names = sorted(path.name for path in log.parent.glob("crash *.txt"))
    assert len(names) == 5
    assert names[0] == "crash 2026-01-16 00-00-00.txt"
