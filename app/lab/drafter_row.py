"""One drafter of the list: its row, and what can be set of it beneath."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Self

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtWidgets import QBoxLayout, QFrame, QRadioButton

from app.elided import ElidedLabel
from app.engine_host import numbers_of
from app.lab.drafter_settings import DrafterSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtGui import QKeyEvent, QMouseEvent, QResizeEvent

    from engine.drafters.family import Setting
    from engine.engine import DrafterChoice

_NAME_PIXELS = 168
_EDGE, _GAP = 8, 8
_LABEL_INDENT = 22  # Where a radio button's words begin, behind its mark.
_STEPS = {Qt.Key.Key_Up: -1, Qt.Key.Key_Left: -1, Qt.Key.Key_Down: 1, Qt.Key.Key_Right: 1}
_MEASURE_HINT = "Tokens per pass · times plain speed, as last measured here."
_ANOTHER_HINT = "Click the file's name to choose another."
_SHIPS = "included"
_SHIPS_HINT = 'Comes with Draftlight, made for this model. Click "included" to choose another.'


@dataclass(frozen=True, slots=True)
class DrafterRow:
    """What a row shows. reason: why it cannot be used, or None.

    needs: what is chosen first, or may be chosen where one ships; None where nothing is. note: what
    to know of it; its first words, up to a semicolon, fit into the row. settings, grows_trees: what
    can be set.
    """

    spec: str
    label: str
    reason: str | None = None
    needs: str | None = None
    ships: bool = False
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
            choice.needs,
            choice.ships,
            choice.note,
            choice.settings,
            choice.grows_trees,
        )

    def lacks_file(self, spec: str) -> bool:
        """Whether something is still to be chosen before what the spec names can draft."""
        return self.needs is not None and not self.ships and ":" not in spec


class RowButton(QRadioButton):
    """Says what is asked of it and leaves it to the list what is marked, and where the focus goes.

    Space, Enter and a click ask for the drafter; arrows only lead to another row.
    """

    left = Signal(int)
    """How many rows further down an arrow leads."""

    def __init__(self, label: str) -> None:
        super().__init__(label)
        self.setAutoExclusive(False)
        self.setMinimumWidth(1)  # A long label must not decide on the panel's width.

    def nextCheckState(self) -> None:  # noqa: N802 - Qt's own method
        """Not a click, but the list changes the mark."""

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Arrows and Enter; Space is the button's own."""
        key = Qt.Key(event.key())
        if key in _STEPS:
            self.left.emit(_STEPS[key])
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.click()
        else:
            super().keyPressEvent(event)


class DrafterRowView(QFrame):
    """A click on it is a click on its button, or on a file's name for another.

    settings: what stands beneath it while its drafter is in charge.
    """

    file_requested = Signal()

    def __init__(self, choice: DrafterRow) -> None:
        super().__init__()
        self.choice = choice
        self.button = RowButton(choice.label)
        self.settings = DrafterSettings(
            choice.label.rstrip("…"), choice.settings, grows_trees=choice.grows_trees
        )
        self._fact = ElidedLabel()
        self._fact.setProperty("kind", "small")
        self.setProperty("kind", "row")
        self.setEnabled(choice.reason is None)
        self._line = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        self._line.setContentsMargins(_EDGE, 4, _EDGE, 4)
        self._line.setSpacing(0)
        self._line.addWidget(self.button)
        self._line.addStretch(1)
        self._line.addWidget(self._fact, 0, Qt.AlignmentFlag.AlignLeft)

    @property
    def corner(self) -> QPoint:
        """Where on the screen it ends, and what it asks may begin."""
        return self.mapToGlobal(self.rect().bottomLeft())

    def show_state(self, *, chosen: bool, spec: str, measure: str | None) -> None:
        """Show whether this drafter is in charge, and the fact about it that matters most."""
        self.button.setChecked(chosen)
        self._show_fact(spec, measure)
        self.settings.show_numbers(numbers_of(spec))
        self.settings.setVisible(chosen and not self.settings.is_empty)
        if self.property("chosen") is not chosen:
            self.setProperty("chosen", chosen)
            for widget in (self, self.button):
                widget.style().unpolish(widget)
                widget.style().polish(widget)
        self._fit()

    def set_tab_stop(self, stop: bool) -> None:
        """Whether the tab key stops here: it does at one row of the list, arrows at every one."""
        policy = Qt.FocusPolicy.StrongFocus if stop else Qt.FocusPolicy.ClickFocus
        self.button.setFocusPolicy(policy)

    def _show_fact(self, spec: str, measure: str | None) -> None:
        choice = self.choice
        path = spec.partition(":")[2] if choice.needs else ""
        included = choice.ships and not path
        wanted = f"choose {choice.needs}" if choice.lacks_file(spec) else ""
        note = (choice.note or "") if spec == choice.spec else ""
        name = _SHIPS if included else PurePath(path).name
        facts = [
            self._shortened(name) if measure else name,
            measure or note.partition(";")[0],
            wanted,
        ]
        fact = choice.reason or " · ".join(part for part in facts if part)
        self._fact.setText(fact)
        self.button.setAccessibleDescription(fact)
        file_hint = _SHIPS_HINT if included else path and f"{path}\n{_ANOTHER_HINT}"
        hints = [file_hint, note, measure and _MEASURE_HINT]
        self.setToolTip(choice.reason or "\n".join(hint for hint in hints if hint))

    def _shortened(self, name: str) -> str:
        """A file's name with room left for what was measured with it."""
        mode = Qt.TextElideMode.ElideMiddle
        return self._fact.fontMetrics().elidedText(name, mode, _NAME_PIXELS)

    def _fit(self) -> None:
        """The fact stands beside the label where there is room for both, and else beneath it."""
        fact = self._fact.fontMetrics().horizontalAdvance(self._fact.text())
        needed = self.button.sizeHint().width() + _GAP + fact
        beside = not fact or needed <= self.contentsRect().width() - 2 * _EDGE
        directions = QBoxLayout.Direction
        self._line.setDirection(directions.LeftToRight if beside else directions.TopToBottom)
        self._fact.setContentsMargins(0 if beside else _LABEL_INDENT, 0, 0, 0)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """The row is one target, but for what stands on its right where that is a file."""
        if event.button() is not Qt.MouseButton.LeftButton:
            return
        if self.choice.needs and self._fact.geometry().contains(event.position().toPoint()):
            self.file_requested.emit()
        else:
            self.button.click()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Find a place for the fact anew."""
        super().resizeEvent(event)
        self._fit()
