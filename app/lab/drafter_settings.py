"""What can be set of a drafter: the numbers that its family names, and how large its trees are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QSignalBlocker, QTimer, Signal
from PySide6.QtWidgets import QGridLayout, QLabel, QWidget

from app.lab.fields import whole_field

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.lab.fields import WholeField
    from engine.drafters.family import Setting

MOST_TREE_NODES = 63
CHAIN = 0
"""The number of tree nodes at which drafts are chains."""

_PAUSE_MS = 300  # Several steps of an arrow are one change.
_EDGE = _GAP = 8
_COLUMNS, _FIELD_PIXELS = 4, 64


class DrafterSettings(QWidget):
    """Tells of changes by hand only. stops: its fields, in their order."""

    numbers_changed = Signal(str)
    """As they stand in a spec, "7x5x7"."""
    tree_nodes_changed = Signal(int)

    def __init__(self, family: str, settings: Sequence[Setting], *, grows_trees: bool) -> None:
        super().__init__()
        self._settings = settings
        self._fields = [whole_field(s.default, s.least, s.most) for s in settings]
        self._nodes = whole_field(CHAIN, CHAIN, MOST_TREE_NODES, zero="chain")
        self._pause = QTimer(self)
        self._pause.setSingleShot(True)
        self._pause.setInterval(_PAUSE_MS)
        self._pause.timeout.connect(self._tell)
        self.stops = [*self._fields, *[self._nodes] * grows_trees]
        self._assemble(family)
        for field in self._fields:
            field.valueChanged.connect(self._pause.start)
        self._nodes.valueChanged.connect(self.tree_nodes_changed)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to set."""
        return not self.stops

    def show_numbers(self, numbers: Sequence[int]) -> None:
        """Show the numbers in charge, unless the user is changing them; none are the defaults."""
        if self._pause.isActive():
            return
        chosen = numbers or [setting.default for setting in self._settings]
        for field, number in zip(self._fields, chosen, strict=False):
            with QSignalBlocker(field):
                field.setValue(number)

    def show_tree_nodes(self, nodes: int) -> None:
        """Show this number of nodes."""
        with QSignalBlocker(self._nodes):
            self._nodes.setValue(nodes)

    def _tell(self) -> None:
        self.numbers_changed.emit("x".join(str(field.value()) for field in self._fields))

    def _assemble(self, family: str) -> None:
        grid = QGridLayout(self)
        grid.setContentsMargins(_EDGE, 4, _EDGE, 4)
        grid.setHorizontalSpacing(_GAP)
        grid.setVerticalSpacing(0)
        labels = [*(setting.label for setting in self._settings), "Tree nodes"]
        for place, (words, field) in enumerate(zip(labels, self.stops, strict=False)):
            row, column = divmod(place, _COLUMNS)
            grid.addWidget(_label(words, field, family), 2 * row, column)
            grid.addWidget(field, 2 * row + 1, column)
        grid.setColumnStretch(_COLUMNS, 1)


def _label(words: str, field: WholeField, family: str) -> QLabel:
    label = QLabel(words)
    label.setProperty("kind", "small")
    label.setBuddy(field)
    field.setAccessibleName(f"{family}: {words}")
    field.setToolTip(f"{words}, from {field.minimum()} to {field.maximum()}")
    field.setKeyboardTracking(False)
    field.setFixedWidth(_FIELD_PIXELS)
    return label
