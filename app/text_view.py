"""Read-only text as tall as its contents: literal, selectable, without scroll bars of its own."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QMimeData, Qt
from PySide6.QtGui import QTextBlockFormat, QTextCursor, QTextOption
from PySide6.QtWidgets import QFrame, QSizePolicy, QTextEdit

from app.theme import LINE_HEIGHT_PER_CENT

if TYPE_CHECKING:
    from PySide6.QtGui import QTextBlock, QWheelEvent

_FIXED_HEIGHT = QTextBlockFormat.LineHeightTypes.FixedHeight.value


def set_line_pixels(
    made: QTextBlockFormat, text_pixels: int, *, at_most: int | None = None
) -> None:
    """Let a paragraph's lines stand as far apart as text of this size needs."""
    pixels = round(text_pixels * LINE_HEIGHT_PER_CENT / 100)
    made.setLineHeight(pixels if at_most is None else min(pixels, at_most), _FIXED_HEIGHT)


class TextView(QTextEdit):
    """Shows text given by cursor; never reads mark-up, never loads anything."""

    def __init__(self) -> None:
        super().__init__()
        self._most: int | None = None
        self.setReadOnly(True)
        self.setUndoRedoEnabled(False)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse
            | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.viewport().setAutoFillBackground(False)
        self.document().setDocumentMargin(0)
        self.document().documentLayout().documentSizeChanged.connect(self.fit)

    def show_text(self, text: str) -> None:
        """Show this text, literally, in place of what was there."""
        self.clear()
        cursor = QTextCursor(self.document())
        cursor.setBlockFormat(self.block_format(cursor.block()))
        cursor.insertText(text)

    def block_format(self, block: QTextBlock) -> QTextBlockFormat:
        """The format that a paragraph should have at the present font size."""
        made = block.blockFormat()
        set_line_pixels(made, self.fontInfo().pixelSize())
        return made

    def space_below(self) -> int:
        """Pixels wanted under the last line."""
        return 0

    def wanted_height(self) -> int:
        """The height at which all of the text shows."""
        return math.ceil(self.document().size().height()) + self.space_below()

    def fit(self) -> None:
        """Take the wanted height."""
        height = self.wanted_height()
        if height != self.maximumHeight() or height != self.minimumHeight():
            self.setFixedHeight(height)

    def fit_width(self, most: int) -> None:
        """Be as wide as the text needs and at most this wide, also when the font changes."""
        self._most = most
        document = self.document()
        document.setTextWidth(-1)
        width = max(min(math.ceil(document.idealWidth()), most), 1)
        self.setFixedWidth(width)
        document.setTextWidth(width)

    def restyle(self) -> None:
        """Give every paragraph the format that it should have now."""
        cursor = QTextCursor(self.document())
        cursor.beginEditBlock()
        block = self.document().begin()
        while block.isValid():
            cursor.setPosition(block.position())
            cursor.setBlockFormat(self.block_format(block))
            block = block.next()
        cursor.endEditBlock()

    def createMimeDataFromSelection(self) -> QMimeData:  # noqa: N802 - Qt's own method
        """Only plain text leaves by the clipboard."""
        data = QMimeData()
        data.setText(self.textCursor().selection().toPlainText())
        return data

    def changeEvent(self, event: QEvent) -> None:
        """Follow the font, which a style sheet or the user may change at any time."""
        super().changeEvent(event)
        if event.type() is QEvent.Type.FontChange:
            self.restyle()
            if self._most is not None:
                self.fit_width(self._most)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """The transcript scrolls, not this."""
        event.ignore()
