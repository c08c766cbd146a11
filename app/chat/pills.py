"""The row under a reply: its figures as pills, then what can be done with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QWidget

from app.chat.wrapped_row import WrappedRow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.events import Finished
    from engine.stats import ReplyStats

_NEW_SEED = "Answer again with a new seed"
_SAME_SEED = "Answer again with the same seed"
_GREEDY = "Answer again; at temperature 0 no seed has an effect"
_FEWEST_COMPARED = 16  # Over fewer tokens the speed says too little to be compared.


def compared(stats: ReplyStats) -> float | None:
    """Times plain speed, where there are tokens enough to say so."""
    return stats.speedup if stats.tokens >= _FEWEST_COMPARED else None


def figures(done: Finished) -> Iterator[tuple[str, str, str]]:
    """Per pill: words before the value, the value, words after it. Absent facts give no pill."""
    stats = done.stats
    if stats.tokens:
        yield "", f"{stats.tokens_per_second:.{_places(stats.tokens_per_second)}f}", "tokens/s"
    if (speedup := compared(stats)) is not None:
        yield "", f"{speedup:.1f} ×", "plain"
    if stats.tokens:
        yield "", f"{stats.mean_accepted_length:.1f}", "tokens per pass"
    if stats.acceptance_rate is not None:
        yield "", f"{stats.acceptance_rate:.0%}".replace("%", " %"), "accepted"
    if stats.drafters:
        yield "drafter", ", ".join(stats.drafters), ""
    if stats.tokens:
        yield "first token", f"{stats.first_token_seconds:.1f} s", ""
    yield "", str(done.reason), ""
    if not stats.params.sampling.is_greedy:
        yield "seed", f"{stats.params.sampling.seed}", ""
    if stats.may_depend_on_timing:
        yield "text", "may depend on timing", ""


def _places(rate: float) -> int:
    return 0 if rate >= 10 else 1


class PillRow(WrappedRow):
    """Pills, then buttons."""

    copy_requested = Signal()
    regenerate_requested = Signal(bool)
    """Whether with the same seed."""

    def __init__(self) -> None:
        super().__init__()
        self._figures: list[QWidget] = []
        self._copy = self._button("Copy", "Copy the reply's text")
        self._again = self._button("Regenerate", "")
        self._same = self._button("Same seed", "")
        self._copy.clicked.connect(self.copy_requested)
        self._again.clicked.connect(lambda: self.regenerate_requested.emit(False))
        self._same.clicked.connect(lambda: self.regenerate_requested.emit(True))
        self._show_parts()

    def show_figures(self, done: Finished) -> None:
        """Show a finished reply's figures."""
        for old in self._figures:
            old.deleteLater()
        self._figures = [_pill(*parts, parent=self) for parts in figures(done)]
        for pill in self._figures:
            pill.show()
        self._show_parts()

    def offer_again(self, offered: bool, *, sampled: bool, refusal: str) -> None:
        """Say whether the reply can be written again, and why not now, where there is a reason.

        sampled: whether a seed has an effect.
        """
        new = _NEW_SEED if sampled else _GREEDY
        for button, shown, hint in (
            (self._again, offered, new),
            (self._same, offered and sampled, _SAME_SEED),
        ):
            button.setVisible(shown)
            button.setEnabled(not refusal)
            _set_hint(button, refusal or hint)
        self.arrange()

    def _show_parts(self) -> None:
        self.set_parts((*self._figures, self._copy, self._again, self._same))

    def _button(self, words: str, hint: str) -> QPushButton:
        button = QPushButton(words, self)
        button.setProperty("kind", "quiet")
        button.setCursor(Qt.CursorShape.PointingHandCursor)
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        _set_hint(button, hint)
        return button


def _set_hint(button: QPushButton, hint: str) -> None:
    button.setToolTip(hint)
    button.setAccessibleDescription(hint)


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
