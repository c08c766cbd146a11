"""A dialog to read a long text in, and to copy it from."""

from __future__ import annotations

import re

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QIcon
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QPlainTextEdit, QVBoxLayout, QWidget

from app.text_view import TextView
from app.theme import STEP

# Qt lays out a line at a time, in a time that grows with the square of its length.
_LONG_LINE = re.compile(r"(.{1000})(?=.)")


class TextDialog(QDialog):
    """A sentence, and beneath it the text; a very long line is broken to be shown, not copied."""

    def __init__(self, sentence: str, text: str, *, name: str, parent: QWidget | None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Draftlight")
        self.resize(180 * STEP, 105 * STEP)
        heading = TextView()
        heading.show_text(sentence)
        shown = QPlainTextEdit(_LONG_LINE.sub(r"\1\n", text))
        shown.setReadOnly(True)
        shown.setProperty("kind", "field")
        shown.setAccessibleName(name)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        copy = buttons.addButton("Copy", QDialogButtonBox.ButtonRole.ActionRole)
        copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(text))
        buttons.rejected.connect(self.reject)
        for button in buttons.buttons():
            button.setIcon(QIcon())  # Some of Qt's styles have one for some of them.
        column = QVBoxLayout(self)
        column.setContentsMargins(5 * STEP, 5 * STEP, 5 * STEP, 4 * STEP)
        column.setSpacing(3 * STEP)
        column.addWidget(heading)
        column.addWidget(shown, 1)
        column.addWidget(buttons)
        shown.setFocus()
