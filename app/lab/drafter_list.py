"""The drafters as rows to choose from, with what each has gained here or why it cannot be used."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
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

from app.elided import ElidedLabel
from app.lab.fields import whole_field

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtGui import QMouseEvent

LONGEST_DRAFT = 16
AS_IT_PAYS = 0
"""The draft length that leaves it to the planner."""

_OFF = "off"
_NAME_PIXELS = 96
_MEASURE_HINT = "Tokens per pass · times plain speed, as last measured here."
_ANOTHER_HINT = "Click the file's name to choose another."


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
    draft_file_requested = Signal(str)
    draft_length_changed = Signal(int)

    def __init__(self) -> None:
        super().__init__()
        self._rows: list[_Row] = []
        self._chosen = _OFF
        self._measures: dict[str, str] = {}
        self._files: dict[str, str] = {}  # family: the spec with the file chosen last
        self._group = QButtonGroup(self)
        self._length = whole_field(AS_IT_PAYS, AS_IT_PAYS, LONGEST_DRAFT, zero="as it pays")
        self._length.setAccessibleName("Draft length")
        self._length.setFixedWidth(112)
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
            row.file_requested.connect(partial(self.draft_file_requested.emit, row.choice.spec))
        self._show_state()

    def select(self, spec: str) -> None:
        """Show the drafter in charge; a family's row stands for its every model and depth."""
        family = _family(spec)
        before = _family(self._chosen)
        if before != family:
            # What was clicked did not come into force: its file is not to be tried again.
            self._files.pop(before, None)
        if ":" in spec:
            self._files[family] = spec
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
        chosen_already = row is self._row_of(self._chosen)
        spec = self._files.get(row.choice.spec, row.choice.spec)
        if row.choice.needs_file and (chosen_already or ":" not in spec):
            # Chosen only when the file has been: until then what drafts now stays marked.
            self._show_state()
            self.draft_file_requested.emit(row.choice.spec)
        elif not chosen_already:
            self._chosen = spec
            self._show_state()
            self.drafter_chosen.emit(spec)

    def _row_of(self, spec: str) -> _Row | None:
        by_spec = {row.choice.spec: row for row in self._rows}
        return by_spec.get(spec, by_spec.get(_family(spec)))

    def _show_state(self) -> None:
        chosen = self._row_of(self._chosen)
        for row in self._rows:
            kept = self._files.get(row.choice.spec, row.choice.spec)
            spec = self._chosen if row is chosen else kept
            row.show_state(chosen=row is chosen, spec=spec, measure=self._measures.get(spec))
        drafts = self._chosen != _OFF
        self._length.setEnabled(drafts)
        self._length.setToolTip(
            "As it pays: the planner decides before each round. A number: always so many tokens."
            if drafts
            else "Without a drafter nothing is drafted, so the length has no effect."
        )


def _family(spec: str) -> str:
    """The spec without its model and depth."""
    return spec.partition(":")[0].partition("@")[0]


class _Row(QFrame):
    """One drafter; a click on it is a click on its button, or beside a file's name for another."""

    file_requested = Signal()

    def __init__(self, choice: DrafterRow) -> None:
        super().__init__()
        self.choice = choice
        self.button = QRadioButton(choice.label)
        self._fact = ElidedLabel()
        self._fact.setProperty("kind", "small")
        self.setProperty("kind", "row")
        self.setEnabled(choice.reason is None)
        row = QHBoxLayout(self)
        row.setContentsMargins(8, 5, 8, 5)
        row.addWidget(self.button)
        row.addStretch(1)
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
        wanted = "choose a file" if self.choice.needs_file and not path else ""
        name = self._shortened(PurePath(path).name) if measure else PurePath(path).name
        facts = [self.choice.reason] if self.choice.reason else [name, measure, wanted]
        fact = " · ".join(part for part in facts if part)
        self._fact.setText(fact)
        self.button.setAccessibleDescription(fact)
        hints = [path and f"{path}\n{_ANOTHER_HINT}", measure and _MEASURE_HINT]
        self.setToolTip(self.choice.reason or "\n".join(hint for hint in hints if hint))
        if self.property("chosen") is not chosen:
            self.setProperty("chosen", chosen)
            for widget in (self, self.button):
                widget.style().unpolish(widget)
                widget.style().polish(widget)

    def _shortened(self, name: str) -> str:
        """A file's name with room left for what was measured with it."""
        mode = Qt.TextElideMode.ElideMiddle
        return self._fact.fontMetrics().elidedText(name, mode, _NAME_PIXELS)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """The row is one target, but for what stands on its right where that is a file."""
        if event.button() is not Qt.MouseButton.LeftButton:
            return
        if self.choice.needs_file and self._fact.geometry().contains(event.position().toPoint()):
            self.file_requested.emit()
        else:
            self.button.click()
