"""What a run that breaks down leaves behind, and what the next one makes of it."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from app.crash_watch import Crash, CrashWatch, watched
from engine.errors import ModelError

ROOT = Path(__file__).resolve().parents[2]


def run_to_its_end(folder: Path, *lines: str) -> None:
    """A run of its own that is watched in a folder and does these lines; some end it at once."""
    code = "\n".join(
        [
            "import faulthandler, os, resource, signal, sys",
            "from pathlib import Path",
            "from app.crash_watch import CrashWatch",
            "resource.setrlimit(resource.RLIMIT_CORE, (0, 0))" if sys.platform != "win32" else "",
            "watch = CrashWatch(Path(sys.argv[1]))",
            "watch.begin()",
            *lines,
        ]
    )
    subprocess.run(
        [sys.executable, "-c", code, str(folder)], cwd=ROOT, capture_output=True, check=False
    )


def crash_found(folder: Path) -> Crash | None:
    """What the next run finds."""
    watch = CrashWatch(folder)
    try:
        return watch.begin()
    finally:
        watch.end()


@pytest.fixture(autouse=True)
def _pytest_keeps_its_own_traces(monkeypatch):
    """The watch would switch off what pytest has switched on."""
    for name in ("enable", "disable"):
        monkeypatch.setattr(f"app.crash_watch.faulthandler.{name}", lambda *_: None)


def test_the_first_run_ever_follows_no_crash(tmp_path):
    assert crash_found(tmp_path / "log") is None


def test_a_run_that_ends_well_leaves_nothing(tmp_path):
    run_to_its_end(tmp_path, "with watch.during('opening /a.gguf'): pass", "watch.end()")

    assert list(tmp_path.iterdir()) == []
    assert crash_found(tmp_path) is None


def test_a_run_that_breaks_down_is_known_by_what_it_did_and_where(tmp_path):
    run_to_its_end(tmp_path, "watch.starts('opening /a ä.gguf')", "os.abort()")

    crash = crash_found(tmp_path)

    assert crash is not None
    assert crash.doing == "opening /a ä.gguf"
    assert "Abort" in crash.trace
    assert "line" in crash.trace


def test_a_run_that_breaks_down_while_idle_is_a_crash_too(tmp_path):
    run_to_its_end(tmp_path, "os.abort()")

    crash = crash_found(tmp_path)

    assert crash is not None
    assert crash.doing == ""


def test_a_run_killed_in_the_midst_of_something_crashed_by_it(tmp_path):
    run_to_its_end(tmp_path, "watch.starts('answering with default')", "os._exit(9)")

    assert crash_found(tmp_path) == Crash("answering with default", "")


def test_a_run_killed_while_it_did_nothing_did_not_crash(tmp_path):
    run_to_its_end(
        tmp_path, "watch.starts('opening /a')", "watch.ends('opening /a')", "os._exit(9)"
    )

    assert crash_found(tmp_path) is None


def test_a_crash_is_told_once(tmp_path):
    run_to_its_end(tmp_path, "watch.starts('opening /a')", "os._exit(9)")

    assert crash_found(tmp_path) is not None
    assert crash_found(tmp_path) is None


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"doing": 7}', "\x00"])
def test_a_damaged_note_is_no_crash_and_no_trouble(tmp_path, damage):
    (tmp_path / "running.json").write_text(damage)

    assert crash_found(tmp_path) is None


def test_what_goes_on_at_once_is_noted_together(tmp_path):
    watch = CrashWatch(tmp_path)

    watch.starts("opening /a")
    watch.starts("answering with /b")
    watch.ends("never begun")

    assert "opening /a and answering with /b" in (tmp_path / "running.json").read_text()


def test_a_folder_that_takes_nothing_stops_nobody(tmp_path):
    (tmp_path / "file").write_text("no folder")

    assert crash_found(tmp_path / "file" / "log") is None


def test_a_load_is_noted_while_it_lasts_and_its_error_passes(tmp_path):
    watch = CrashWatch(tmp_path)
    noted: list[str] = []

    def load(target, *, device, progress, stop):
        noted.append((tmp_path / "running.json").read_text())
        raise ModelError(f"{target} on {device} is no model.")

    with pytest.raises(ModelError, match=r"/a\.gguf on cpu"):
        watched(load, watch)(
            "/a.gguf", device="cpu", progress=lambda *_: None, stop=threading.Event()
        )

    assert "opening /a.gguf" in noted[0]
    assert "opening" not in (tmp_path / "running.json").read_text()
