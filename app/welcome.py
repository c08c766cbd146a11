"""What a new user sees once: what the colours mean, which model answers, where data lives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import (
    QDialog,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.chat.origin_format import LINE_PIXELS, WORDS, Mark, origin_styles
from app.model_manager.picker import choose_file, choose_folder
from app.theme import STEP
from engine.events import Origin

if TYPE_CHECKING:
    from collections.abc import Mapping

    from PySide6.QtGui import QPaintEvent, QShowEvent

    from app.theme import Theme

_WIDTH = 150 * STEP
_IDEA = (
    "A small, quick drafter guesses the next few words, and the model that you chose checks them "
    "all at once. The text is the model's own; it only comes sooner."
)
_MEANINGS = {
    Origin.DRAFT_ACCEPTED: "drafted, and just what the model would have written",
    Origin.RESAMPLED: "the model's own word where the draft was turned down",
    Origin.TARGET_ONLY: "the model's own, with no draft for that place",
}
_MODEL = (
    "SmolLM2 135M Instruct is inside, and answers until you choose another. It is small: quick "
    "anywhere, and often wrong. The name at the top of the window opens a larger one at any time."
)
_PRIVACY = "Nothing that you type leaves this machine."


class Welcome(QDialog):
    """One page; whatever closes it, the chat is behind it."""

    target_chosen = Signal(str)

    def __init__(
        self, theme: Theme, places: Mapping[str, str], parent: QWidget | None = None
    ) -> None:
        """places: what lies where, such as {"Models": "/home/ada/..."}."""
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Welcome to Draftlight")
        self.setFixedWidth(_WIDTH)
        column = self._column = QVBoxLayout(self)
        column.setContentsMargins(6 * STEP, 6 * STEP, 6 * STEP, 5 * STEP)
        column.setSpacing(4 * STEP)
        column.addWidget(_words(_IDEA))
        column.addWidget(_card("What the colours mean", _colours(theme)))
        column.addWidget(_card("The model", _words(_MODEL), self._model_buttons()))
        column.addWidget(_card("Where your data lives", _table(places), _words(_PRIVACY)))
        column.addLayout(self._closing())

    def _model_buttons(self) -> QWidget:
        file, folder = QPushButton("Open a GGUF file…"), QPushButton("Open a model folder…")
        file.clicked.connect(lambda: choose_file(self, "Open a model", self._choose))
        folder.clicked.connect(lambda: choose_folder(self, "Open a model", self._choose))
        buttons = QWidget()
        row = QHBoxLayout(buttons)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(file)
        row.addWidget(folder)
        row.addStretch()
        return buttons

    def _closing(self) -> QHBoxLayout:
        start = QPushButton("Start chatting")
        start.setProperty("kind", "primary")
        start.setDefault(True)
        start.clicked.connect(self.accept)
        row = QHBoxLayout()
        row.addStretch()
        row.addWidget(start)
        return row

    def _choose(self, target: str) -> None:
        self.target_chosen.emit(target)
        self.accept()

    def showEvent(self, event: QShowEvent) -> None:
        """Be as high as the words need, which is known once they have their fonts."""
        self.setFixedHeight(self._column.totalHeightForWidth(_WIDTH))
        super().showEvent(event)


class Sample(QWidget):
    """The word for an origin, in its own colours."""

    def __init__(self, theme: Theme, origin: Origin) -> None:
        super().__init__()
        self._style, self._ink = origin_styles(theme)[origin], theme.color("text")
        self._word = WORDS[origin]
        self.setAccessibleName(self._word)

    def sizeHint(self) -> QSize:
        """The word, with a little room at both sides."""
        metrics = self.fontMetrics()
        width = metrics.horizontalAdvance(self._word) + 2 * STEP
        return QSize(width, metrics.height() + LINE_PIXELS + 1)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint it as the transcript paints tokens."""
        painter = QPainter(self)
        height = self.sizeHint().height()
        box = QRectF(0, (self.height() - height) / 2, self.sizeHint().width(), height)
        self._style.paint(painter, [Mark.in_box(box)])
        painter.setPen(self._ink)
        painter.drawText(box, Qt.AlignmentFlag.AlignCenter, self._word)


def _colours(theme: Theme) -> QWidget:
    rows = {origin: _words(meaning) for origin, meaning in _MEANINGS.items()}
    return _grid({Sample(theme, origin): meaning for origin, meaning in rows.items()})


def _table(places: Mapping[str, str]) -> QWidget:
    return _grid({_words(name): _path(path) for name, path in places.items()})


def _grid(rows: Mapping[QWidget, QWidget]) -> QWidget:
    whole = QWidget()
    grid = QGridLayout(whole)
    grid.setContentsMargins(0, 0, 0, 0)
    grid.setHorizontalSpacing(3 * STEP)
    grid.setVerticalSpacing(STEP)
    grid.setColumnStretch(1, 1)
    for row, (name, value) in enumerate(rows.items()):
        grid.addWidget(name, row, 0)
        grid.addWidget(value, row, 1)
    return whole


def _card(heading: str, *parts: QWidget) -> QFrame:
    card = QFrame()
    card.setProperty("kind", "card")
    column = QVBoxLayout(card)
    column.setContentsMargins(4 * STEP, 3 * STEP, 4 * STEP, 3 * STEP)
    column.setSpacing(2 * STEP)
    title = QLabel(heading)
    title.setProperty("kind", "title")
    for part in (title, *parts):
        column.addWidget(part)
    return card


def _words(text: str) -> QLabel:
    label = QLabel(text)
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setWordWrap(True)
    label.setProperty("kind", "muted")
    return label


def _path(path: str) -> QLabel:
    label = _words(path)
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return label
