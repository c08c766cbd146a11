"""Starts of the whole app, one after the other and beside each other, in a home of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[2]
HOMES = ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals end the window here")


def start(home: Path, *words: str) -> subprocess.Popen[bytes]:
    """The app, once its window is ready or it has ended."""
    home.mkdir(exist_ok=True)
    for log in home.rglob("*.log"):
        log.unlink()
    command = [sys.executable, "-m", "app", *words]
    app = subprocess.Popen(command, cwd=ROOT, env=environment(home))
    wait(lambda: "is ready" in logged(home) or app.poll() is not None)
    return app


def environment(home: Path) -> dict[str, str]:
    return {**os.environ, **dict.fromkeys(HOMES, str(home))}


def logged(home: Path) -> str:
    return "".join(log.read_text("utf-8") for log in home.rglob("*.log"))


def noted(home: Path) -> str:
    return "".join(note.read_text("utf-8") for note in home.rglob("running.json"))


def wait(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and not done():
        threading.Event().wait(0.05)


@pytest.mark.slow
def test_a_second_start_hands_its_file_to_the_first_and_ends(tmp_path):
    home, other = tmp_path / "Heim é", tmp_path / "ä other.gguf"
    with start(home, "--target", str(tmp_path / "none")) as first:
        command = [sys.executable, "-m", "app", str(other)]
        second = subprocess.run(command, cwd=ROOT, env=environment(home), check=False)
        wait(lambda: str(other) in logged(home))
        first.terminate()

    assert second.returncode == 0
    assert first.returncode == 0
    assert f"There is no file or folder at {other}" in logged(home)


def test_after_a_crash_the_window_opens_without_the_model_that_was_there(tmp_path):
    home = tmp_path / "home"
    with start(home, "--target", "/none.gguf") as first:
        wait(lambda: "opening" in noted(home))
        first.kill()
    with start(home, "--target", "/none.gguf") as second:
        threading.Event().wait(1)
        second.terminate()
    with start(home, "--target", "/none.gguf") as third:
        third.terminate()

    assert second.returncode == 0
    assert third.returncode == 0
    [report] = home.rglob("crash *.txt")
    assert "While opening /none.gguf." in report.read_text(encoding="utf-8")
    assert not list(home.rglob("running.json"))


def test_settings_and_logs_of_a_first_start_lie_in_the_users_folders(tmp_path):
    with start(tmp_path, "--target", "/none.gguf") as app:
        app.terminate()

    assert [path.name for path in tmp_path.rglob("*.ini")] == ["settings.ini"]
    assert [path.name for path in tmp_path.rglob("*.log")] == ["draftlight.log"]
