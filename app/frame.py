"""Where the window's parts stand: three columns, of which a narrow window hides the sides first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget

from app.theme import STEP

if TYPE_CHECKING:
    from PySide6.QtGui import QResizeEvent

_LEFT_FITS_FROM = 1060
_RIGHT_FITS_FROM = 800
_STRETCH = 1000  # Against 1 at either side: the column takes what there is, up to its own width.


class ThreeColumns(QWidget):
    """A side, the middle, and a side that the user may also hide."""

    right_shown = Signal(bool, bool)
    """Whether the right side is shown, and whether there is room for it."""

    def __init__(self, left: QWidget, middle: QWidget, right: QWidget) -> None:
        super().__init__()
        self._left, self._right = left, right
        self._right_wanted = True
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addWidget(left)
        row.addWidget(middle, 1)
        row.addWidget(right)

    def want_right(self, wanted: bool) -> None:
        """Show the right side wherever there is room for it, or never."""
        self._right_wanted = wanted
        self._fit()

    def _fit(self) -> None:
        fits = self.width() >= _RIGHT_FITS_FROM
        self._left.setVisible(self.width() >= _LEFT_FITS_FROM)
        self._right.setVisible(self._right_wanted and fits)
        self.right_shown.emit(self._right_wanted and fits, fits)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Give the middle what it needs."""
        super().resizeEvent(event)
        self._fit()


def stacked(name: str, *widgets: QWidget, stretched: QWidget | None = None) -> QWidget:
    """The widgets one below the other without gaps; one of them may take the room that is left."""
    whole = QWidget()
    whole.setObjectName(name)
    whole.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
    column = QVBoxLayout(whole)
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(0)
    for widget in widgets:
        column.addWidget(widget, int(widget is stretched))
    return whole


def centred(name: str, *widgets: QWidget, most: int) -> QFrame:
    """The widgets one below the other in the middle, at most so many pixels wide."""
    column = QWidget()
    column.setMaximumWidth(most)
    inside = QVBoxLayout(column)
    inside.setContentsMargins(0, 0, 0, 0)
    for widget in widgets:
        inside.addWidget(widget)
    frame = QFrame()
    frame.setObjectName(name)
    row = QHBoxLayout(frame)
    row.setContentsMargins(6 * STEP, 0, 6 * STEP, 0)
    row.addStretch(1)
    row.addWidget(column, _STRETCH)
    row.addStretch(1)
    return frame
