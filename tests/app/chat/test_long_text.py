"""A long turn: the whole of it is there, the beginning of it is laid out."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QPlainTextEdit, QPushButton, QTextEdit

from app.chat.turns import UserTurn
from app.text_dialog import TextDialog
from tests.app.chat.turns import press, texts
from tests.app.widgets import part_of


@pytest.mark.parametrize("text", ["line of words\n" * 20_000, "x" * 300_000])
def test_of_a_very_long_turn_only_the_beginning_is_laid_out(transcript, qtbot, text):
    transcript.add_user(text)

    view = part_of(part_of(transcript, UserTurn), QTextEdit)
    assert view.document().characterCount() < 2000
    assert view.document().blockCount() < 30
    assert text.startswith(view.toPlainText().removesuffix("…"))


@pytest.mark.parametrize(
    ("text", "words"),
    [("line\n" * 20_000, "Show all 20,000 lines"), ("x" * 300_000, "Show all 300,000 characters")],
)
def test_the_whole_of_a_long_turn_is_a_click_away(transcript, text, words):
    transcript.add_user(text)

    press(transcript, words)

    shown = part_of(part_of(transcript, TextDialog), QPlainTextEdit).toPlainText()
    assert shown.replace("\n", "") == text.replace("\n", "")


def test_a_turn_of_ordinary_length_is_shown_whole(transcript, qtbot):
    text = "\n".join(f"line {number}" for number in range(80))

    transcript.add_user(text)

    qtbot.waitUntil(lambda: texts(transcript) == [text])
    assert transcript.findChildren(QPushButton) == []
