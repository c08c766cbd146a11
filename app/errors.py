"""How trouble reaches the user: a sentence in a banner, details to copy, and the last net."""

from __future__ import annotations

import logging
import platform
import sys
import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING

import PySide6
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QFrame,
    QHBoxLayout,
    QLabel,
    QPlainTextEdit,
    QPushButton,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from app.theme import STEP
from engine.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Failure:
    """A sentence for the user; details: what else a bug report needs, or nothing."""

    sentence: str
    details: str = ""


def failure_of(error: BaseException) -> Failure:
    """The engine's own sentence for the world's mistakes; for ours a plain one and the trace."""
    if isinstance(error, EngineError):
        logger.info("%s: %s", type(error).__name__, error)
        return Failure(str(error))
    logger.error("Unexpected error", exc_info=error)
    trace = "".join(traceback.format_exception(error))
    return Failure(
        "Something went wrong inside Draftlight. You can go on; the details are in the log.", trace
    )


class Banner(QWidget):
    """Over the transcript: what went wrong last, and the notes; until closed or cleared."""

    dismissed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._failure: Failure | None = None
        self._notes: list[str] = []
        self._sentence = QLabel()
        self._sentence.setTextFormat(Qt.TextFormat.PlainText)
        self._sentence.setWordWrap(True)
        self._sentence.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._sentence.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self._more = QPushButton("Details…")
        self._more.clicked.connect(self._show_details)
        self._close = QPushButton("Dismiss")
        self._close.clicked.connect(self._dismiss)
        for button in (self._more, self._close):
            button.setProperty("kind", "quiet")
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._box = QFrame()
        row = QHBoxLayout(self._box)
        row.setContentsMargins(3 * STEP, 2 * STEP, 2 * STEP, 2 * STEP)
        row.addWidget(self._sentence, 1)
        row.addWidget(self._more)
        row.addWidget(self._close)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 3 * STEP, 0, 0)
        column.addWidget(self._box)
        self.hide()

    @property
    def sentence(self) -> str:
        """What it says; empty while it is hidden."""
        return self._sentence.text()

    def show_failure(self, failure: Failure) -> None:
        """Say what went wrong; it takes the place of what went wrong before."""
        self._failure = failure
        self._show_state()

    def show_note(self, sentence: str) -> None:
        """Say something that is no trouble, beneath what is said already."""
        if sentence not in self._notes:
            self._notes.append(sentence)
        self._show_state()

    def clear(self) -> None:
        """Take all of it away."""
        self._failure = None
        self._notes.clear()
        self._sentence.clear()
        self.hide()

    def _dismiss(self) -> None:
        self.clear()
        self.dismissed.emit()

    def _show_state(self) -> None:
        failure = self._failure
        sentences = "\n".join([*([failure.sentence] if failure else []), *self._notes])
        self._sentence.setText(sentences)
        self.setAccessibleName(sentences)
        self._more.setVisible(bool(failure and failure.details))
        self._box.setProperty("kind", "banner" if failure else "note")
        for widget in (self._box, self._sentence):
            widget.style().unpolish(widget)
            widget.style().polish(widget)
        self.show()

    def _show_details(self) -> None:
        if self._failure is not None:
            DetailsDialog(self._failure.sentence, self._failure.details, self.window()).open()


class DetailsDialog(QDialog):
    """A sentence, and beneath it the details with the versions, ready to be copied."""

    def __init__(self, sentence: str, details: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Draftlight")
        self.resize(180 * STEP, 105 * STEP)
        heading = QLabel(sentence)
        heading.setTextFormat(Qt.TextFormat.PlainText)
        heading.setWordWrap(True)
        self._text = QPlainTextEdit(f"{_versions()}\n\n{details}")
        self._text.setReadOnly(True)
        self._text.setProperty("kind", "field")
        self._text.setAccessibleName("Details of the error")
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        copy = buttons.addButton("Copy", QDialogButtonBox.ButtonRole.ActionRole)
        copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(self._text.toPlainText()))
        buttons.rejected.connect(self.reject)
        column = QVBoxLayout(self)
        column.setContentsMargins(5 * STEP, 5 * STEP, 5 * STEP, 4 * STEP)
        column.setSpacing(3 * STEP)
        column.addWidget(heading)
        column.addWidget(self._text, 1)
        column.addWidget(buttons)


def install_excepthook(show: Callable[[Failure], None]) -> None:
    """Send what nobody caught to the log and to `show`; the app goes on."""

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt):
            sys.__excepthook__(kind, error, trace)
            return
        show(failure_of(error))

    sys.excepthook = hook


def _versions() -> str:
    return (
        f"{platform.platform()}, Python {platform.python_version()}, PySide6 {PySide6.__version__}"
    )
