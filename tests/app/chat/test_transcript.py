"""The conversation: turns come and go, the reader's place is kept, batches are shown together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from PySide6.QtWidgets import QLabel, QPushButton, QTextEdit

from app.chat.column import COLUMN_PIXELS
from app.chat.reply_view import ReplyView
from app.theme import load_theme, style_sheet
from engine.events import Drafted, FinishReason
from tests.app.chat.turns import press, say, texts
from tests.app.events import ended, spoken
from tests.app.test_text_view import HOSTILE
from tests.app.widgets import heard, part_of

if TYPE_CHECKING:
    from app.chat.transcript import Transcript

PARAGRAPHS = spoken(*(f"Paragraph {number}.\n" for number in range(120)))


@pytest.fixture
def long(transcript, qtbot) -> Transcript:
    """A transcript that has more than fits, a reply still being written."""
    transcript.add_user("Tell me.")
    transcript.begin_reply()
    transcript.apply([PARAGRAPHS])
    qtbot.waitUntil(lambda: at_the_end(transcript) and bar(transcript).maximum() > 500)
    return transcript


def bar(transcript: Transcript):
    return transcript.verticalScrollBar()


def at_the_end(transcript: Transcript) -> bool:
    return bar(transcript).value() == bar(transcript).maximum()


def test_turns_stand_in_the_order_they_were_taken(transcript, qtbot):
    say(transcript, "One?", "First.")
    say(transcript, "Two?", "Second.")

    qtbot.waitUntil(lambda: texts(transcript) == ["One?", "First.", "Two?", "Second."])


@pytest.mark.parametrize("text", HOSTILE)
def test_what_the_user_wrote_is_shown_literally(transcript, qtbot, text):
    transcript.add_user(text)

    qtbot.waitUntil(lambda: texts(transcript) == [text])


def test_a_batch_after_a_pause_shows_at_once_and_the_next_ones_together(transcript, qtbot):
    transcript.begin_reply()

    transcript.apply([spoken("a")])
    transcript.apply([spoken("b")])
    transcript.apply([spoken("c"), Drafted(" draft", "ngram")])

    shown_at_once = part_of(transcript, QTextEdit).toPlainText()
    assert shown_at_once == "a"
    qtbot.waitUntil(lambda: part_of(transcript, QTextEdit).toPlainText() == "abc draft")


def test_a_thousand_rounds_in_a_burst_are_few_edits(transcript, qtbot):
    transcript.begin_reply()
    view = part_of(transcript, QTextEdit)
    edits = []
    view.document().contentsChanged.connect(lambda: edits.append(1))

    for _ in range(1000):
        transcript.apply([spoken("word ")])
    transcript.apply([ended()])

    assert transcript.reply_text() == "word " * 1000
    # One at once and one at the end; between them one for every pause that ran out meanwhile.
    assert len(edits) < 100


def test_the_end_is_shown_without_waiting(transcript):
    transcript.begin_reply()
    transcript.apply([spoken("a")])

    transcript.apply([spoken("b"), ended(text="!")])

    assert part_of(transcript, QTextEdit).toPlainText() == "ab!"


def test_the_view_follows_the_end_while_the_reader_is_there(long, qtbot):
    before = bar(long).maximum()

    long.apply([spoken("more\n" * 50), ended()])

    qtbot.waitUntil(lambda: bar(long).maximum() > before + 500 and at_the_end(long))


def test_the_view_stays_where_the_reader_scrolled_to(long, qtbot):
    bar(long).setValue(200)
    before = bar(long).maximum()

    long.apply([spoken("more\n" * 50), ended()])

    qtbot.waitUntil(lambda: bar(long).maximum() > before + 500)
    assert bar(long).value() == 200


def test_back_at_the_end_the_view_follows_again(long, qtbot):
    bar(long).setValue(200)
    bar(long).setValue(bar(long).maximum())
    before = bar(long).maximum()

    long.apply([spoken("more\n" * 50), ended()])

    qtbot.waitUntil(lambda: bar(long).maximum() > before + 500 and at_the_end(long))


def test_code_that_reaches_the_end_of_the_view_is_followed(long, qtbot):
    before = bar(long).maximum()

    long.apply([spoken("```\n" + "x = 1\n" * 60)])
    long.apply([ended()])

    qtbot.waitUntil(lambda: bar(long).maximum() > before + 500 and at_the_end(long))


def test_the_column_is_centred_and_does_not_move_when_the_scroll_bar_comes(transcript, qtbot):
    transcript.begin_reply()
    transcript.apply([spoken("short")])
    view = part_of(transcript, QTextEdit)

    qtbot.waitUntil(lambda: view.width() == COLUMN_PIXELS)
    left = view.mapTo(transcript, view.rect().topLeft()).x()
    transcript.apply([PARAGRAPHS, ended()])

    qtbot.waitUntil(lambda: bar(transcript).maximum() > 500)
    assert left == (transcript.width() - COLUMN_PIXELS) // 2
    assert view.mapTo(transcript, view.rect().topLeft()).x() == left
    assert view.width() == COLUMN_PIXELS


def test_a_failed_reply_with_text_stays_with_the_reason_under_it(transcript, qtbot):
    transcript.add_user("Hi")
    transcript.begin_reply()
    transcript.apply([spoken("Half a rep"), Drafted("ly", "ngram")])

    transcript.fail_reply("No memory left.")

    qtbot.waitUntil(lambda: texts(transcript) == ["Hi", "Half a rep", "No memory left."])


def test_the_last_reply_can_be_written_again_with_either_seed(transcript):
    say(transcript, "One?", "First.")
    asked = heard(transcript.regenerate_requested)

    press(transcript, "Regenerate")
    press(transcript, "Same seed")

    assert asked == [False, True]


def test_only_the_last_reply_can_be_written_again(transcript):
    say(transcript, "One?", "First.")
    say(transcript, "Two?", "Second.")

    buttons = [found for found in transcript.findChildren(QPushButton) if not found.isHidden()]
    words = [found.text() for found in buttons]
    assert words.count("Copy") == 2
    assert words.count("Regenerate") == 1


def test_copying_gives_the_reply_as_the_model_wrote_it(transcript):
    say(transcript, "Code?", "Look:\n```py\nx\n```")
    copied = heard(transcript.copy_requested)

    press(transcript, "Copy")

    assert copied == ["Look:\n```py\nx\n```"]


def test_dropping_the_last_reply_leaves_the_turn_before_it(transcript, qtbot):
    say(transcript, "One?", "First.")

    transcript.drop_last_reply()

    qtbot.waitUntil(lambda: texts(transcript) == ["One?"])


def test_clearing_leaves_nothing(transcript, qtbot):
    say(transcript, "One?", "First.")
    say(transcript, "Two?", "Second.")

    transcript.clear()

    qtbot.waitUntil(lambda: texts(transcript) == [])


def test_events_without_a_reply_are_nothing_to_show(transcript):
    transcript.add_user("Hi")

    transcript.apply([spoken("late")])

    assert transcript.reply_text() == ""


def test_switched_off_colours_stay_off_in_the_next_reply(transcript, theme):
    transcript.set_colours(False)

    say(transcript, "One?", "First.")

    view = transcript.findChildren(ReplyView)[-1]
    assert theme.color("target_tint").name() not in colours(view.grab().toImage())


def test_another_theme_reaches_the_replies_that_are_there(transcript):
    say(transcript, "One?", "First.")
    dark = load_theme("dark")

    transcript.setStyleSheet(style_sheet(dark))
    transcript.set_theme(dark)

    view = transcript.findChildren(ReplyView)[-1]
    assert dark.color("target_tint").name() in colours(view.grab().toImage())


def test_a_reply_cut_short_says_so(transcript):
    transcript.begin_reply()

    transcript.apply([spoken("a"), ended(FinishReason.LENGTH)])

    words = [label.text() for label in transcript.findChildren(QLabel)]
    assert "token limit" in words


def test_every_turn_and_button_has_a_name(transcript):
    say(transcript, "One?", "First.")

    shown = [view for view in transcript.findChildren(QTextEdit) if not view.isHidden()]
    assert [view.accessibleName() for view in shown] == ["You", "Reply"]
    assert all(found.text() for found in transcript.findChildren(QPushButton))


def test_while_one_reply_is_being_had_no_other_can_be(transcript):
    say(transcript, "One?", "First.")
    transcript.set_busy(True)
    asked = heard(transcript.regenerate_requested)

    press(transcript, "Regenerate")
    transcript.set_busy(False)
    transcript.set_refusal("Wait until the model is loaded")
    press(transcript, "Same seed")
    transcript.set_refusal("")
    press(transcript, "Regenerate")

    assert asked == [False]


def colours(image) -> set[str]:
    return {image.pixelColor(x, y).name() for x in range(image.width()) for y in range(0, 22, 3)}
