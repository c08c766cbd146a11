"""A box for plain text that grows with it, and knows the keys that mean something to a chat."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QTextBlockFormat, QTextFormat
from PySide6.QtWidgets import QFrame, QPlainTextEdit

from app.chat.long_text import MOST_EDITED

if TYPE_CHECKING:
    from PySide6.QtCore import QMimeData
    from PySide6.QtGui import QFocusEvent, QInputMethodEvent, QKeyEvent

ONE_LINE_PIXELS = 30
_TALLEST_PIXELS = 200
_ENTER = (Qt.Key.Key_Return, Qt.Key.Key_Enter)
# What Qt makes a new paragraph of; a paragraph remembers the one that begins it.
_BREAKS = re.compile("([\n\u2029\ufdd0\ufdd1])")
_BREAK = QTextFormat.Property.UserProperty.value + 1
_LINE_ENDS = re.compile("\r\n?")


class GrowingText(QPlainTextEdit):
    """Plain text that grows up to a height, and tells about the keys that mean something."""

    enter_pressed = Signal()
    escape_pressed = Signal()
    focus_changed = Signal(bool)
    long_text_pasted = Signal(str)
    """A text with which there would be too much to edit; it has not been put in."""

    def __init__(self) -> None:
        super().__init__()
        self._composing = False
        self._placeholder = ""
        self.setAccessibleName("Message")
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setTabChangesFocus(True)
        self.viewport().setAutoFillBackground(False)
        self.document().documentLayout().documentSizeChanged.connect(self._grow)
        self._centre_line()

    def text(self) -> str:
        """Exactly what was typed and pasted; Qt's own plain text has other spaces and breaks."""
        parts: list[str] = []
        block = self.document().begin()
        while block.isValid():
            parts += [block.blockFormat().stringProperty(_BREAK) or "\n", block.text()]
            block = block.next()
        return "".join(parts[1:])

    def insert(self, text: str) -> None:
        """Put text in place of the selection, as if it had been typed."""
        cursor = self.textCursor()
        cursor.beginEditBlock()
        cursor.removeSelectedText()
        for place, part in enumerate(_BREAKS.split(text)):
            if place % 2:
                begun = QTextBlockFormat()
                begun.setProperty(_BREAK, part)
                cursor.insertBlock(begun)
            else:
                cursor.insertText(part)
        cursor.endEditBlock()
        self.setTextCursor(cursor)

    def show_placeholder(self, words: str) -> None:
        """Say this where there is no text, not even one that an input method is composing."""
        self._placeholder = words
        self.setPlaceholderText("" if self._composing else words)
        self.viewport().update()  # Qt repaints only where a placeholder comes or goes.

    def _grow(self) -> None:
        lines = max(int(self.document().size().height()), 1)
        margins = 2 * round(self.document().documentMargin())
        wanted = lines * self.fontMetrics().lineSpacing() + margins
        self.setFixedHeight(min(max(wanted, ONE_LINE_PIXELS), _TALLEST_PIXELS))
        # Below that height there is nothing to scroll, whatever a font's rounding makes Qt think.
        scrolls = wanted > _TALLEST_PIXELS
        policy = Qt.ScrollBarPolicy
        self.setVerticalScrollBarPolicy(
            policy.ScrollBarAsNeeded if scrolls else policy.ScrollBarAlwaysOff
        )

    def _centre_line(self) -> None:
        margin = max((ONE_LINE_PIXELS - self.fontMetrics().lineSpacing()) // 2, 2)
        self.document().setDocumentMargin(margin)
        self._grow()

    def _set_composing(self, composing: bool) -> None:
        self._composing = composing
        self.show_placeholder(self._placeholder)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter sends unless an input method is still composing; with Shift it breaks the line."""
        shift = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        if event.key() in _ENTER and shift:
            self.insert("\n")
        elif event.key() in _ENTER:
            if not self._composing:
                self.enter_pressed.emit()
        elif event.key() == Qt.Key.Key_Escape:
            self.escape_pressed.emit()
        else:
            super().keyPressEvent(event)

    def insertFromMimeData(self, source: QMimeData) -> None:  # noqa: N802 - Qt's own method
        """What is pasted or dropped goes in as plain text, as long as it can still be edited."""
        text, cursor = _LINE_ENDS.sub("\n", source.text()), self.textCursor()
        replaced = cursor.selectionEnd() - cursor.selectionStart()
        if self.document().characterCount() - replaced + len(text) > MOST_EDITED:
            cursor.removeSelectedText()
            self.long_text_pasted.emit(text)
        else:
            self.insert(text)

    def inputMethodEvent(self, event: QInputMethodEvent) -> None:
        """Know whether an input method is composing: then Enter only confirms its text."""
        self._set_composing(bool(event.preeditString()))
        super().inputMethodEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Tell that the text has the focus."""
        super().focusInEvent(event)
        self.focus_changed.emit(True)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Tell that the text has lost the focus; composing ends with it."""
        super().focusOutEvent(event)
        self._set_composing(False)
        self.focus_changed.emit(False)

    def changeEvent(self, event: QEvent) -> None:
        """Follow the font."""
        super().changeEvent(event)
        if event.type() is QEvent.Type.FontChange:
            self._centre_line()
