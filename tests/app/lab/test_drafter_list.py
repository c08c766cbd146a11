"""The drafters: only a click chooses, what cannot be used says why, and off stays off."""

from __future__ import annotations

from typing import cast

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QRadioButton, QSpinBox, QWidget

from app.lab.drafter_list import AS_IT_PAYS, LONGEST_DRAFT, DrafterList, DrafterRow
from tests.app.widgets import heard, part_of

CHOICES = [
    DrafterRow("off", "Off"),
    DrafterRow("ngram", "N-gram"),
    DrafterRow("layer-skip", "Layer skip"),
    DrafterRow("medusa", "Medusa", reason="not trained for it"),
    DrafterRow("draft-model", "Draft model…", needs_file=True),
]


@pytest.fixture
def drafters(qtbot) -> DrafterList:
    made = DrafterList()
    qtbot.addWidget(made)
    made.set_choices(CHOICES)
    made.resize(312, 300)
    made.show()
    return made


@pytest.fixture
def told(drafters) -> list[str]:
    """Every drafter that was chosen."""
    return heard(drafters.drafter_chosen)


@pytest.fixture
def files(drafters) -> list[str]:
    """Every time that a file was asked for."""
    return heard(drafters.draft_file_requested)


def radio(drafters: DrafterList, label: str) -> QRadioButton:
    return next(found for found in drafters.findChildren(QRadioButton) if found.text() == label)


def marked(drafters: DrafterList) -> list[str]:
    rows = [found for found in drafters.findChildren(QRadioButton) if found.isVisible()]
    return [found.text() for found in rows if found.isChecked()]


def fact(drafters: DrafterList, label: str) -> str:
    return part_of(row(drafters, label), QLabel).text()


def row(drafters: DrafterList, label: str) -> QWidget:
    return cast("QWidget", radio(drafters, label).parentWidget())


def length_box(drafters: DrafterList) -> QSpinBox:
    return part_of(drafters, QSpinBox)


def test_a_click_chooses_and_tells_once(drafters, told):
    radio(drafters, "N-gram").click()

    assert told == ["ngram"]
    assert marked(drafters) == ["N-gram"]


def test_the_whole_row_is_a_target(drafters, told, qtbot):
    middle = row(drafters, "N-gram").rect().center()

    qtbot.mouseClick(row(drafters, "N-gram"), Qt.MouseButton.LeftButton, pos=middle)

    assert told == ["ngram"]


def test_choosing_what_is_chosen_tells_nothing(drafters, told):
    drafters.select("ngram")

    radio(drafters, "N-gram").click()

    assert told == []
    assert marked(drafters) == ["N-gram"]


def test_selecting_from_elsewhere_tells_nobody(drafters, told):
    drafters.select("layer-skip@20")

    assert marked(drafters) == ["Layer skip"]
    assert drafters.chosen == "layer-skip@20"
    assert told == []


def test_a_drafter_that_cannot_be_used_is_visible_and_says_why(drafters, told):
    radio(drafters, "Medusa").click()

    assert row(drafters, "Medusa").isVisible()
    assert not radio(drafters, "Medusa").isEnabled()
    assert row(drafters, "Medusa").toolTip() == fact(drafters, "Medusa") == "not trained for it"
    assert told == []


def test_off_stays_off_when_anything_else_changes(drafters, qtbot, told):
    drafters.select("ngram")
    radio(drafters, "Off").click()
    told.clear()

    drafters.set_draft_length(8)
    drafters.apply_measure("ngram", 1.4, 1.2)
    drafters.set_choices([*CHOICES, DrafterRow("suffix", "Suffix")])

    qtbot.waitUntil(lambda: marked(drafters) == ["Off"])
    assert drafters.chosen == "off"
    assert told == []


def test_while_off_the_length_has_no_effect_and_says_so(drafters):
    drafters.select("off")
    assert not length_box(drafters).isEnabled()
    assert "no effect" in length_box(drafters).toolTip()

    drafters.select("ngram")

    assert length_box(drafters).isEnabled()
    assert "no effect" not in length_box(drafters).toolTip()


def test_the_length_is_told_when_changed_by_hand_only(drafters):
    lengths = heard(drafters.draft_length_changed)
    drafters.select("ngram")

    drafters.set_draft_length(6)
    assert lengths == []
    length_box(drafters).stepUp()

    assert lengths == [7]


@pytest.mark.parametrize(("asked", "shown"), [(-1, 0), (4, 4), (99, LONGEST_DRAFT)])
def test_the_length_stays_in_its_range(drafters, asked, shown):
    drafters.set_draft_length(asked)

    assert length_box(drafters).value() == shown


def test_until_a_length_is_chosen_drafts_go_as_far_as_it_pays(drafters):
    lengths = heard(drafters.draft_length_changed)
    drafters.select("ngram")

    shown = length_box(drafters).text()
    length_box(drafters).stepUp()
    length_box(drafters).stepDown()

    assert shown == "as it pays"
    assert lengths == [1, AS_IT_PAYS]


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
    drafters.apply_measure("draft-model:/models/tiny.gguf", 2.5, 1.4)
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


def test_figures_say_what_they_are(drafters):
    drafters.apply_measure("ngram", 1.4, 1.2)

    assert "Tokens per pass · times plain speed" in row(drafters, "N-gram").toolTip()


def test_rows_show_what_was_measured_here_last(drafters):
    drafters.apply_measure("ngram", 1.3, 1.1)
    drafters.apply_measure("ngram", 1.4, 1.2)
    drafters.apply_measure("off", 1.0, 1.0)
    drafters.apply_measure("layer-skip", 1.8, None)

    assert fact(drafters, "N-gram") == "1.4 · 1.2 ×"
    assert fact(drafters, "Off") == "1.0 · plain"
    assert fact(drafters, "Layer skip") == "1.8"


def test_new_choices_keep_what_was_measured(drafters):
    drafters.apply_measure("ngram", 1.4, 1.2)

    drafters.set_choices(CHOICES[:2])

    assert [fact(drafters, "N-gram")] == ["1.4 · 1.2 ×"]


def test_every_control_has_a_name(drafters):
    drafters.apply_measure("ngram", 1.4, 1.2)

    assert length_box(drafters).accessibleName() == "Draft length"
    assert radio(drafters, "N-gram").accessibleDescription() == "1.4 · 1.2 ×"
    assert radio(drafters, "Medusa").accessibleDescription() == "not trained for it"
