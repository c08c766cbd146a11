"""The two kinds of turns: what the user wrote, and a reply with its figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from app.chat.long_text import beginning, size_of
from app.chat.pills import PillRow
from app.chat.reply_view import ReplyView
from app.text_dialog import TextDialog
from app.text_view import TextView
from engine.events import Finished

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.theme import Theme
    from engine.events import Event

_INSIDE_ACROSS = 14
_INSIDE_DOWN = 10


class UserTurn(QWidget):
    """What the user wrote, literally, in a box on the right; of a long text the beginning."""

    def __init__(self, text: str, most: int) -> None:
        super().__init__()
        self._text = text
        self._view = TextView()
        self._view.setAccessibleName("You")
        shown = beginning(text)
        self._view.show_text(shown)
        box = QFrame()
        box.setProperty("kind", "user-turn")
        inside = QVBoxLayout(box)
        inside.setContentsMargins(_INSIDE_ACROSS, _INSIDE_DOWN, _INSIDE_ACROSS, _INSIDE_DOWN)
        inside.addWidget(self._view)
        if shown != text:
            inside.addWidget(self._button(), 0, Qt.AlignmentFlag.AlignLeft)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addStretch(1)
        row.addWidget(box)
        self.set_most(most)

    def set_most(self, pixels: int) -> None:
        """Be as wide as the text needs, and at most this wide."""
        self._view.fit_width(pixels - 2 * _INSIDE_ACROSS)

    def _button(self) -> QPushButton:
        button = QPushButton(f"Show all {size_of(self._text)}")
        button.setProperty("kind", "quiet")
        button.setCursor(Qt.CursorShape.PointingHandCursor)
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        button.clicked.connect(self._show_all)
        return button

    def _show_all(self) -> None:
        words = f"You wrote {size_of(self._text)}"
        TextDialog(words, self._text, name="You", parent=self.window()).open()


class Reply(QWidget):
    """A reply's text, its figures, and the sentence that ended it if something failed."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.view = ReplyView(theme)
        self.row = PillRow()
        self.row.hide()
        self._fault = TextView()
        self._fault.setProperty("kind", "error")
        self._fault.setAccessibleName("Why the reply ends here")
        self._fault.hide()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(12)
        for part in (self.view, self._fault, self.row):
            column.addWidget(part)

    def apply(self, events: Sequence[Event]) -> None:
        """Show events; the end brings the figures."""
        self.view.apply(events)
        for event in events:
            if isinstance(event, Finished):
                self.row.show_figures(event)
                self.row.show()

    def fail(self, sentence: str) -> None:
        """End here; keep what was written and say why there is no more."""
        self.view.break_off()
        self._fault.show_text(sentence)
        self._fault.show()
        self.row.show()
