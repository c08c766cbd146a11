"""One reply as it arrives: text, tokens by offset, the pending draft, code."""

from __future__ import annotations

import itertools

import pytest
from PySide6.QtCore import QPoint, QRectF
from PySide6.QtGui import QImage, QTextCursor

from app.chat.reply_painting import Place
from app.chat.reply_view import ReplyView
from app.theme import load_theme
from engine.events import Drafted
from tests.app.events import ACCEPTED, RESAMPLED, ended, spoken
from tests.app.test_text_view import HOSTILE


@pytest.fixture
def view(qtbot, theme) -> ReplyView:
    made = ReplyView(theme)
    qtbot.addWidget(made)
    made.resize(600, 40)
    made.show()
    return made


def place_of(view: ReplyView, offset: int) -> QPoint:
    """The middle of the character at this offset."""
    cursor = QTextCursor(view.document())
    cursor.setPosition(offset)
    left = view.cursorRect(cursor)
    cursor.setPosition(offset + 1)
    right = view.cursorRect(cursor)
    return QPoint((left.x() + right.x()) // 2, left.center().y())


def origin_at(view: ReplyView, text: str, occurrence: int = 0):
    found = view.document().find(text)
    for _ in range(occurrence):
        found = view.document().find(text, found)
    offset = found.selectionStart()
    facts = view.token_at(place_of(view, offset))
    return facts and facts.token.origin


def code_lines(view: ReplyView) -> list[str]:
    """The paragraphs that stand indented, in a card."""
    block = view.document().begin()
    lines = []
    while block.isValid():
        if block.blockFormat().leftMargin() > 0:
            lines.append(block.text())
        block = block.next()
    return lines


def painted(view: ReplyView) -> QImage:
    return view.grab().toImage()


def test_the_text_is_what_the_tokens_and_the_end_said(view):
    view.apply([spoken("Hello", " wor"), spoken("ld"), ended(text="!")])

    assert view.text == "Hello world!"
    assert view.toPlainText() == "Hello world!"


@pytest.mark.parametrize("text", HOSTILE)
def test_the_models_text_is_never_mark_up(view, text):
    view.apply([spoken(*text), ended()])

    assert view.toPlainText() == text


def test_nothing_is_ever_loaded_for_a_reply(qtbot, theme):
    class Watched(ReplyView):
        loaded = 0

        def loadResource(self, kind, name):  # noqa: N802 - Qt's own method
            self.loaded += 1
            return super().loadResource(kind, name)

    view = Watched(theme)
    qtbot.addWidget(view)
    view.apply([spoken('<img src="file:///x.png"> ![a](file:///x.png)'), ended()])
    view.grab()

    assert view.loaded == 0


def test_repeated_words_keep_each_its_own_origin(view):
    view.apply([spoken("the", " the", " the", origins="ara")])

    assert origin_at(view, "the", 0) is ACCEPTED
    assert origin_at(view, "the", 1) is RESAMPLED
    assert origin_at(view, "the", 2) is ACCEPTED


def test_tokens_keep_their_origin_behind_emoji_code_and_lists(view):
    view.apply([spoken("🙂👍\n", "```py\n", "x = 1", "\n```\n", "- x = 1", origins="atrta")])

    assert origin_at(view, "x = 1", 0) is RESAMPLED
    assert origin_at(view, "x = 1", 1) is ACCEPTED


def test_hovering_beside_the_text_finds_no_token(view):
    view.apply([spoken("short")])

    assert view.token_at(QPoint(550, 10)) is None


def test_the_draft_is_shown_until_its_round_and_then_withdrawn(view):
    view.apply([spoken("It looks"), Drafted(" at the items", "ngram")])
    assert view.toPlainText() == "It looks at the items"

    view.apply([spoken(" at", " every", origins="ar")])

    assert view.toPlainText() == "It looks at every"
    assert view.text == "It looks at every"


def test_a_draft_belongs_to_no_token(view):
    view.apply([spoken("a"), Drafted(" pending", "ngram")])

    assert origin_at(view, "pending") is None


def test_of_several_drafts_in_a_batch_only_the_pending_one_shows(view):
    view.apply(
        [Drafted("one", "n"), spoken("1"), Drafted("two", "n"), spoken("2"), Drafted("x", "n")]
    )

    assert view.toPlainText() == "12x"


def test_a_withdrawn_draft_leaves_no_trace_in_the_formats(view, theme, qtbot):
    drafted = ReplyView(theme)
    qtbot.addWidget(drafted)
    rounds = [spoken("Look:\n"), spoken("```\nx\n"), spoken("```\nend"), ended()]
    view.apply(rounds)

    for one in rounds:
        drafted.apply([Drafted("```py\nwrong\n```\n\nwrong", "n")])
        drafted.apply([one])

    assert drafted.document().toHtml() == view.document().toHtml()


def test_a_withdrawn_draft_does_not_pull_up_what_is_below(view):
    view.apply([spoken("a"), Drafted("\nb\nc\nd", "n")])
    with_draft = view.height()

    view.apply([spoken("b")])
    without_draft = view.height()
    view.apply([ended()])

    assert without_draft == with_draft
    assert view.height() < with_draft


def test_a_fence_streamed_by_characters_never_shows_its_back_ticks(view):
    seen = set()
    for character in "Code:\n```python\nx = 1\n```\nDone":
        view.apply([spoken(character)])
        seen.add("`" in view.toPlainText())
    view.apply([ended()])

    assert seen == {False}
    assert code_lines(view) == ["x = 1"]
    assert view.toPlainText() == "Code:\nx = 1\nDone"


def test_a_drafted_fence_shows_no_back_ticks_either(view):
    view.apply([spoken("Code:\n"), Drafted("```py\nx = 1", "n")])

    assert view.toPlainText() == "Code:\nx = 1"
    assert code_lines(view) == ["x = 1"]


def test_lines_of_code_once_shown_stay_as_they_are(view):
    view.apply([spoken("```\n", "first\n", "second")])
    first = view.document().begin()
    before = (first.text(), first.blockFormat().toCharFormat())

    for character in " and more\n```\nprose":
        view.apply([spoken(character)])

    assert (first.text(), first.blockFormat().toCharFormat()) == before


def test_a_long_block_that_never_closes_is_all_code(view):
    lines = [f"line {number}" for number in range(1500)]

    view.apply([spoken("```\n"), *(spoken(f"{line}\n") for line in lines), ended()])

    assert code_lines(view) == lines


def test_a_card_that_begins_the_reply_has_its_upper_edge(view, theme):
    view.apply([spoken("```\n", "x = 1\n", "```"), ended()])

    image = painted(view)

    edges = [image.pixelColor(300, y).name() for y in range(image.height())]
    assert edges.count(theme.color("border").name()) == 2
    assert edges.index(theme.color("border").name()) < 6


def test_breaking_off_shows_what_was_held_back(view):
    view.apply([spoken("``"), Drafted(" draft", "n")])

    view.break_off()

    assert view.toPlainText() == "``"


def test_colours_can_be_switched_off_and_on_again(view):
    view.apply([spoken("some", " words", origins="ar"), ended()])
    coloured = painted(view)

    view.set_colours(False)
    plain = painted(view)
    view.set_colours(True)

    assert plain != coloured
    assert painted(view) == coloured


def test_a_theme_changes_the_tints_of_what_is_there(view):
    view.apply([spoken("some", " words", origins="ar"), ended()])
    dark = load_theme("dark")

    view.set_theme(dark)

    colours = {painted(view).pixelColor(x, 4).name() for x in range(60)}
    assert dark.color("accepted_tint").name() in colours


def test_tints_move_with_the_text_when_the_width_changes(theme, qtbot):
    words = [f" word{number}" for number in range(80)]
    events = [spoken(*words, origins="ar" * 40), spoken("\n\nend"), ended()]
    narrowed, narrow = ReplyView(theme), ReplyView(theme)
    for view, width in ((narrowed, 600), (narrow, 300)):
        qtbot.addWidget(view)
        view.resize(width, 40)
        view.apply(events)
        painted(view)

    narrowed.resize(300, 40)

    assert painted(narrowed) == painted(narrow)


def test_in_a_line_of_both_directions_every_token_has_its_own_place(view):
    view.resize(900, 40)
    tokens = ["Plain words, ", "שלום", " עולם", " and 12", " more שלום", "."]
    view.apply([spoken(*tokens), ended()])
    block = view.document().firstBlock()
    line = block.layout().lineAt(0)
    place = Place(block, line)

    boxes, begin = [], 0
    for token in tokens:
        boxes.append(list(place.boxes(begin, begin + len(token))))
        begin += len(token)

    # The Hebrew words stand from right to left between the English ones.
    assert [len(found) for found in boxes] == [1, 1, 1, 2, 2, 1]
    first, hebrew, second = (found[0] for found in boxes[:3])
    assert first.right() == pytest.approx(second.left())
    assert second.right() == pytest.approx(hebrew.left())
    every = sorted((box for found in boxes for box in found), key=QRectF.left)
    assert all(a.right() == pytest.approx(b.left()) for a, b in itertools.pairwise(every))
    assert every[-1].right() - every[0].left() == pytest.approx(line.naturalTextWidth(), abs=1)
    for token, found in zip(tokens, boxes, strict=True):
        wanted = view.fontMetrics().horizontalAdvance(token)
        assert sum(box.width() for box in found) == pytest.approx(wanted, abs=3)
