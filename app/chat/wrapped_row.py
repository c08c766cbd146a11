"""Parts side by side that wrap like words; the row is as tall as its lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QWidget

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtGui import QResizeEvent

LINE_PIXELS = 24
_GAP = 6


class WrappedRow(QWidget):
    """Its parts are children of it, of one height; those that are hidden take no room."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: Sequence[QWidget] = ()

    def set_parts(self, parts: Sequence[QWidget]) -> None:
        """Let these parts stand in the row, in this order."""
        self._parts = parts
        self.arrange()

    def arrange(self) -> None:
        """Place every part anew; one has come, gone, or changed its width."""
        place = QPoint(0, 0)
        for part in self._parts:
            if part.isHidden():
                continue
            part.ensurePolished()
            width = part.sizeHint().width()
            if place.x() and place.x() + width > self.width():
                place = QPoint(0, place.y() + LINE_PIXELS + _GAP)
            part.setGeometry(place.x(), place.y(), width, LINE_PIXELS)
            place.setX(place.x() + width + _GAP)
        self.setFixedHeight(place.y() + LINE_PIXELS)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Wrap anew."""
        super().resizeEvent(event)
        self.arrange()
