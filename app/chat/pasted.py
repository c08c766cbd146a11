"""Long texts that were pasted: chips to open or take away, sent with the message."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton

from app.chat.long_text import size_of
from app.chat.wrapped_row import LINE_PIXELS, WrappedRow
from app.text_dialog import TextDialog

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_HINT = "Too long to be edited here; it is sent after what you write. Click to read it."


class PastedTexts(WrappedRow):
    """A chip for every text; there is no row where there is no text."""

    changed = Signal()
    taken_away = Signal()
    """A chip's button is about to go, and the focus with it."""

    def __init__(self) -> None:
        super().__init__()
        self._texts: tuple[str, ...] = ()
        self._chips: list[QFrame] = []
        self.hide()

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts, the oldest first."""
        return self._texts

    @property
    def buttons(self) -> list[QPushButton]:
        """What the chips can be asked, in the order in which they stand."""
        return [button for chip in self._chips for button in chip.findChildren(QPushButton)]

    def set_texts(self, texts: Sequence[str]) -> None:
        """Have these texts in place of those there are."""
        self._texts = tuple(texts)
        for old in self._chips:
            old.hide()
            old.deleteLater()
        self._chips = [self._chip(place, text) for place, text in enumerate(self._texts)]
        for chip in self._chips:
            chip.show()
        self.setVisible(bool(self._texts))
        self.set_parts(self._chips)
        self.changed.emit()

    def add(self, text: str) -> None:
        """Have another text."""
        self.set_texts((*self._texts, text))

    def _chip(self, place: int, text: str) -> QFrame:
        words = f"Pasted text · {size_of(text)}"
        chip = QFrame(self)
        chip.setProperty("kind", "pill")
        row = QHBoxLayout(chip)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addWidget(_button(words, _HINT, lambda: self._open(words, text)))
        row.addWidget(_button("×", f"Take away: {words}", lambda: self._take_away(place)))
        return chip

    def _open(self, words: str, text: str) -> None:
        TextDialog(words, text, name="Pasted text", parent=self.window()).open()

    def _take_away(self, place: int) -> None:
        self.taken_away.emit()
        self.set_texts((*self._texts[:place], *self._texts[place + 1 :]))


def _button(words: str, hint: str, act: Callable[[], None]) -> QPushButton:
    button = QPushButton(words)
    button.setProperty("kind", "quiet")
    button.setToolTip(hint)
    button.setAccessibleName(words if len(words) > 1 else hint)
    button.setFixedHeight(LINE_PIXELS)
    button.setCursor(Qt.CursorShape.PointingHandCursor)
    button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
    button.clicked.connect(act)
    return button
