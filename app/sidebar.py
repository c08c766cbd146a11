"""The left column: a new chat; the conversations will stand beneath it."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from app.theme import STEP

WIDTH = 236


class Sidebar(QFrame):
    """A column of fixed width. The shortcut that it names is the window's, which may hide it."""

    new_chat_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("sidebar")
        self.setFixedWidth(WIDTH)
        column = QVBoxLayout(self)
        column.setContentsMargins(10, 14, 10, 14)
        column.addWidget(self._new_chat_button())
        column.addStretch()

    def _new_chat_button(self) -> QPushButton:
        shortcut = QKeySequence(QKeySequence.StandardKey.New)
        button = QPushButton("New chat")
        button.setObjectName("newChat")
        button.setAccessibleName("New chat")
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        button.clicked.connect(self.new_chat_requested)
        hint = QLabel(shortcut.toString(QKeySequence.SequenceFormat.NativeText).replace("+", " "))
        hint.setProperty("kind", "muted")
        hint.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        row = QHBoxLayout(button)
        row.setContentsMargins(3 * STEP, 0, 3 * STEP, 0)
        row.addStretch()
        row.addWidget(hint)
        return button
