"""The drafters as rows to choose from, with what each has gained here or why it cannot be used."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from app.engine_host import family_of, takes
from app.lab.drafter_row import DrafterRow, DrafterRowView
from app.lab.drafter_settings import CHAIN
from app.lab.fields import whole_field

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["AS_IT_PAYS", "LONGEST_DRAFT", "DrafterList", "DrafterRow"]

LONGEST_DRAFT = 16
AS_IT_PAYS = 0
"""The draft length that leaves it to the planner."""

_OFF = "off"


class DrafterList(QWidget):
    """Only a click, or a number set beneath a row, changes what is chosen; nothing else does.

    Drafters for which something is still to be chosen are folded away: they are many.
    """

    drafter_chosen = Signal(str)
    draft_file_requested = Signal(str, bool, QPoint)
    """For which family, whether one ships for it, and where on the screen its row ends."""
    draft_length_changed = Signal(int)
    tree_nodes_changed = Signal(int)
    focus_moved = Signal(QWidget)
    """To this row, by an arrow."""

    def __init__(self) -> None:
        super().__init__()
        self._rows: list[DrafterRowView] = []
        self._placed: Sequence[QWidget] = ()  # From the top.
        self._chosen = _OFF
        self._asked: str | None = None  # what was chosen here, until it is in force or refused
        self._tree_nodes = CHAIN
        self._measures: dict[str, str] = {}
        self._kept: dict[str, str] = {}  # family: the spec with what was chosen of it last
        self._length = whole_field(AS_IT_PAYS, AS_IT_PAYS, LONGEST_DRAFT, zero="as it pays")
        self._length.setAccessibleName("Draft length")
        self._length.setFixedWidth(112)
        self._length.valueChanged.connect(self.draft_length_changed)
        self._fold = QPushButton()
        self._fold.setProperty("kind", "fold")
        self._fold.setCheckable(True)
        self._fold.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self._fold.toggled.connect(self._show_state)
        self._column = QVBoxLayout()
        self._column.setSpacing(0)
        self._assemble()
        self._show_state()

    @property
    def chosen(self) -> str:
        """The spec of the drafter in charge."""
        return self._chosen

    @property
    def kept(self) -> dict[str, str]:
        """By family, the spec with the file or the numbers that drafted last."""
        return dict(self._kept)

    def keep(self, specs: Mapping[str, object]) -> None:
        """Take back what was kept; what makes no sense is left out."""
        self._kept = {
            family: spec
            for family, spec in specs.items()
            if isinstance(spec, str) and spec != family and family_of(spec) == family
        }

    def set_choices(self, choices: Sequence[DrafterRow]) -> None:
        """Offer a target's drafters; what was chosen stays chosen, what was measured goes."""
        self._measures.clear()
        for row in self._rows:
            for widget in (row, row.settings):
                self._column.removeWidget(widget)
                widget.hide()
                widget.deleteLater()
        self._rows = [DrafterRowView(choice) for choice in choices]
        for row in self._rows:
            if not takes(row.choice.settings, self._kept.get(row.choice.spec, "")):
                del self._kept[row.choice.spec]
            self._add(row)
        self._show_state()

    def select(self, spec: str) -> None:
        """Show the drafter in charge; a family's row stands for its every model and numbers."""
        if self._asked not in (None, spec):
            # What was asked for did not come into force: it is not to be tried again.
            self._kept.pop(family_of(self._asked), None)
        self._asked = None
        if spec == family_of(spec):
            self._kept.pop(spec, None)
        else:
            self._kept[family_of(spec)] = spec
        self._chosen = spec
        self._show_state()

    def apply_measure(
        self, spec: str, tokens_per_pass: float, speedup: float | None, drafted: int
    ) -> None:
        """Show what a drafter has gained here, as measured last; drafted: how many tokens."""
        gain = "" if speedup is None else f"{speedup:.1f} ×"
        if not drafted:
            gain = "plain" if spec == _OFF else "nothing drafted"
        self._measures[spec] = " · ".join(part for part in (f"{tokens_per_pass:.1f}", gain) if part)
        self._show_state()

    def set_draft_length(self, length: int) -> None:
        """Show this draft length."""
        with QSignalBlocker(self._length):
            self._length.setValue(length)

    def set_tree_nodes(self, nodes: int) -> None:
        """Show this number of tree nodes."""
        self._tree_nodes = nodes
        self._show_state()

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

    def _add(self, row: DrafterRowView) -> None:
        row.button.clicked.connect(lambda: self._clicked(row))
        row.button.left.connect(partial(self._move_focus, row))
        row.file_requested.connect(lambda: self._ask_for_file(row))
        row.settings.numbers_changed.connect(partial(self._set_numbers, row))
        row.settings.tree_nodes_changed.connect(self._change_tree_nodes)

    def _clicked(self, row: DrafterRowView) -> None:
        chosen_already = row is self._row_of(self._chosen)
        spec = self._kept.get(row.choice.spec, row.choice.spec)
        another = chosen_already and row.choice.needs is not None and ":" in spec
        if another or row.choice.lacks_file(spec):
            # Chosen only when the file has been: until then what drafts now stays marked.
            self._ask_for_file(row)
        elif not chosen_already:
            self._ask_for(spec)

    def _ask_for_file(self, row: DrafterRowView) -> None:
        self.draft_file_requested.emit(row.choice.spec, row.choice.ships, row.corner)

    def _move_focus(self, row: DrafterRowView, steps: int) -> None:
        rows = self._reachable()
        place = rows.index(row) + steps
        if 0 <= place < len(rows):
            rows[place].button.setFocus(Qt.FocusReason.TabFocusReason)
            self.focus_moved.emit(rows[place])

    def _reachable(self) -> list[DrafterRowView]:
        """The rows that can be gone to, from the top."""
        rows = [part for part in self._placed if isinstance(part, DrafterRowView)]
        return [row for row in rows if row.isEnabled() and not row.isHidden()]

    def _set_numbers(self, row: DrafterRowView, numbers: str) -> None:
        if row is self._row_of(self._chosen):
            self._ask_for(f"{row.choice.spec}@{numbers}")

    def _change_tree_nodes(self, nodes: int) -> None:
        self.set_tree_nodes(nodes)
        self.tree_nodes_changed.emit(nodes)

    def _ask_for(self, spec: str) -> None:
        self._chosen = self._asked = spec
        self._show_state()
        self.drafter_chosen.emit(spec)

    def _row_of(self, spec: str) -> DrafterRowView | None:
        by_spec = {row.choice.spec: row for row in self._rows}
        return by_spec.get(spec, by_spec.get(family_of(spec)))

    def _place(self, chosen: DrafterRowView | None) -> None:
        """What can draft at once on top, then the fold, then what stands in it."""
        in_fold = [
            row
            for row in self._rows
            if row is not chosen
            and row.choice.lacks_file(self._kept.get(row.choice.spec, row.choice.spec))
        ]
        listed = [row for row in self._rows if row not in in_fold]
        parts = [part for row in listed for part in (row, row.settings)] + [self._fold, *in_fold]
        if parts != self._placed:
            self._placed = parts
            for place, part in enumerate(parts):
                self._column.insertWidget(place, part)
            self._order_stops(listed, in_fold)
        for row in self._rows:
            row.setVisible(self._fold.isChecked() or row not in in_fold)
        arrow = "▾" if self._fold.isChecked() else "▸"
        self._fold.setVisible(bool(in_fold))
        self._fold.setText(f"From a file or folder · {len(in_fold)} {arrow}")

    def _order_stops(
        self, listed: Sequence[DrafterRowView], in_fold: Sequence[DrafterRowView]
    ) -> None:
        """Let the tab key go from the top to the bottom, too."""
        stops = [stop for row in listed for stop in (row.button, *row.settings.stops)]
        stops += [self._fold, *(row.button for row in in_fold)]
        # Round the length, so that whatever comes after it goes on doing so.
        for first, second in pairwise([self._length, *stops, self._length]):
            QWidget.setTabOrder(first, second)

    def _show_state(self) -> None:
        chosen = self._row_of(self._chosen)
        self._place(chosen)
        for row in self._rows:
            kept = self._kept.get(row.choice.spec, row.choice.spec)
            spec = self._chosen if row is chosen else kept
            row.show_state(chosen=row is chosen, spec=spec, measure=self._measures.get(spec))
            row.settings.show_tree_nodes(self._tree_nodes)
        reachable = self._reachable()
        stop = chosen if chosen in reachable else next(iter(reachable), None)
        for row in self._rows:
            row.set_tab_stop(row is stop)
        drafts = self._chosen != _OFF
        self._length.setEnabled(drafts)
        self._length.setToolTip(
            "As it pays: the planner decides before each round. A number: always so many tokens."
            if drafts
            else "Without a drafter nothing is drafted, so the length has no effect."
        )
