"""A box for plain text that grows with it, and knows the keys that mean something to a chat."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtWidgets import QFrame, QPlainTextEdit

if TYPE_CHECKING:
    from PySide6.QtGui import QFocusEvent, QInputMethodEvent, QKeyEvent

ONE_LINE_PIXELS = 30
_TALLEST_PIXELS = 200
_ENTER = (Qt.Key.Key_Return, Qt.Key.Key_Enter)


class GrowingText(QPlainTextEdit):
    """Plain text that grows up to a height, and tells about the keys that mean something."""

    enter_pressed = Signal()
    escape_pressed = Signal()
    focus_changed = Signal(bool)

    def __init__(self) -> None:
        super().__init__()
        self._composing = False
        self.setAccessibleName("Message")
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setTabChangesFocus(True)
        self.viewport().setAutoFillBackground(False)
        self.document().documentLayout().documentSizeChanged.connect(self._grow)
        self._centre_line()

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

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter sends unless an input method is still composing; with Shift it breaks the line."""
        shift = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        if event.key() in _ENTER and not shift:
            if not self._composing:
                self.enter_pressed.emit()
        elif event.key() == Qt.Key.Key_Escape:
            self.escape_pressed.emit()
        else:
            super().keyPressEvent(event)

    def inputMethodEvent(self, event: QInputMethodEvent) -> None:
        """Know whether an input method is composing: then Enter only confirms its text."""
        self._composing = bool(event.preeditString())
        super().inputMethodEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Tell that the text has the focus."""
        super().focusInEvent(event)
        self.focus_changed.emit(True)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Tell that the text has lost the focus; composing ends with it."""
        super().focusOutEvent(event)
        self._composing = False
        self.focus_changed.emit(False)

    def changeEvent(self, event: QEvent) -> None:
        """Follow the font."""
        super().changeEvent(event)
        if event.type() is QEvent.Type.FontChange:
            self._centre_line()
