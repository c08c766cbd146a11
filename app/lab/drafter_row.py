"""One drafter of the list: its row, and what can be set of it beneath."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Self

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QRadioButton

from app.elided import ElidedLabel
from app.engine_host import numbers_of
from app.lab.drafter_settings import DrafterSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtGui import QMouseEvent

    from engine.drafters.family import Setting
    from engine.engine import DrafterChoice

_NAME_PIXELS = 96
_MEASURE_HINT = "Tokens per pass · times plain speed, as last measured here."
_ANOTHER_HINT = "Click the file's name to choose another."


@dataclass(frozen=True, slots=True)
class DrafterRow:
    """What a row shows. reason: why it cannot be used, or None. needs_file: one is chosen first.

    note: what to know of it; its first words, up to a semicolon, fit into the row. settings,
    grows_trees: what can be set.
    """

    spec: str
    label: str
    reason: str | None = None
    needs_file: bool = False
    note: str | None = None
    settings: Sequence[Setting] = ()
    grows_trees: bool = False

    @classmethod
    def of(cls, choice: DrafterChoice) -> Self:
        """The engine's choice as a row."""
        return cls(
            choice.spec,
            choice.label,
            choice.reason,
            choice.needs_file,
            choice.note,
            choice.settings,
            choice.grows_trees,
        )


class DrafterRowView(QFrame):
    """A click on it is a click on its button, or on a file's name for another.

    settings: what stands beneath it while its drafter is in charge.
    """

    file_requested = Signal()

    def __init__(self, choice: DrafterRow) -> None:
        super().__init__()
        self.choice = choice
        self.button = QRadioButton(choice.label)
        self.settings = DrafterSettings(
            choice.label.rstrip("…"), choice.settings, grows_trees=choice.grows_trees
        )
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
        self._show_fact(spec, measure)
        self.settings.show_numbers(numbers_of(spec))
        self.settings.setVisible(chosen and not self.settings.is_empty)
        if self.property("chosen") is not chosen:
            self.setProperty("chosen", chosen)
            for widget in (self, self.button):
                widget.style().unpolish(widget)
                widget.style().polish(widget)

    def _show_fact(self, spec: str, measure: str | None) -> None:
        choice = self.choice
        path = spec.partition(":")[2] if choice.needs_file else ""
        wanted = "choose a file" if choice.needs_file and not path else ""
        note = (choice.note or "") if spec == choice.spec else ""
        name = self._shortened(PurePath(path).name) if measure else PurePath(path).name
        facts = [name, measure or note.partition(";")[0], wanted]
        fact = choice.reason or " · ".join(part for part in facts if part)
        self._fact.setText(fact)
        self.button.setAccessibleDescription(fact)
        hints = [path and f"{path}\n{_ANOTHER_HINT}", note, measure and _MEASURE_HINT]
        self.setToolTip(choice.reason or "\n".join(hint for hint in hints if hint))

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
