"""The first start keeps the window; later ones hand it their files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from app.single_instance import SingleInstance
from tests.app.widgets import heard

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def starts(qapp):
    """Starts of the app in a folder; they are over when the test is."""
    made: list[SingleInstance] = []

    def start(folder: Path) -> SingleInstance:
        made.append(SingleInstance(folder))
        return made[-1]

    yield start
    for each in made:
        each.release()


def test_only_the_first_start_goes_on(starts, tmp_path):
    first, second = starts(tmp_path / "Prüf ordner"), starts(tmp_path / "Prüf ordner")

    assert first.claim()
    assert not second.claim()


def test_users_with_folders_of_their_own_do_not_meet(starts, tmp_path):
    assert starts(tmp_path / "ada").claim()
    assert starts(tmp_path / "bob").claim()


@pytest.mark.parametrize("file", ["", "/models/ä 模型.gguf"])
def test_a_later_start_hands_its_file_to_the_first(starts, tmp_path, qtbot, file):
    first, second = starts(tmp_path), starts(tmp_path)
    first.claim()
    files = heard(first.handed_over)

    handed = second.hand_over(file)

    qtbot.waitUntil(lambda: bool(files))
    assert handed
    assert files == [file]


def test_nobody_hears_where_nobody_is(starts, tmp_path):
    assert not starts(tmp_path).hand_over("/models/a.gguf")


def test_the_next_start_after_the_first_has_ended_is_the_first(starts, tmp_path):
    first, second = starts(tmp_path), starts(tmp_path)
    first.claim()

    first.release()

    assert second.claim()


def test_a_start_that_was_killed_keeps_nobody_out(starts, tmp_path, qtbot):
    code = """
import os, sys
from pathlib import Path
from PySide6.QtCore import QCoreApplication
from app.single_instance import SingleInstance
app = QCoreApplication([])
print(SingleInstance(Path(sys.argv[1])).claim(), flush=True)
os._exit(1)
"""
    killed = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, capture_output=True, check=False
    )
    next_start, later = starts(tmp_path), starts(tmp_path)

    assert killed.stdout.strip() == b"True"
    assert next_start.claim()
    files = heard(next_start.handed_over)
    assert later.hand_over("/a")
    qtbot.waitUntil(lambda: files == ["/a"])


def test_where_nothing_can_be_locked_every_start_goes_on(starts, tmp_path):
    (tmp_path / "file").write_text("no folder")

    assert starts(tmp_path / "file" / "folder").claim()
