"""Starting the app: what is imported when, what the system may ask for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from app.__main__ import main

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(sys.platform == "win32", reason="there torch has to come first")
def test_the_window_can_be_built_before_torch_is_imported():
    code = "import sys, app.__main__; print({'torch', 'transformers'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == "set()"


def test_a_wish_to_quit_becomes_a_wish_to_close_the_window():
    code = """
from PySide6.QtCore import QEvent
from app.__main__ import App
app = App([])
app.quit_requested.connect(lambda: print("asked"))
print(app.event(QEvent(QEvent.Type.Quit)))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert done.stdout.split() == ["asked", "True"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_request_to_end_closes_the_window_and_keeps_the_choices(tmp_path, name):
    folders = {name: str(tmp_path) for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")}
    command = [sys.executable, "-m", "app", "--target", str(tmp_path / "none")]
    with subprocess.Popen(command, cwd=ROOT, env={**os.environ, **folders}) as app:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not _is_ready(tmp_path):
            threading.Event().wait(0.05)
        app.send_signal(signal.Signals[name])

    assert app.returncode == 0
    assert list(tmp_path.rglob("settings.ini"))


def _is_ready(folder: Path) -> bool:
    return any("is ready" in log.read_text("utf-8") for log in folder.rglob("*.log"))


def test_an_unknown_option_is_refused_in_a_sentence(capsys):
    with pytest.raises(SystemExit):
        main(["--no-such-option"])

    assert "unrecognized arguments: --no-such-option" in capsys.readouterr().err
