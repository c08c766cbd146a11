"""What stands where a reply is going to, while there is nothing of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.chat.turns import UserTurn
from app.chat.waiting import WaitingLine
from tests.app.chat.turns import say
from tests.app.widgets import part_of

if TYPE_CHECKING:
    from PySide6.QtWidgets import QLabel

    from app.chat.transcript import Transcript


def waiting_line(transcript: Transcript) -> QLabel:
    return part_of(transcript, WaitingLine)


def test_while_a_long_prompt_is_read_its_progress_stands_where_the_reply_will(transcript, qtbot):
    say(transcript, "One?", "First.")
    transcript.add_user("A long question")
    transcript.set_busy(True)
    transcript.show_prompt_read(1024, 9000)

    line = waiting_line(transcript)
    qtbot.waitUntil(line.isVisible)
    assert line.text() == "Reading the conversation: 1,024 of 9,000 tokens"
    question = transcript.findChildren(UserTurn)[-1]
    qtbot.waitUntil(lambda: line.y() > question.geometry().bottom())

    transcript.begin_reply()
    assert line.isHidden()


def test_a_wait_that_ends_at_once_is_not_told(transcript, qtbot):
    transcript.set_busy(True)
    transcript.show_prompt_read(4, 8)
    transcript.set_busy(False)

    qtbot.wait(400)

    assert waiting_line(transcript).isHidden()
