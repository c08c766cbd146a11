"""A card with a live curve: redrawn at most ten times a second, its words twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QVBoxLayout

from app.elided import ElidedLabel

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from app.theme import Theme

REDRAW_MS = 100
WORDS_MS = 500
NO_FIGURE = "—"
_PLOT_PIXELS = 96
_FEWEST_ACROSS = 60  # So that the first points do not leap across the card.
_GRID_LINES = 5


class PlotCard(QFrame):
    """A title, a big number, and a curve over a calm grid; the colours come with `set_theme`."""

    def __init__(self, *, title: str, line_role: str) -> None:
        super().__init__()
        self._line_role = line_role
        self.setProperty("kind", "card")
        self.setAccessibleName(title)
        self._title = _label(title, "small")
        self._number = _label(NO_FIGURE, "number")
        self._fact = ElidedLabel()
        self._fact.setProperty("kind", "small")
        self._area = pg.PlotItem()
        self._box = self._area.getViewBox()
        self._plot = pg.PlotWidget(plotItem=self._area)
        self._grid = [self._line_across(behind=True) for _ in range(_GRID_LINES)]
        self._curve = pg.PlotDataItem(connect="finite", antialias=True)
        self._area.addItem(self._curve)
        self._redraw_pause = _pause(self, REDRAW_MS, self.redraw)
        self._words_pause = _pause(self, WORDS_MS, self.show_words)
        self._assemble()

    def redraw(self) -> None:
        """Draw the points that there are now."""
        raise NotImplementedError

    def show_words(self) -> None:
        """Write the numbers as they are now."""
        raise NotImplementedError

    def set_theme(self, theme: Theme) -> None:
        """Take on the colours of a theme."""
        self._plot.setBackground(theme.color("surface"))
        self._curve.setPen(pg.mkPen(theme.color(self._line_role), width=2))
        for line in self._grid:
            line.setPen(pg.mkPen(theme.color("plot_grid"), width=1))

    def _changed(self) -> None:
        for pause in (self._redraw_pause, self._words_pause):
            if not pause.isActive():
                pause.start()

    def _draw(self, points: Collection[float], highest: float) -> None:
        values = np.fromiter(points, dtype=float)
        self._curve.setData(np.arange(len(values)), values)
        self._box.setXRange(0, max(len(values) - 1, _FEWEST_ACROSS), padding=0)
        self._box.setYRange(0, highest, padding=0.02)
        for number, line in enumerate(self._grid):
            line.setValue(highest * number / (_GRID_LINES - 1))

    def _line_across(self, *, behind: bool = False) -> pg.InfiniteLine:
        line = pg.InfiniteLine(angle=0)
        line.setZValue(-10 if behind else 10)
        self._area.addItem(line)
        return line

    def _assemble(self) -> None:
        self._plot.setFixedHeight(_PLOT_PIXELS)
        self._plot.setMouseEnabled(x=False, y=False)
        self._plot.setMenuEnabled(False)
        self._plot.hideButtons()
        self._plot.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._plot.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._area.hideAxis("left")
        self._area.hideAxis("bottom")
        self._area.setContentsMargins(0, 0, 0, 0)
        self._box.disableAutoRange()
        head = QHBoxLayout()
        head.setSpacing(8)
        head.addWidget(self._title, 1)
        head.addWidget(self._fact)
        head.addWidget(self._number)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 8, 12, 12)
        column.setSpacing(4)
        column.addLayout(head)
        column.addWidget(self._plot)


def _label(text: str, kind: str) -> QLabel:
    label = QLabel(text)
    label.setProperty("kind", kind)
    label.setTextFormat(Qt.TextFormat.PlainText)
    return label


def _pause(parent: QFrame, milliseconds: int, then: Callable[[], None]) -> QTimer:
    timer = QTimer(parent)
    timer.setSingleShot(True)
    timer.setInterval(milliseconds)
    timer.timeout.connect(then)
    return timer
