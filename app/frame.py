"""Where the window stands, and its parts: three columns; a narrow window hides the sides first."""

from __future__ import annotations

from operator import add
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget

from app.settings import reachable
from app.theme import STEP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtGui import QResizeEvent

_LEFT_FITS_FROM = 1060
_RIGHT_FITS_FROM = 800
_STRETCH = 1000  # Against 1 at either side: the column takes what there is, up to its own width.


class ThreeColumns(QWidget):
    """A side, the middle, and a side that the user may also hide."""

    left_shown = Signal(bool)
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
        fits, left_fits = self.width() >= _RIGHT_FITS_FROM, self.width() >= _LEFT_FITS_FROM
        self._left.setVisible(left_fits)
        self._right.setVisible(self._right_wanted and fits)
        self.left_shown.emit(left_fits)
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


def place_of(window: QWidget) -> tuple[int, int, int, int]:
    """Where a window's frame begins, and its size without the frame: x, y, width, height."""
    return window.x(), window.y(), window.width(), window.height()


def put(window: QWidget, place: Sequence[int]) -> None:
    """Put a window where it was, as near as its screen has room for it, frame and all.

    place: see `place_of`; empty for the default. The frame counts once the window is shown.
    """
    frame = window.frameGeometry().size() - window.size()
    screens = [screen.availableGeometry() for screen in QGuiApplication.screens()]
    whole = reachable([*place[:2], *map(add, place[2:], frame.toTuple())], screens)
    window.move(whole.topLeft())
    window.resize(whole.size() - frame)


def make_room_for_frame(window: QWidget) -> None:
    """Bring a window back onto its screen where its frame, which came later, has no room there."""
    size, available = window.size(), window.screen().availableSize()
    if not window.isMaximized() and size == size.boundedTo(available):
        put(window, place_of(window))
