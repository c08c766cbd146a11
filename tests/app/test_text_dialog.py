"""The dialog for a long text: all of it is there, and no line is too long for Qt."""

from __future__ import annotations

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QPlainTextEdit, QPushButton

from app.text_dialog import TextDialog
from tests.app.widgets import part_of


def opened(qtbot, text: str) -> TextDialog:
    dialog = TextDialog("You wrote", text, name="You", parent=None)
    qtbot.addWidget(dialog)
    return dialog


def test_a_very_long_line_is_laid_out_in_pieces(qtbot):
    dialog = opened(qtbot, "x" * 300_000)

    lengths = []
    block = part_of(dialog, QPlainTextEdit).document().begin()
    while block.isValid():
        lengths.append(block.length() - 1)
        block = block.next()
    assert sum(lengths) == 300_000
    assert max(lengths) <= 1000


def test_the_copy_is_the_text_itself(qtbot):
    text = "a\u00a0b\n" + "x" * 5000
    dialog = opened(qtbot, text)

    next(b for b in dialog.findChildren(QPushButton) if "Copy" in b.text()).click()

    assert QGuiApplication.clipboard().text() == text
