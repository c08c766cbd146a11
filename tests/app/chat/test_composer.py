"""The composer: what sends, what does not, and nothing typed is lost."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QEvent, QMimeData, QObject, Qt
from PySide6.QtGui import QInputMethodEvent
from PySide6.QtWidgets import QApplication, QPlainTextEdit, QProgressBar, QPushButton

from app.chat.composer import PLACEHOLDER, Composer
from tests.app.widgets import heard, part_of


@pytest.fixture
def stops(composer) -> list[None]:
    return heard(composer.stop_requested)


def box(composer: Composer) -> QPlainTextEdit:
    return part_of(composer, QPlainTextEdit)


def button(composer: Composer, words: str) -> QPushButton:
    return next(found for found in composer.findChildren(QPushButton) if found.text() == words)


def compose(composer: Composer, preedit: str, commit: str = "") -> None:
    """What an input method does: show text under composition, or confirm it."""
    event = QInputMethodEvent(preedit, [])
    event.setCommitString(commit)
    QApplication.sendEvent(box(composer), event)


def test_enter_sends_and_empties_the_box(composer, sent, qtbot):
    qtbot.keyClicks(box(composer), "Hello")

    qtbot.keyClick(box(composer), Qt.Key.Key_Return)

    assert sent == ["Hello"]
    assert composer.text() == ""


def test_the_enter_of_the_number_pad_sends_too(composer, sent, qtbot):
    qtbot.keyClicks(box(composer), "Hello")

    qtbot.keyClick(box(composer), Qt.Key.Key_Enter, Qt.KeyboardModifier.KeypadModifier)

    assert sent == ["Hello"]


def test_shift_enter_breaks_the_line(composer, sent, qtbot):
    qtbot.keyClicks(box(composer), "a")
    qtbot.keyClick(box(composer), Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    qtbot.keyClicks(box(composer), "b")

    qtbot.mouseClick(button(composer, "Send"), Qt.MouseButton.LeftButton)

    assert sent == ["a\nb"]


@pytest.mark.parametrize("blank", ["", "   ", "\n\n", " \t\n"])
def test_blank_text_is_not_sent(composer, sent, qtbot, blank):
    composer.restore(blank)

    qtbot.keyClick(box(composer), Qt.Key.Key_Return)

    assert sent == []
    assert composer.text() == blank


def test_enter_while_an_input_method_composes_only_confirms(composer, sent, qtbot):
    compose(composer, "にほん")
    qtbot.keyClick(box(composer), Qt.Key.Key_Return)
    compose(composer, "", commit="日本")
    assert sent == []

    qtbot.keyClick(box(composer), Qt.Key.Key_Return)

    assert sent == ["日本"]


def test_while_busy_stop_stands_in_sends_place(composer, stops, qtbot):
    composer.set_busy(True)

    assert button(composer, "Send").isHidden()
    qtbot.mouseClick(button(composer, "Stop"), Qt.MouseButton.LeftButton)
    assert stops == [None]


def test_typing_ahead_while_busy_keeps_the_text(composer, sent, qtbot):
    composer.set_busy(True)
    qtbot.keyClicks(box(composer), "next")

    qtbot.keyClick(box(composer), Qt.Key.Key_Return)
    composer.set_busy(False)

    assert sent == []
    assert composer.text() == "next"


def test_escape_stops_only_while_busy(composer, stops, qtbot):
    qtbot.keyClick(box(composer), Qt.Key.Key_Escape)
    assert stops == []

    composer.set_busy(True)
    qtbot.keyClick(box(composer), Qt.Key.Key_Escape)

    assert stops == [None]


def test_nothing_is_sent_before_a_model_is_there(composer, sent, qtbot):
    composer.set_ready(False, "Loading…")
    qtbot.keyClicks(box(composer), "early")

    qtbot.keyClick(box(composer), Qt.Key.Key_Return)

    assert sent == []
    assert composer.text() == "early"
    assert box(composer).placeholderText() == "Loading…"
    composer.set_ready(True, PLACEHOLDER)
    assert button(composer, "Send").isEnabled()


def test_the_placeholder_gives_way_to_what_an_input_method_composes(composer):
    compose(composer, "にほん")
    composer.set_ready(True, "Ask anything at all…")
    composing = box(composer).placeholderText()

    compose(composer, "", commit="")

    assert composing == ""
    assert box(composer).placeholderText() == "Ask anything at all…"


class Paints(QObject):
    """Counts how often what it watches is painted."""

    count = 0

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt's own
        self.count += event.type() is QEvent.Type.Paint
        return False


def test_a_new_placeholder_is_painted_at_once(composer, qtbot):
    composer.set_ready(False, "Loading…")
    QApplication.processEvents()
    paints = Paints()
    box(composer).viewport().installEventFilter(paints)

    composer.set_ready(True, PLACEHOLDER)

    qtbot.waitUntil(lambda: paints.count > 0)


@pytest.mark.parametrize(("words", "busy_before"), [("Send", False), ("Stop", True)])
def test_a_button_that_goes_leaves_the_focus_to_the_text(composer, qtbot, words, busy_before):
    composer.restore("text")
    composer.set_busy(busy_before)
    button(composer, words).setFocus()
    qtbot.waitUntil(button(composer, words).hasFocus)

    composer.set_busy(not busy_before)

    assert box(composer).hasFocus()


def test_a_failed_prompt_comes_back_into_the_empty_box(composer):
    composer.restore("my long prompt")

    assert composer.text() == "my long prompt"


def test_a_failed_prompt_comes_back_before_what_was_typed_since(composer, qtbot):
    qtbot.keyClicks(box(composer), "newer")

    composer.restore("older")

    assert composer.text() == "older\nnewer"


def test_pasted_mark_up_arrives_as_plain_text(composer):
    data = QMimeData()
    data.setHtml("<b>bold</b><img src='x'>")
    data.setText("bold")

    box(composer).insertFromMimeData(data)

    assert composer.text() == "bold"
    assert "font-weight:6" not in box(composer).document().toHtml()


ODD = "a\u00a0b\u2028c\u2029d\ufdd0e\ufdd1f\ne"


def test_what_is_sent_is_exactly_what_was_written(composer, sent, qtbot):
    data = QMimeData()
    data.setText(ODD)
    box(composer).insertFromMimeData(data)
    qtbot.keyClick(box(composer), Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    compose(composer, "", commit="g\u00a0h")

    qtbot.keyClick(box(composer), Qt.Key.Key_Return)
    composer.restore(sent[0])

    assert sent == [f"{ODD}\ng\u00a0h"]
    assert composer.text() == sent[0]


def test_the_line_ends_of_another_system_are_line_ends(composer):
    data = QMimeData()
    data.setText("a\r\nb\rc")

    box(composer).insertFromMimeData(data)

    assert composer.text() == "a\nb\nc"


def test_the_box_grows_with_its_text_and_then_scrolls(composer, qtbot):
    one = box(composer).height()

    composer.restore("a\nb\nc")
    three = box(composer).height()
    composer.restore("\n".join("x" * 100))

    assert one < three < 200
    assert box(composer).height() == 200
    qtbot.waitUntil(lambda: box(composer).verticalScrollBar().maximum() > 0)


def test_edits_are_told_once_typing_has_paused(composer, qtbot):
    told = heard(composer.text_edited)

    qtbot.keyClicks(box(composer), "Hello")

    assert told == []
    qtbot.waitUntil(lambda: told == ["Hello"])


def test_the_line_for_the_context_says_both_numbers(composer):
    line = part_of(composer, QProgressBar)

    composer.set_context(1203, 8192)

    assert line.toolTip() == "1,203 of 8,192 tokens of context used"
    assert (line.value(), line.maximum()) == (1203, 8192)


@pytest.mark.parametrize(("used", "full"), [(500, False), (950, True), (2000, True)])
def test_a_nearly_full_context_is_marked(composer, used, full):
    composer.set_context(used, 1000)

    line = part_of(composer, QProgressBar)
    assert line.property("full") is full
    assert line.value() <= 1000


def test_every_control_has_a_name(composer):
    assert box(composer).accessibleName() == "Message"
    assert part_of(composer, QProgressBar).accessibleName() == "Context used"
    assert {found.text() for found in composer.findChildren(QPushButton)} == {"Send", "Stop"}
