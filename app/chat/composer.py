"""Where the user writes: a box that grows with its text, Send or Stop, a line for the context."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
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
from app.chat.long_text import MOST_EDITED
from app.chat.pasted import PastedTexts

if TYPE_CHECKING:
    from PySide6.QtGui import QResizeEvent

    from app.theme import Theme

_PAUSE_MS = 300
_FULL_SHARE = 0.9
PLACEHOLDER = "Ask anything…"


@dataclass(frozen=True, slots=True)
class Message:
    """What is sent as one text: what was typed, then the long texts that were pasted."""

    typed: str
    pasted: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The whole of it."""
        return "\n\n".join(filter(None, (self.typed, *self.pasted)))

    @property
    def is_blank(self) -> bool:
        """Whether there is nothing to answer."""
        return all(not part or part.isspace() for part in (self.typed, *self.pasted))


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
        self._sent = Message("")
        self._text = GrowingText()
        self._pasted = PastedTexts()
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
        self._text.long_text_pasted.connect(self._pasted.add)
        self._pasted.changed.connect(self._note_chips)
        # Before the button goes: Qt would give its focus to whatever comes next, a new chat even.
        self._pasted.taken_away.connect(self._text.setFocus)
        self._send.clicked.connect(self._submit)
        self._stop.clicked.connect(self.stop_requested)
        self._pause.timeout.connect(lambda: self.text_edited.emit(self.text()))
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
        self._text.show_placeholder(placeholder)
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
        """Give back a prompt that was not answered, before what has been written since."""
        back = self._sent if self._sent.text == text else _parted(text)
        self._text.moveCursor(QTextCursor.MoveOperation.Start)
        self._text.insert(f"{back.typed}\n" if back.typed and self._text.text() else back.typed)
        self._text.moveCursor(QTextCursor.MoveOperation.End)
        self._pasted.set_texts((*back.pasted, *self._pasted.texts))

    def text(self) -> str:
        """What would be sent now."""
        return self._message().text

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
        column.addWidget(self._pasted)
        column.addWidget(box)
        column.addWidget(self._context)

    def _show_state(self) -> None:
        self._stop.setVisible(self._busy)
        self._send.setVisible(not self._busy)
        self._send.setEnabled(self._ready and not self._message().is_blank)

    def _message(self) -> Message:
        return Message(self._text.text(), self._pasted.texts)

    def _submit(self) -> None:
        message = self._message()
        if self._busy or not self._ready or message.is_blank:
            return
        self._sent = message
        self._text.clear()
        self._pasted.set_texts(())
        self.submitted.emit(message.text)

    def _escape(self) -> None:
        if self._busy:
            self.stop_requested.emit()

    def _note_chips(self) -> None:
        """Chips come and go; the tab key finds them behind the box, not at the window's end."""
        for before, button in pairwise((self._stop, *self._pasted.buttons)):
            QWidget.setTabOrder(before, button)
        self._note_edit()

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


def _parted(text: str) -> Message:
    return Message(text) if len(text) <= MOST_EDITED else Message("", (text,))


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
