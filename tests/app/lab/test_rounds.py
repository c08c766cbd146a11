"""The rounds of a reply: what was proposed, by whom, and what became of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtWidgets import QLabel, QPushButton, QSpinBox, QTreeWidget, QTreeWidgetItem

from app.lab.rounds import RoundsSection
from engine.events import Node, Outcome, Round
from tests.app.events import ended, judged, spoken
from tests.app.widgets import part_of

NO_BREAK = "\N{NO-BREAK SPACE}"
KEPT, DOWN, UNREACHED = Outcome.KEPT, Outcome.TURNED_DOWN, Outcome.NOT_REACHED


@pytest.fixture
def section(qtbot) -> RoundsSection:
    made = RoundsSection()
    qtbot.addWidget(made)
    made.resize(520, 320)
    made.show()
    return made


def line(section: RoundsSection) -> QPushButton:
    return part_of(section, QPushButton)


def place(section: RoundsSection) -> QSpinBox:
    return part_of(section, QSpinBox)


def survival(section: RoundsSection) -> str:
    return next(words for words in labels(section) if "reply" in words)


def labels(section: RoundsSection) -> list[str]:
    return [label.text() for label in section.findChildren(QLabel)]


def drafted(section: RoundsSection) -> list[tuple[str, ...]]:
    """Per node its cells, from the top."""
    return [tuple(item.text(column) for column in range(5)) for item in items(section)]


def items(section: RoundsSection) -> list[QTreeWidgetItem]:
    tree = part_of(section, QTreeWidget)
    found = [tree.topLevelItem(at) for at in range(tree.topLevelItemCount())]
    return [item for item in found if item is not None]


def a_tree() -> Round:
    """Two drafters' nodes: one path is kept down to its end, beside it others were not."""
    nodes = (
        Node(5, -1, 1, "suffix", 0.7, None, KEPT, " the"),
        Node(6, -1, 1, "suffix", 0.2, None, DOWN, " a"),
        Node(7, 0, 2, "draft-model", 0.5, 0.4, KEPT, "\n"),
        Node(8, 1, 2, "suffix", None, None, UNREACHED, "<b>x</b>"),
        Node(9, 3, 3, "suffix", None, None, UNREACHED),
    )
    return Round(0, spoken("a").tokens, nodes, "suffix+draft-model", 6, 0.0, 0.1, 0.0)


def test_proposals_stand_path_by_path_with_how_far_ahead_by_whom_and_what_became_of_them(section):
    line(section).click()
    section.apply([a_tree()])
    section.show_state()

    assert drafted(section) == [
        ("1", "␣the", "0.70", "suffix", "kept"),
        ("2", "↵", "0.50", "draft-model", "kept"),
        ("1", "␣a", "0.20", "suffix", "turned down"),
        ("2", "<b>x</b>", "", "suffix", "not reached"),
        ("3", "id 9", "", "suffix", "not reached"),
    ]


def test_a_deep_path_has_as_much_room_for_its_last_token_as_for_its_first(section, qtbot):
    path = [Node(5, at - 1, at + 1, "suffix", 0.7, None, KEPT, " word") for at in range(29)]
    line(section).click()
    section.apply([Round(0, spoken("a").tokens, tuple(path), "suffix", 30, 0.0, 0.1, 0.0)])
    section.show_state()

    tree = part_of(section, QTreeWidget)
    first, *_, last = map(tree.visualItemRect, items(section))
    assert (first.left(), first.width()) == (last.left(), last.width())
    assert [cells[0] for cells in drafted(section)] == [str(depth) for depth in range(1, 30)]


def test_a_token_that_its_column_cuts_short_can_be_read_in_its_hint(section):
    node = Node(5, -1, 1, "suffix", 0.7, None, KEPT, " internationalisation")
    line(section).click()
    section.apply([Round(0, spoken("a").tokens, (node,), "suffix", 2, 0.0, 0.1, 0.0)])
    section.show_state()

    [item] = items(section)
    assert item.toolTip(1) == "␣internationalisation"


def test_folded_it_is_one_line_about_the_newest_round(section):
    before = line(section).text()
    section.apply([a_tree()])
    section.show_state()

    assert before == "Nothing decoded yet ▸"
    assert line(section).text() == "Round 0 · 2 kept, 1 turned down, 2 not reached ▸"
    assert not place(section).isVisible()


def test_a_line_that_is_too_long_goes_on_in_a_second_one(section):
    section.apply([a_tree()])
    section.resize(200, 320)

    assert line(section).text().split("\n") == [
        "Round 0",
        "2 kept, 1 turned down, 2 not reached ▸",
    ]


def test_the_words_follow_by_themselves(section, qtbot):
    section.apply([judged(drafted=3, accepted=3)])

    qtbot.waitUntil(lambda: "3 kept" in line(section).text())


def test_a_round_without_a_draft_says_so(section):
    line(section).click()
    section.apply([spoken("one", index=0)])
    section.show_state()

    assert line(section).text() == "Round 0 · nothing drafted ▾"
    assert drafted(section) == []
    assert survival(section) == "Nothing has been drafted in this reply."


def rounds_of(*accepted: int) -> list[Round]:
    """Chains of three; the first token that is not accepted is turned down."""
    made = list[Round]()
    for index, count in enumerate(accepted):
        outcomes = [*[KEPT] * count, DOWN, UNREACHED, UNREACHED][:3]
        nodes = [Node(5, at - 1, at + 1, "ngram", 0.5, None, o) for at, o in enumerate(outcomes)]
        made.append(replace(judged(drafted=3, accepted=count), index=index, nodes=tuple(nodes)))
    return made


def test_how_often_drafts_held_by_depth_is_told_of_this_reply(section):
    line(section).click()
    section.apply([*rounds_of(3, 1, 0, 2), ended()])
    section.show_state()

    words = survival(section)
    assert words.replace(NO_BREAK, " ").endswith("ahead: 1: 75 %, 2: 67 %, 3: 50 %")
    assert words.count(NO_BREAK) == 6  # No line ends within a figure.


def test_of_deep_drafts_it_tells_the_first_eight_depths(section):
    nodes = [Node(5, at - 1, at + 1, "suffix", 0.5, None, KEPT) for at in range(29)]
    line(section).click()
    section.apply([replace(judged(drafted=3, accepted=3), nodes=tuple(nodes))])
    section.show_state()

    told = survival(section).replace(NO_BREAK, " ").partition("ahead: ")[2]
    assert told == ", ".join([*(f"{depth}: 100 %" for depth in range(1, 9)), "…"])


def test_the_newest_round_is_shown_until_another_is_chosen(section):
    line(section).click()
    first, second, third, fourth = rounds_of(0, 1, 2, 3)
    section.apply([first, second])
    newest = place(section).value()

    section.apply([third])
    place(section).setValue(1)
    section.apply([fourth])
    section.show_state()

    assert newest == 1
    assert "Round 1 · 1 kept" in line(section).text()
    assert place(section).maximum() == 3


def test_another_reply_begins_anew(section):
    line(section).click()
    section.apply(rounds_of(3, 3, 3))

    section.apply(rounds_of(0))
    section.show_state()

    assert line(section).text().startswith("Round 0 · 1 turned down, 2 not reached")
    assert place(section).maximum() == 0
    assert survival(section).replace(NO_BREAK, " ").endswith("1: 0 %")


def test_reset_empties_it(section):
    line(section).click()
    section.apply([a_tree()])

    section.reset()

    assert drafted(section) == []
    assert line(section).text() == "Nothing decoded yet ▾"


def test_every_part_has_a_name(section):
    assert place(section).accessibleName() == "Round"
    assert part_of(section, QTreeWidget).accessibleName() == "Draft of the round"
