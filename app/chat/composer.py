"""Where the user writes: a box that grows with its text, Send or Stop, a line for the context."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QTextCursor
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QProgressBar,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.chat.column import column_in
from app.chat.growing_text import ONE_LINE_PIXELS, GrowingText

if TYPE_CHECKING:
    from PySide6.QtGui import QResizeEvent

    from app.theme import Theme

_PAUSE_MS = 300
_FULL_SHARE = 0.9
PLACEHOLDER = "Ask anything…"


class Composer(QWidget):
    """Says what the user wants to send; what is typed stays until it is sent."""

    submitted = Signal(str)
    stop_requested = Signal()
    text_edited = Signal(str)
    """The text, once typing has paused."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._busy = False
        self._ready = True
        self._text = GrowingText()
        self._send = _button("Send", "Send (Enter)")
        self._stop = _button("Stop", "Stop the reply (Esc)")
        self._context = QProgressBar()
        self._pause = QTimer(self)
        self._pause.setSingleShot(True)
        self._pause.setInterval(_PAUSE_MS)
        self._assemble()
        self._text.enter_pressed.connect(self._submit)
        self._text.escape_pressed.connect(self._escape)
        self._text.textChanged.connect(self._note_edit)
        self._send.clicked.connect(self._submit)
        self._stop.clicked.connect(self.stop_requested)
        self._pause.timeout.connect(lambda: self.text_edited.emit(self._text.toPlainText()))
        self.setFocusProxy(self._text)
        self.set_ready(True, PLACEHOLDER)
        self.set_context(0, 0)
        self.set_theme(theme)

    def set_busy(self, busy: bool) -> None:
        """While a reply is written, Stop stands in Send's place; typing ahead goes on."""
        self._busy = busy
        if self._send.hasFocus() or self._stop.hasFocus():
            self._text.setFocus()  # The one that has it is about to be hidden.
        self._show_state()

    def set_ready(self, ready: bool, placeholder: str) -> None:
        """Say whether there is a model to send to."""
        self._ready = ready
        self._text.setPlaceholderText(placeholder)
        self._text.viewport().update()  # Qt repaints only where a placeholder comes or goes.
        self._show_state()

    def set_context(self, used: int, total: int) -> None:
        """Show how many tokens of the context the conversation takes; a total of 0 is unknown."""
        self._context.setRange(0, max(total, 1))
        self._context.setValue(min(used, total))
        words = (
            f"{used:,} of {total:,} tokens of context used" if total else "Context not known yet"
        )
        self._context.setToolTip(words)
        self._context.setAccessibleDescription(words)
        full = total > 0 and used > _FULL_SHARE * total
        if full is not self._context.property("full"):
            _set_look(self._context, "full", full)

    def restore(self, text: str) -> None:
        """Give back a prompt that could not be answered, before what has been typed since."""
        typed = self._text.toPlainText()
        self._text.setPlainText(f"{text}\n{typed}" if typed else text)
        self._text.moveCursor(QTextCursor.MoveOperation.End)

    def text(self) -> str:
        """What is typed now."""
        return self._text.toPlainText()

    def set_theme(self, theme: Theme) -> None:
        """The style sheet brings the colours; nothing here is painted by hand."""

    def _assemble(self) -> None:
        box = QFrame()
        box.setProperty("kind", "composer")
        row = QHBoxLayout(box)
        row.setContentsMargins(8, 9, 12, 9)
        row.setSpacing(12)
        row.addWidget(self._text, 1)
        for button in (self._send, self._stop):
            row.addWidget(button, 0, Qt.AlignmentFlag.AlignBottom)
        self._text.focus_changed.connect(lambda focused: _set_look(box, "focused", focused))
        self._context.setProperty("kind", "thin")
        self._context.setTextVisible(False)
        self._context.setFixedHeight(4)
        self._context.setAccessibleName("Context used")
        column = QVBoxLayout(self)
        column.setSpacing(10)
        column.addWidget(box)
        column.addWidget(self._context)

    def _show_state(self) -> None:
        self._stop.setVisible(self._busy)
        self._send.setVisible(not self._busy)
        self._send.setEnabled(self._ready and not self._is_blank())

    def _is_blank(self) -> bool:
        return not self._text.toPlainText().strip()

    def _submit(self) -> None:
        if self._busy or not self._ready or self._is_blank():
            return
        text = self._text.toPlainText()
        self._text.clear()
        self.submitted.emit(text)

    def _escape(self) -> None:
        if self._busy:
            self.stop_requested.emit()

    def _note_edit(self) -> None:
        self._show_state()
        self._pause.start()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Stand in the same column as the conversation."""
        super().resizeEvent(event)
        left, column = column_in(self.width())
        layout = self.layout()
        if layout is not None:
            layout.setContentsMargins(left, 8, self.width() - left - column, 14)


def _button(words: str, hint: str) -> QPushButton:
    button = QPushButton(words)
    button.setProperty("kind", "primary")
    button.setToolTip(hint)
    button.setFixedSize(60, ONE_LINE_PIXELS)
    button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
    return button


def _set_look(widget: QWidget, name: str, value: bool) -> None:
    """Set what the style sheet selects by, and let it look again."""
    widget.setProperty(name, value)
    widget.style().unpolish(widget)
    widget.style().polish(widget)
