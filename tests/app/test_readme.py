"""What the README and the requirements say about the window."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from PySide6.QtWidgets import QWidget

from app.model_manager.picker import TargetPicker

ROOT = Path(__file__).resolve().parents[2]


def test_the_menu_has_the_words_that_the_readme_names(qtbot):
    parent = QWidget()
    qtbot.addWidget(parent)
    menu = TargetPicker(parent)
    menu.aboutToShow.emit()

    named = set(re.findall(r"\*(Open[^*]*…)\*", (ROOT / "README.md").read_text("utf-8")))

    assert named
    assert named <= {action.text() for action in menu.actions()}


def test_no_pyqtgraph_is_admitted_that_draws_no_lines():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    needed = next(each for each in project["dependencies"] if each.startswith("pyqtgraph"))

    assert tuple(map(int, re.findall(r"\d+", needed))) >= (0, 14)
