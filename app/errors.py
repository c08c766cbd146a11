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
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from app.text_dialog import TextDialog
from app.text_view import TextView
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
        logger.info("%s: %s", type(error).__name__, error, exc_info=error.__cause__)
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
        self._said = ""
        self._sentence = TextView()
        self._sentence.setAccessibleName("Notice")
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
        return self._said

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
        self._said = ""
        self.hide()

    def _dismiss(self) -> None:
        self.clear()
        self.dismissed.emit()

    def _show_state(self) -> None:
        failure = self._failure
        self._said = "\n".join([*([failure.sentence] if failure else []), *self._notes])
        self._sentence.show_text(self._said)
        self.setAccessibleName(self._said)
        self._more.setVisible(bool(failure and failure.details))
        self._box.setProperty("kind", "banner" if failure else "note")
        for widget in (self._box, self._sentence):
            widget.style().unpolish(widget)
            widget.style().polish(widget)
        self.show()

    def _show_details(self) -> None:
        if self._failure is not None:
            details = f"{_versions()}\n\n{self._failure.details}"
            name, over = "Details of the error", self.window()
            TextDialog(self._failure.sentence, details, name=name, parent=over).open()


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
