"""The drafters as rows to choose from, with what each has gained here or why it cannot be used."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import (
    QButtonGroup,
    QFrame,
    QHBoxLayout,
    QLabel,
    QRadioButton,
    QVBoxLayout,
    QWidget,
)

from app.lab.fields import whole_field

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtGui import QMouseEvent

LONGEST_DRAFT = 16
_FIRST_LENGTH = 4
_OFF = "off"


@dataclass(frozen=True, slots=True)
class DrafterRow:
    """One row. reason: why it cannot be used, or None. needs_file: a file is chosen first."""

    spec: str
    label: str
    reason: str | None = None
    needs_file: bool = False


class DrafterList(QWidget):
    """Only a click chooses; nothing else, and no other setting, changes what is chosen."""

    drafter_chosen = Signal(str)
    draft_file_requested = Signal()
    draft_length_changed = Signal(int)

    def __init__(self) -> None:
        super().__init__()
        self._rows: list[_Row] = []
        self._chosen = _OFF
        self._measures: dict[str, str] = {}
        self._group = QButtonGroup(self)
        self._length = whole_field(_FIRST_LENGTH, 1, LONGEST_DRAFT)
        self._length.setAccessibleName("Draft length")
        self._length.setFixedWidth(72)
        self._length.valueChanged.connect(self.draft_length_changed)
        self._column = QVBoxLayout()
        self._column.setSpacing(0)
        self._assemble()
        self._show_state()

    @property
    def chosen(self) -> str:
        """The spec of the drafter in charge."""
        return self._chosen

    def set_choices(self, choices: Sequence[DrafterRow]) -> None:
        """Offer a target's drafters; what was chosen stays chosen, what was measured goes."""
        self._measures.clear()
        for row in self._rows:
            self._group.removeButton(row.button)
            self._column.removeWidget(row)
            row.hide()
            row.deleteLater()
        self._rows = [_Row(choice) for choice in choices]
        for row in self._rows:
            self._group.addButton(row.button)
            self._column.addWidget(row)
            row.button.clicked.connect(lambda _checked=False, row=row: self._clicked(row))
        self._show_state()

    def select(self, spec: str) -> None:
        """Show the drafter in charge; a family's row stands for its every model and depth."""
        self._chosen = spec
        self._show_state()

    def apply_measure(self, spec: str, tokens_per_pass: float, speedup: float | None) -> None:
        """Show what a drafter has gained here, as measured last."""
        gain = "plain" if spec == _OFF else "" if speedup is None else f"{speedup:.1f} ×"
        self._measures[spec] = " · ".join(part for part in (f"{tokens_per_pass:.1f}", gain) if part)
        self._show_state()

    def set_draft_length(self, length: int) -> None:
        """Show this draft length."""
        with QSignalBlocker(self._length):
            self._length.setValue(length)

    def _assemble(self) -> None:
        label = QLabel("Draft length")
        label.setProperty("kind", "muted")
        label.setBuddy(self._length)
        length = QHBoxLayout()
        length.setContentsMargins(8, 4, 8, 0)
        length.addWidget(label, 1)
        length.addWidget(self._length)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addLayout(self._column)
        column.addLayout(length)

    def _clicked(self, row: _Row) -> None:
        if row.choice.needs_file and row is not self._row_of(self._chosen):
            # Chosen only when the file has been: until then what drafts now stays marked.
            self._show_state()
            self.draft_file_requested.emit()
        elif row.choice.needs_file:
            self.draft_file_requested.emit()
        elif row is not self._row_of(self._chosen):
            self._chosen = row.choice.spec
            self._show_state()
            self.drafter_chosen.emit(row.choice.spec)

    def _row_of(self, spec: str) -> _Row | None:
        family = spec.partition(":")[0].partition("@")[0]
        by_spec = {row.choice.spec: row for row in self._rows}
        return by_spec.get(spec, by_spec.get(family))

    def _show_state(self) -> None:
        chosen = self._row_of(self._chosen)
        for row in self._rows:
            spec = self._chosen if row is chosen else row.choice.spec
            row.show_state(chosen=row is chosen, spec=spec, measure=self._measures.get(spec))
        drafts = self._chosen != _OFF
        self._length.setEnabled(drafts)
        self._length.setToolTip(
            "How many tokens are drafted ahead at most."
            if drafts
            else "Without a drafter nothing is drafted, so the length has no effect."
        )


class _Row(QFrame):
    """One drafter; a click anywhere on it is a click on its button."""

    def __init__(self, choice: DrafterRow) -> None:
        super().__init__()
        self.choice = choice
        self.button = QRadioButton(choice.label)
        self._fact = QLabel()
        self._fact.setProperty("kind", "small")
        self._fact.setTextFormat(Qt.TextFormat.PlainText)
        self.setProperty("kind", "row")
        self.setEnabled(choice.reason is None)
        row = QHBoxLayout(self)
        row.setContentsMargins(8, 5, 8, 5)
        row.addWidget(self.button, 1)
        row.addWidget(self._fact)

    def show_state(self, *, chosen: bool, spec: str, measure: str | None) -> None:
        """Show whether this drafter is in charge, and the fact about it that matters most."""
        # A group of exclusive buttons lets none be unchecked but by checking another.
        group = self.button.group()
        if group is not None:
            group.setExclusive(False)
        self.button.setChecked(chosen)
        if group is not None:
            group.setExclusive(True)
        path = spec.partition(":")[2] if self.choice.needs_file else ""
        wanted = "choose a file" if self.choice.needs_file else ""
        fact = self.choice.reason or measure or PurePath(path).name or wanted
        self._fact.setText(fact)
        self.button.setAccessibleDescription(fact)
        self.setToolTip(self.choice.reason or path)
        if self.property("chosen") is not chosen:
            self.setProperty("chosen", chosen)
            for widget in (self, self.button):
                widget.style().unpolish(widget)
                widget.style().polish(widget)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """The row is one target."""
        if event.button() is Qt.MouseButton.LeftButton:
            self.button.click()
