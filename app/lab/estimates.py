"""What the planner goes by, in a small table: how often drafts hold, what they cost and gain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QLabel, QWidget

if TYPE_CHECKING:
    from engine.plan_words import Estimates

_COLUMNS = 6
_INDENT = 8
_ROWS = ("Ahead", "Holds", "Costs", "Gains")
_HINT = (
    "Holds: of the tokens drafted so far ahead, behind others that held, the share that held.\n"
    "Costs: the pass of a draft of that length, in passes of plain decoding.\n"
    "Gains: how many times plain decoding's speed to expect of it.\n"
    "Bold: how far most drafts go now."
)


class EstimatesTable(QWidget):
    """Hidden until there is something to show."""

    def __init__(self) -> None:
        super().__init__()
        self._rows = {words: [_cell("") for _ in range(_COLUMNS)] for words in _ROWS}
        self.setToolTip(_HINT)
        self.setAccessibleName("Estimates")
        self._assemble()
        self.hide()

    def show_estimates(self, estimates: Estimates | None) -> None:
        """Show these, or nothing."""
        self.setVisible(estimates is not None)
        if estimates is None:
            return
        columns = zip(*self._rows.values(), strict=True)
        for depth, cells in enumerate(columns, start=1):
            for cell, text in zip(cells, _column(estimates, depth), strict=True):
                cell.setText(text)
                _set_kind(cell, "pill-value" if depth == estimates.draft_length else "small")
        self.setAccessibleDescription(_words(estimates))

    def _assemble(self) -> None:
        grid = QGridLayout(self)
        grid.setContentsMargins(_INDENT, 0, _INDENT, 0)
        grid.setHorizontalSpacing(0)
        grid.setVerticalSpacing(0)
        for row, (words, cells) in enumerate(self._rows.items()):
            grid.addWidget(_cell(words, Qt.AlignmentFlag.AlignLeft), row, 0)
            for column, cell in enumerate(cells, start=1):
                grid.addWidget(cell, row, column)
        for column in range(_COLUMNS + 1):
            grid.setColumnStretch(column, 1)


def _cell(words: str, side: Qt.AlignmentFlag = Qt.AlignmentFlag.AlignRight) -> QLabel:
    label = QLabel(words)
    label.setProperty("kind", "small")
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setAlignment(side | Qt.AlignmentFlag.AlignVCenter)
    return label


def _set_kind(label: QLabel, kind: str) -> None:
    if label.property("kind") != kind:
        label.setProperty("kind", kind)
        label.style().unpolish(label)
        label.style().polish(label)


def _column(estimates: Estimates, depth: int) -> tuple[str, str, str, str]:
    """A draft length's cells from the top."""
    return (
        str(depth),
        f"{100 * estimates.survival[depth - 1]:.0f} %",
        f"{estimates.costs[depth]:.1f}",
        f"{estimates.gains[depth - 1]:.1f} ×",
    )


def _words(estimates: Estimates) -> str:
    """The table for those who don't see it."""
    lines = (_column(estimates, depth) for depth in range(1, _COLUMNS + 1))
    told = (f"{ahead} ahead: holds {h}, costs {c}, gains {g}" for ahead, h, c, g in lines)
    return f"Drafts of {estimates.proposer}. {'. '.join(told)}."
