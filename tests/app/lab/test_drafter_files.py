"""Drafters for which a model or a folder is chosen: folded away, asked for, and kept."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel

from app.lab.drafter_list import DrafterRow
from tests.app.lab.rows import fact, fold, marked, radio, row
from tests.app.widgets import part_of


def test_what_needs_a_file_first_is_folded_away(drafters):
    assert row(drafters, "N-gram").isVisible()
    assert not row(drafters, "Draft model…").isVisible()
    assert fold(drafters).text() == "From a file or folder · 1 ▸"

    fold(drafters).click()

    assert row(drafters, "Draft model…").isVisible()
    assert fold(drafters).text() == "From a file or folder · 1 ▾"


def test_a_drafter_whose_file_was_chosen_once_stands_among_the_others(drafters):
    drafters.select("draft-model:/models/small.gguf")

    assert row(drafters, "Draft model…").isVisible()
    assert not fold(drafters).isVisible()

    drafters.select("ngram")

    assert row(drafters, "Draft model…").isVisible()


def test_a_draft_model_is_chosen_only_with_its_file(drafters, files, told):
    drafters.select("ngram")

    radio(drafters, "Draft model…").click()

    assert files == ["draft-model"]
    assert told == []
    assert marked(drafters) == ["N-gram"]


def test_a_chosen_draft_model_shows_its_files_name(drafters):
    drafters.select("draft-model:/models/größer/tiny.gguf")

    assert marked(drafters) == ["Draft model…"]
    assert fact(drafters, "Draft model…") == "tiny.gguf"


def test_another_file_can_be_asked_for_while_one_is_in_use(drafters, files):
    drafters.select("draft-model:/models/tiny.gguf")

    radio(drafters, "Draft model…").click()

    assert files == ["draft-model"]
    assert marked(drafters) == ["Draft model…"]


def test_a_chosen_file_drafts_again_with_a_click(drafters, files, told):
    drafters.select("draft-model:/models/tiny.gguf")
    drafters.apply_measure("draft-model:/models/tiny.gguf", 2.5, 1.4, 9)
    radio(drafters, "N-gram").click()
    drafters.select("ngram")
    told.clear()

    kept = fact(drafters, "Draft model…")
    radio(drafters, "Draft model…").click()

    assert kept == "tiny.gguf · 2.5 · 1.4 ×"
    assert told == ["draft-model:/models/tiny.gguf"]
    assert files == []


def test_a_click_on_the_files_name_asks_for_another(drafters, files, told, qtbot):
    drafters.select("draft-model:/models/tiny.gguf")
    radio(drafters, "N-gram").click()
    told.clear()
    there = row(drafters, "Draft model…")
    name = part_of(there, QLabel).geometry().center()

    qtbot.mouseClick(there, Qt.MouseButton.LeftButton, pos=name)

    assert files == ["draft-model"]
    assert told == []


def test_a_file_that_would_not_draft_is_not_tried_again(drafters, files):
    drafters.select("draft-model:/models/tiny.gguf")
    radio(drafters, "N-gram").click()
    radio(drafters, "Draft model…").click()
    drafters.select("ngram")

    radio(drafters, "Draft model…").click()

    assert files == ["draft-model"]


def test_another_drafter_that_was_opened_by_a_file_leaves_this_ones_file_known(drafters, files):
    drafters.select("draft-model:/models/tiny.gguf")
    drafters.select("ngram")
    drafters.select("layer-skip@20")

    radio(drafters, "Draft model…").click()

    assert files == []
    assert drafters.kept["draft-model"] == "draft-model:/models/tiny.gguf"


def test_what_asks_for_a_file_may_open_where_its_row_ends(drafters, qtbot):
    fold(drafters).click()
    places = []
    drafters.draft_file_requested.connect(lambda family, ships, place: places.append(place))

    radio(drafters, "Draft model…").click()

    there = row(drafters, "Draft model…")
    assert places == [there.mapToGlobal(there.rect().bottomLeft())]


# What ships for the target.

EAGLE = DrafterRow("eagle", "EAGLE", needs="a folder", ships=True)


def test_what_ships_stands_among_the_others_and_drafts_with_a_click(drafters, files, told):
    drafters.set_choices([DrafterRow("ngram", "N-gram"), EAGLE])

    radio(drafters, "EAGLE").click()
    radio(drafters, "EAGLE").click()

    assert fact(drafters, "EAGLE") == "included"
    assert not fold(drafters).isVisible()
    assert told == ["eagle"]
    assert files == []


def test_in_the_place_of_what_ships_another_can_be_chosen(drafters, files, told, qtbot):
    drafters.set_choices([DrafterRow("ngram", "N-gram"), EAGLE])
    asked = []
    drafters.draft_file_requested.connect(lambda family, ships, place: asked.append(ships))
    there = row(drafters, "EAGLE")

    qtbot.mouseClick(
        there, Qt.MouseButton.LeftButton, pos=part_of(there, QLabel).geometry().center()
    )

    assert (files, told, asked) == (["eagle"], [], [True])


def test_going_back_to_what_ships_lets_go_of_the_other(drafters):
    drafters.set_choices([DrafterRow("ngram", "N-gram"), EAGLE])
    drafters.select("eagle:/heads/own")
    own = fact(drafters, "EAGLE")

    drafters.select("eagle")

    assert (own, fact(drafters, "EAGLE")) == ("own", "included")
    assert drafters.kept == {}
