"""A long text that is pasted: a chip that is sent along, and never laid out in the box."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from PySide6.QtCore import QMimeData, Qt
from PySide6.QtWidgets import QPlainTextEdit, QPushButton, QWidget

from app.chat.pasted import PastedTexts
from app.text_dialog import TextDialog
from tests.app.chat.test_composer import box, button
from tests.app.widgets import heard, part_of

if TYPE_CHECKING:
    from app.chat.composer import Composer

LINES = "line of words\n" * 20_000
LONG_LINE = "x" * 300_000


def paste(composer: Composer, text: str) -> None:
    data = QMimeData()
    data.setText(text)
    box(composer).insertFromMimeData(data)


def chips(composer: Composer) -> list[str]:
    found = part_of(composer, PastedTexts).findChildren(QPushButton)
    return [b.text() for b in found if b.isVisible() and b.text() != "×"]


@pytest.mark.parametrize(
    ("text", "chip"),
    [
        (LINES, "Pasted text · 20,000 lines"),
        (LONG_LINE, "Pasted text · 300,000 characters"),
    ],
)
def test_a_long_text_becomes_a_chip_and_is_sent_after_what_was_typed(
    composer, sent, qtbot, text, chip
):
    qtbot.keyClicks(box(composer), "Sum this up:")

    paste(composer, text)

    assert chips(composer) == [chip]
    assert box(composer).document().characterCount() < 100
    qtbot.keyClick(box(composer), Qt.Key.Key_Return)
    assert sent == [f"Sum this up:\n\n{text}"]
    assert chips(composer) == []
    assert composer.text() == ""


def test_many_texts_of_middling_length_do_not_add_up_in_the_box(composer):
    for _ in range(50):
        paste(composer, "word " * 500)

    assert box(composer).document().characterCount() <= 8001
    assert composer.text().count("word") == 25_000


def test_a_text_of_ordinary_length_goes_into_the_box(composer):
    paste(composer, "word " * 1000)

    assert chips(composer) == []
    assert box(composer).toPlainText() == "word " * 1000


def test_what_is_replaced_makes_room(composer):
    paste(composer, "a" * 7000)
    box(composer).selectAll()

    paste(composer, "b" * 7000)

    assert composer.text() == "b" * 7000


def test_a_pasted_text_alone_can_be_sent(composer, sent, qtbot):
    paste(composer, LINES)

    qtbot.mouseClick(button(composer, "Send"), Qt.MouseButton.LeftButton)

    assert sent == [LINES]


def test_a_chip_opens_and_can_be_taken_away(composer):
    paste(composer, LINES)
    paste(composer, LONG_LINE)

    button(composer, chips(composer)[0]).click()
    button(composer, "×").click()

    dialog = part_of(composer, TextDialog)
    assert part_of(dialog, QPlainTextEdit).toPlainText() == LINES
    assert composer.text() == LONG_LINE


def test_an_unanswered_message_comes_back_as_it_was_written(composer, sent, qtbot):
    qtbot.keyClicks(box(composer), "Sum this up:")
    paste(composer, LINES)
    qtbot.keyClick(box(composer), Qt.Key.Key_Return)
    qtbot.keyClicks(box(composer), "newer")

    composer.restore(sent[0])

    assert box(composer).toPlainText() == "Sum this up:\nnewer"
    assert chips(composer) == ["Pasted text · 20,000 lines"]


def test_the_whole_message_is_told_once_typing_has_paused(composer, qtbot):
    told = heard(composer.text_edited)

    paste(composer, LINES)

    qtbot.waitUntil(lambda: told == [LINES])


def test_every_button_of_a_chip_has_a_name(composer):
    paste(composer, LINES)

    names = [b.accessibleName() for b in part_of(composer, PastedTexts).findChildren(QPushButton)]
    assert names == ["Pasted text · 20,000 lines", "Take away: Pasted text · 20,000 lines"]


def test_taking_a_chip_away_by_keyboard_leads_back_to_the_box(composer, qtbot):
    qtbot.addWidget(composer)
    composer.show()
    for text in (LINES, LONG_LINE):
        paste(composer, text)
    cross = part_of(composer, PastedTexts).buttons[1]
    cross.setFocus()

    qtbot.keyClick(cross, Qt.Key.Key_Space)

    assert chips(composer) == ["Pasted text · 300,000 characters"]
    assert box(composer).hasFocus()


def test_the_tab_key_finds_chips_right_behind_the_box_and_its_buttons(composer):
    paste(composer, LINES)
    paste(composer, LONG_LINE)

    following: QWidget | None = button(composer, "Stop")
    found = []
    for _ in range(4):
        assert following is not None
        following = following.nextInFocusChain()
        found.append(following)

    assert found == part_of(composer, PastedTexts).buttons


def test_a_long_text_takes_the_place_of_what_was_selected(composer, qtbot):
    qtbot.keyClicks(box(composer), "away with this")
    box(composer).selectAll()

    paste(composer, LINES)

    assert composer.text() == LINES


def test_the_dialog_of_a_long_text_can_be_scrolled_at_once(qtbot):
    dialog = TextDialog("A text", LINES, name="Pasted text", parent=None)
    qtbot.addWidget(dialog)
    dialog.show()

    assert dialog.focusWidget() is part_of(dialog, QPlainTextEdit)
