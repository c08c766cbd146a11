"""What the token styles mean and how much of the reply has each; a click shows or hides them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPen
from PySide6.QtWidgets import QAbstractButton

from app.chat.column import COLUMN_PIXELS, EDGE_PIXELS, column_in
from app.chat.origin_format import LINE_PIXELS, WORDS, Mark, origin_styles
from engine.events import Origin, Round

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtGui import QPaintEvent

    from app.theme import Theme
    from engine.events import Event

_INSIDE = 4
_GAP = 4
_ABOVE = 12
_MEANINGS = {
    Origin.DRAFT_ACCEPTED: "from the draft",
    Origin.RESAMPLED: "after a rejection",
    Origin.TARGET_ONLY: "",
}


class Legend(QAbstractButton):
    """The three styles with their shares of the tokens, and the switch for them."""

    colours_toggled = Signal(bool)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._counts: Counter[Origin] = Counter()
        self.setCheckable(True)
        self.setChecked(True)
        self.setObjectName("legend")
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setToolTip("Where the tokens came from, and their share. Click to show or hide.")
        self.clicked.connect(self.colours_toggled)
        self.toggled.connect(self.update)
        self.set_theme(theme)
        self._tell()

    def apply(self, events: Sequence[Event]) -> None:
        """Count the tokens of a reply."""
        rounds = [event for event in events if isinstance(event, Round)]
        if rounds:
            self._counts.update(token.origin for done in rounds for token in done.tokens)
            self._tell()

    def set_shares(self, accepted: int, resampled: int, target: int) -> None:
        """Show these counts of tokens."""
        self._counts = Counter(dict(zip(Origin, (accepted, resampled, target), strict=True)))
        self._tell()

    def reset(self) -> None:
        """Begin another reply."""
        self._counts.clear()
        self._tell()

    def set_theme(self, theme: Theme) -> None:
        """Take on the colours of a theme."""
        self._styles = origin_styles(theme)
        self._text_color = theme.color("text")
        self._muted = theme.color("muted")
        self._focus = QPen(theme.color("accent"))
        self.update()

    def shares(self) -> dict[Origin, int]:
        """Per origin its share of the tokens in per cent; empty before the first token."""
        total = sum(self._counts.values())
        if not total:
            return {}
        return {origin: round(100 * self._counts[origin] / total) for origin in Origin}

    def _tell(self) -> None:
        shares = self.shares()
        words = [f"{WORDS[origin]} {share} %" for origin, share in shares.items()]
        name = f"Token colours: {', '.join(words or WORDS.values())}"
        if name != self.accessibleName():
            self.setAccessibleName(name)
            self.update()

    def _words(self, origin: Origin) -> str:
        shares = self.shares()
        share = f"{shares[origin]} %" if shares else ""
        meaning = _MEANINGS[origin] if self._meanings_fit() else ""
        return " ".join(part for part in (meaning, share) if part)

    def _meanings_fit(self) -> bool:
        words = [f"{WORDS[origin]}{_MEANINGS[origin]} 100 %" for origin in Origin]
        pixels = sum(self.fontMetrics().horizontalAdvance(each) for each in words)
        between = len(words) * (2 * _INSIDE + 5 * _GAP)
        return pixels + between <= column_in(self.width())[1]

    def _paint_sample(self, painter: QPainter, origin: Origin, box: QRectF) -> float:
        """Paint one style and what it means; returns where the next one begins."""
        metrics = self.fontMetrics()
        name, words = WORDS[origin], self._words(origin)
        box.setWidth(metrics.horizontalAdvance(name) + 2 * _INSIDE)
        baseline = box.top() + metrics.ascent()
        if self.isChecked():
            self._styles[origin].paint(painter, [Mark.in_box(box)])
        painter.setPen(self._text_color if self.isChecked() else self._muted)
        painter.drawText(QPointF(box.left() + _INSIDE, baseline), name)
        painter.setPen(self._muted)
        after = box.right() + (_GAP if words else 0)
        painter.drawText(QPointF(after, baseline), words)
        return after + metrics.horizontalAdvance(words) + 4 * _GAP

    def _sample_height(self) -> int:
        return self.fontMetrics().height() + LINE_PIXELS + 1

    def sizeHint(self) -> QSize:
        """One line of small print."""
        return QSize(2 * EDGE_PIXELS + COLUMN_PIXELS, _ABOVE + self._sample_height())

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's own method
        """May be as narrow as the window."""
        return QSize(0, self.sizeHint().height())

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the samples as the transcript paints tokens, then their meaning."""
        painter = QPainter(self)
        left = float(column_in(self.width())[0])
        top = self.height() - self._sample_height()
        for origin in Origin:
            left = self._paint_sample(painter, origin, QRectF(left, top, 0, self._sample_height()))
        if self.hasFocus():
            painter.setPen(self._focus)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(4.5, 4.5, -4.5, -0.5), 4, 4)
