"""The live cards: tokens a second beside plain decoding, and the share of drafted tokens kept."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt, QTimer

from app.lab.plot_card import NO_FIGURE, PlotCard
from app.lab.rates import AcceptanceCurve, SpeedCurve
from app.theme import small_font

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.theme import Theme
    from engine.events import Event
    from engine.stats import BaselineReading

_AGE_MS = 10_000
_LOADING = "calibration"  # A baseline from no reply, but from the passes timed at loading.
_WORDS_SHARE = 0.2  # Of the card's height: what words beside a line take.
_ACCEPTANCE_HINT = "Curve: the last 32 drafted tokens. Straight line: this reply so far."


class SpeedPlot(PlotCard):
    """Tokens a second over the last seconds of decoding, and plain decoding's measured speed."""

    def __init__(self, theme: Theme) -> None:
        self._speed = SpeedCurve()
        self._baseline: BaselineReading | None = None
        self._baseline_set_at = 0.0
        super().__init__(title="Tokens per second", line_role="speed_line")
        self._plain = self._line_across()
        self._plain_words = pg.TextItem()
        self._plain_words.setFont(small_font())
        self._area.addItem(self._plain_words, ignoreBounds=True)
        self.set_theme(theme)
        self._aging = QTimer(self)
        self._aging.setInterval(_AGE_MS)
        self._aging.timeout.connect(self.show_words)
        self.reset()

    def apply(self, events: Sequence[Event]) -> None:
        """Take in events; what they change is drawn soon."""
        for event in events:
            self._speed.add(event)
        self._changed()

    def set_baseline(self, reading: BaselineReading | None) -> None:
        """Show the measured speed without speculation."""
        self._baseline = reading
        self._baseline_set_at = time.monotonic()
        if reading is None:
            self._aging.stop()
        else:
            self._aging.start()
        self._changed()

    def reset(self) -> None:
        """Begin anew."""
        self._speed = SpeedCurve()
        self._number.setText(NO_FIGURE)
        self.redraw()
        self.show_words()

    def redraw(self) -> None:
        """Draw the points that there are now."""
        plain = self._baseline.tokens_per_second if self._baseline else 0.0
        highest = round_up(1.15 * np.nanmax([plain, *self._speed.points, 1.0]))
        self._draw(self._speed.points, highest)
        for item in (self._plain, self._plain_words):
            item.setVisible(self._baseline is not None)
        self._plain.setValue(plain)
        self._place_words(plain, highest)

    def show_words(self) -> None:
        """Write the numbers as they are now."""
        if self._speed.rate is not None:
            self._number.setText(_figure(self._speed.rate))
        if self._baseline is not None:
            age = self._baseline.age_seconds + time.monotonic() - self._baseline_set_at
            figure = _figure(self._baseline.tokens_per_second)
            measured = "measured while loading" if self._baseline.source == _LOADING else "measured"
            self._plain_words.setText(f"plain, {measured} {age_words(age)} ago: {figure}")
        self.setAccessibleDescription(f"{self._number.text()}, {self._plain_words.toPlainText()}")

    def set_theme(self, theme: Theme) -> None:
        """Take on the colours of a theme."""
        super().set_theme(theme)
        color = theme.color("baseline_line")
        self._plain.setPen(pg.mkPen(color, width=1.5, style=Qt.PenStyle.DashLine))
        self._plain_words.setColor(color)

    def _place_words(self, plain: float, highest: float) -> None:
        """Put the words on the side of their line that the curve leaves free and the card has."""
        height = _WORDS_SHARE * highest
        points = self._speed.points
        hidden_below = sum(plain - height < point < plain for point in points)
        hidden_above = sum(plain < point < plain + height for point in points)
        room_below, room_above = plain > height, plain < highest - height
        below = room_below and (hidden_below <= hidden_above or not room_above)
        self._plain_words.setAnchor((0, 0) if below else (0, 1))
        self._plain_words.setPos(0, plain)


class AcceptancePlot(PlotCard):
    """The share of drafted tokens kept: over the last rounds, and in this reply so far."""

    def __init__(self, theme: Theme) -> None:
        self._acceptance = AcceptanceCurve()
        super().__init__(title="Acceptance", line_role="acceptance_line")
        self._so_far = self._line_across()
        self.setToolTip(_ACCEPTANCE_HINT)
        self.set_theme(theme)
        self.reset()

    def apply(self, events: Sequence[Event]) -> None:
        """Take in events; what they change is drawn soon."""
        for event in events:
            self._acceptance.add(event)
        self._changed()

    def reset(self) -> None:
        """Begin anew."""
        self._acceptance = AcceptanceCurve()
        self.redraw()
        self.show_words()

    def redraw(self) -> None:
        """Draw the points that there are now."""
        self._draw(self._acceptance.points, 1.0)
        so_far = self._acceptance.so_far
        self._so_far.setVisible(so_far is not None)
        self._so_far.setValue(so_far or 0.0)

    def show_words(self) -> None:
        """Write the numbers as they are now: the share, and what a pass committed."""
        so_far, length = self._acceptance.so_far, self._acceptance.tokens_per_pass
        self._number.setText(NO_FIGURE if so_far is None else f"{round(100 * so_far)} %")
        facts = [] if length is None else [f"{length:.1f} tokens/pass"]
        words = " · ".join(facts if so_far is None else [*facts, "so far"])
        self._fact.setText(words)
        self.setAccessibleDescription(f"{words} {self._number.text()}")

    def set_theme(self, theme: Theme) -> None:
        """Take on the colours of a theme."""
        super().set_theme(theme)
        self._so_far.setPen(pg.mkPen(theme.color(self._line_role), width=1))


def age_words(seconds: float) -> str:
    """How long ago, as exactly as anyone wants to know."""
    if seconds < 60:
        return f"{round(seconds)} s"
    minutes = seconds / 60
    return f"{round(minutes)} min" if minutes < 60 else f"{round(minutes / 60)} h"


def round_up(value: float) -> float:
    """The next of 1, 2, 4, 6, 8, 10, 20, ...: the scale changes seldom while a curve grows."""
    unit = 10.0 ** np.floor(np.log10(value))
    return float(next(step * unit for step in (1, 2, 4, 6, 8, 10) if step * unit >= value))


def _figure(rate: float) -> str:
    return f"{rate:.0f}" if rate >= 10 else f"{rate:.1f}"
