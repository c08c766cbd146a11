"""What is said in a transcript under test, and what its reader does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtWidgets import QPushButton, QTextEdit

from tests.app.events import ended, spoken

if TYPE_CHECKING:
    from app.chat.transcript import Transcript


def texts(transcript: Transcript) -> list[str]:
    """What every turn says, from the top."""
    shown = [view for view in transcript.findChildren(QTextEdit) if view.isVisible()]
    shown.sort(key=lambda view: view.mapTo(transcript, view.rect().topLeft()).y())
    return [view.toPlainText() for view in shown]


def press(transcript: Transcript, words: str) -> None:
    """Click the last button that says this."""
    found = [button for button in transcript.findChildren(QPushButton) if not button.isHidden()]
    next(button for button in reversed(found) if button.text() == words).click()


def say(transcript: Transcript, question: str, answer: str) -> None:
    transcript.add_user(question)
    transcript.begin_reply()
    transcript.apply([spoken(answer), ended()])
