"""The user sees a report, changes it, and decides where it goes."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QLabel, QPlainTextEdit, QPushButton

from app.report_dialog import ReportDialog
from tests.app.widgets import heard, part_of


@pytest.fixture
def dialog(qtbot) -> ReportDialog:
    made = ReportDialog("first line\nsecond line")
    made.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, on=False)  # The test does so.
    qtbot.addWidget(made)
    made.show()
    return made


def test_what_the_user_takes_out_is_not_saved(dialog, tmp_path):
    accepted = heard(dialog.accepted)
    part_of(dialog, QPlainTextEdit).setPlainText("first line")

    dialog.save(str(tmp_path / "ä.txt"))

    assert (tmp_path / "ä.txt").read_text(encoding="utf-8") == "first line"
    assert accepted


def test_what_is_shown_is_what_is_copied(dialog):
    next(b for b in dialog.findChildren(QPushButton) if "Copy" in b.text()).click()

    assert QGuiApplication.clipboard().text() == "first line\nsecond line"


def test_a_report_that_cannot_be_saved_stays_with_a_sentence(dialog, tmp_path):
    dialog.save(str(tmp_path / "none" / "report.txt"))

    said = [label.text() for label in dialog.findChildren(QLabel) if label.isVisible()]
    assert any("can't be written" in words and "Choose another" in words for words in said)
    assert dialog.isVisible()
