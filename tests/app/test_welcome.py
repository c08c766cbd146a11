"""The welcome says what a new user needs, and opens a model of the user's."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog, QLabel, QPushButton

from app.theme import load_theme
from app.welcome import Sample, Welcome
from tests.app.widgets import heard


@pytest.fixture
def welcome(qtbot, theme) -> Welcome:
    made = Welcome(theme, {"Models": "/home/ada/models & more"})
    made.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, on=False)  # The test does so.
    qtbot.addWidget(made)
    made.show()
    return made


def button(welcome: Welcome, words: str) -> QPushButton:
    return next(b for b in welcome.findChildren(QPushButton) if words in b.text())


def test_every_colour_is_shown_with_its_name_and_its_meaning(welcome):
    names = [sample.accessibleName() for sample in welcome.findChildren(Sample)]

    assert names == ["accepted", "resampled", "target only"]


def test_where_data_lives_is_told(welcome):
    shown = [label.text() for label in welcome.findChildren(QLabel)]

    assert "/home/ada/models & more" in shown
    assert any("leaves this machine" in words for words in shown)


def test_starting_needs_one_key(welcome, qtbot):
    accepted = heard(welcome.accepted)

    qtbot.keyClick(welcome, Qt.Key.Key_Return)

    assert accepted


def test_a_chosen_model_is_opened_and_the_page_goes(welcome):
    targets = heard(welcome.target_chosen)
    button(welcome, "GGUF").click()
    dialog = welcome.findChild(QFileDialog)

    dialog.fileSelected.emit("/models/a.gguf")

    assert targets == ["/models/a.gguf"]
    assert not welcome.isVisible()


@pytest.mark.parametrize("name", ["light", "dark"])
def test_it_can_be_drawn_in_either_theme(qtbot, name):
    made = Welcome(load_theme(name), {})
    qtbot.addWidget(made)

    assert not made.grab().isNull()
