"""The row under a reply: its figures as pills, then what can be done with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QWidget

if TYPE_CHECKING:
    from collections.abc import Iterator

    from PySide6.QtGui import QResizeEvent

    from engine.events import Finished

_GAP = 6
_PILL_HEIGHT = 24
_FEWEST_COMPARED = 16  # Over fewer tokens the speed says too little to be compared.


def figures(done: Finished) -> Iterator[tuple[str, str, str]]:
    """Per pill: words before the value, the value, words after it. Absent facts give no pill."""
    stats = done.stats
    if stats.tokens:
        yield "", f"{stats.tokens_per_second:.{_places(stats.tokens_per_second)}f}", "tokens/s"
    if stats.tokens >= _FEWEST_COMPARED and stats.speedup is not None:
        yield "", f"{stats.speedup:.1f} ×", "plain"
    if stats.tokens:
        yield "", f"{stats.mean_accepted_length:.1f}", "tokens per pass"
    if stats.acceptance_rate is not None:
        yield "", f"{stats.acceptance_rate:.0%}".replace("%", " %"), "accepted"
    if stats.tokens:
        yield "first token", f"{stats.first_token_seconds:.1f} s", ""
    yield "", str(done.reason), ""
    yield "seed", f"{stats.params.sampling.seed}", ""
    if stats.may_depend_on_timing:
        yield "text", "may depend on timing", ""


def _places(rate: float) -> int:
    return 0 if rate >= 10 else 1


class PillRow(QWidget):
    """Pills and buttons, wrapped like words; as tall as its lines."""

    copy_requested = Signal()
    regenerate_requested = Signal(bool)
    """Whether with the same seed."""

    def __init__(self) -> None:
        super().__init__()
        self._figures: list[QWidget] = []
        self._copy = self._button("Copy", "Copy the reply's text")
        self._again = self._button("Regenerate", "Answer again with a new seed")
        self._same = self._button("Same seed", "Answer again with the same seed")
        self._copy.clicked.connect(self.copy_requested)
        self._again.clicked.connect(lambda: self.regenerate_requested.emit(False))
        self._same.clicked.connect(lambda: self.regenerate_requested.emit(True))
        self._arrange()

    def show_figures(self, done: Finished) -> None:
        """Show a finished reply's figures."""
        for old in self._figures:
            old.deleteLater()
        self._figures = [_pill(*parts, parent=self) for parts in figures(done)]
        for pill in self._figures:
            pill.show()
        self._arrange()

    def set_last(self, last: bool) -> None:
        """Only the last reply can be written again."""
        if last is self._again.isHidden():
            self._again.setVisible(last)
            self._same.setVisible(last)
            self._arrange()

    def _button(self, words: str, hint: str) -> QPushButton:
        button = QPushButton(words, self)
        button.setProperty("kind", "quiet")
        button.setToolTip(hint)
        button.setAccessibleDescription(hint)
        button.setCursor(Qt.CursorShape.PointingHandCursor)
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        return button

    def _arrange(self) -> None:
        place = QPoint(0, 0)
        for child in (*self._figures, self._copy, self._again, self._same):
            if child.isHidden():
                continue
            child.ensurePolished()
            width = child.sizeHint().width()
            if place.x() and place.x() + width > self.width():
                place = QPoint(0, place.y() + _PILL_HEIGHT + _GAP)
            child.setGeometry(place.x(), place.y(), width, _PILL_HEIGHT)
            place.setX(place.x() + width + _GAP)
        self.setFixedHeight(place.y() + _PILL_HEIGHT)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Wrap anew."""
        super().resizeEvent(event)
        self._arrange()


def _pill(before: str, value: str, after: str, *, parent: QWidget) -> QFrame:
    pill = QFrame(parent)
    pill.setProperty("kind", "pill")
    pill.setAccessibleName(" ".join(part for part in (before, value, after) if part))
    row = QHBoxLayout(pill)
    row.setContentsMargins(8, 0, 8, 0)
    row.setSpacing(4)
    for words, kind in ((before, "small"), (value, "pill-value"), (after, "small")):
        if words:
            label = QLabel(words)
            label.setTextFormat(Qt.TextFormat.PlainText)
            label.setProperty("kind", kind)
            row.addWidget(label)
    return pill
