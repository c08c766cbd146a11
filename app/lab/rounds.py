"""A reply round by round: what was drafted, by whom, and what became of each proposed token."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from PySide6.QtCore import QSignalBlocker, Qt, QTimer
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QLabel,
    QPushButton,
    QSizePolicy,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from app.lab.fields import FieldGrid, whole_field
from engine.events import Outcome, Round
from engine.stats import RoundCounter

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from PySide6.QtGui import QResizeEvent

    from engine.events import Event, Node

_PAUSE_MS = 250  # Words that change faster cannot be read.
_TREE_PIXELS = 176
_LEAST_COLUMN = 20
_HEADS = ("#", "Proposed", "p", "By", "Outcome")
_HINTS = (
    "How far ahead. A token follows the nearest one above it that is one less far.",
    "The tokens that were proposed, path by path.",
    "The target's probability of it.",
    "The drafter that proposed it.",
    "What became of it.",
)
_PROPOSED = 1  # Its column.
_ROOT = -1  # The parent of what was proposed first.
_DEPTHS_TOLD = 8
_UNBROKEN = "\N{NO-BREAK SPACE}"
_NOTHING, _DOT = "Nothing decoded yet", " · "
_FOLD_PADDING = 24
_SHOWN = str.maketrans({" ": "␣", "\n": "↵", "\t": "⇥"})


class RoundsSection(QWidget):
    """One line about a round, which unfolds to its draft; the newest round, until one is chosen."""

    def __init__(self) -> None:
        super().__init__()
        self._rounds: list[Round] = []
        self._counter = RoundCounter()
        self._fold = QPushButton()
        self._fold.setProperty("kind", "fold")
        self._fold.setCheckable(True)
        # Its words must not decide on the panel's width.
        self._fold.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self._place = whole_field(0, 0, 0)
        self._tree = _tree()
        self._survival = QLabel()
        self._survival.setProperty("kind", "small")
        self._survival.setWordWrap(True)
        self._survival.setContentsMargins(8, 0, 8, 0)
        self._pause = QTimer(self)
        self._pause.setSingleShot(True)
        self._pause.setInterval(_PAUSE_MS)
        self._assemble()
        self._pause.timeout.connect(self.show_state)
        self._fold.toggled.connect(self._unfold)
        self._place.valueChanged.connect(self.show_state)
        self.show_state()

    def apply(self, events: Sequence[Event]) -> None:
        """Take in events; the words follow at a pace that can be read."""
        rounds = [event for event in events if isinstance(event, Round)]
        for done in rounds:
            if not done.index:
                self._begin_reply()
            follows = self._place.value() == self._place.maximum()
            self._rounds.append(done)
            self._counter.add(done)
            with QSignalBlocker(self._place):
                self._place.setMaximum(len(self._rounds) - 1)
                if follows:
                    self._place.setValue(self._place.maximum())
        if rounds and not self._pause.isActive():
            self._pause.start()

    def reset(self) -> None:
        """Begin anew."""
        self._begin_reply()
        self.show_state()

    def show_state(self) -> None:
        """Write it all as it is now."""
        done = self._rounds[self._place.value()] if self._rounds else None
        self._fold.setText(self._line(_NOTHING if done is None else _summary(done)))
        if self._fold.isChecked():
            self._show_nodes(() if done is None else done.nodes)
            self._survival.setText(_survival_words(self._counter.survival_by_depth))

    def _line(self, words: str) -> str:
        """The folded line; two where it is too long for one."""
        line = f"{words} {'▾' if self._fold.isChecked() else '▸'}"
        fits = self._fold.fontMetrics().horizontalAdvance(line) <= self.width() - _FOLD_PADDING
        return line if fits else line.replace(_DOT, "\n", 1)

    def _begin_reply(self) -> None:
        self._rounds.clear()
        self._counter = RoundCounter()
        with QSignalBlocker(self._place):
            self._place.setMaximum(0)

    def _unfold(self, unfolded: bool) -> None:
        self._body.setVisible(unfolded)
        self.show_state()

    def _show_nodes(self, nodes: Sequence[Node]) -> None:
        self._tree.clear()
        for node in _path_by_path(nodes):
            item = QTreeWidgetItem(self._tree, _cells(node))
            item.setToolTip(_PROPOSED, item.text(_PROPOSED))  # The column may be too narrow.
            item.setDisabled(node.outcome is Outcome.NOT_REACHED)

    def _assemble(self) -> None:
        grid = FieldGrid()
        grid.add("Round", self._place)
        self._body = QWidget()
        body = QVBoxLayout(self._body)
        body.setContentsMargins(0, 0, 0, 0)
        body.setSpacing(4)
        body.addWidget(grid)
        body.addWidget(self._tree)
        body.addWidget(self._survival)
        self._body.hide()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addWidget(self._fold)
        column.addWidget(self._body)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Break the folded line anew."""
        super().resizeEvent(event)
        self.show_state()


def _tree() -> QTreeWidget:
    tree = QTreeWidget()
    tree.setAccessibleName("Draft of the round")
    tree.setFixedHeight(_TREE_PIXELS)
    tree.setIndentation(0)  # Deep paths would leave no room for their tokens.
    tree.setSelectionMode(QAbstractItemView.SelectionMode.NoSelection)
    tree.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    tree.setHeaderLabels(_HEADS)
    for column, hint in enumerate(_HINTS):
        tree.headerItem().setToolTip(column, hint)
    header = tree.header()
    header.setStretchLastSection(False)
    header.setMinimumSectionSize(_LEAST_COLUMN)
    header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
    header.setSectionResizeMode(_PROPOSED, QHeaderView.ResizeMode.Stretch)
    return tree


def _path_by_path(nodes: Sequence[Node]) -> Iterator[Node]:
    """Each node with all that follows it before the next beside it."""
    below: defaultdict[int, list[int]] = defaultdict(list)
    for place, node in enumerate(nodes):
        below[node.parent].append(place)
    waiting = below[_ROOT][::-1]
    while waiting:
        place = waiting.pop()
        yield nodes[place]
        waiting += below[place][::-1]


def _cells(node: Node) -> list[str]:
    p = "" if node.p is None else f"{node.p:.2f}"
    text = node.text.translate(_SHOWN) or f"id {node.id}"
    return [str(node.depth), text, p, node.drafter, str(node.outcome)]


def _summary(done: Round) -> str:
    """A round in a line."""
    counts = Counter(node.outcome for node in done.nodes)
    facts = [f"{counts[outcome]} {outcome}" for outcome in Outcome if counts[outcome]]
    return f"Round {done.index}{_DOT}{', '.join(facts) or 'nothing drafted'}"


def _survival_words(shares: Sequence[float]) -> str:
    if not shares:
        return "Nothing has been drafted in this reply."
    told = enumerate(shares[:_DEPTHS_TOLD], start=1)
    words = [_UNBROKEN.join((f"{depth}:", f"{100 * share:.0f}", "%")) for depth, share in told]
    further = ["…"] * (len(shares) > _DEPTHS_TOLD)
    return f"Held in this reply, by how far ahead: {', '.join([*words, *further])}"
