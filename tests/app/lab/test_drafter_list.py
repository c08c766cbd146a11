"""The drafters: only a click chooses, what cannot be used says why, and off stays off."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt

from app.lab.drafter_list import AS_IT_PAYS, LONGEST_DRAFT, DrafterRow
from tests.app.lab.rows import CHOICES, fact, length_box, marked, radio, row
from tests.app.widgets import heard


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
    drafters.apply_measure("ngram", 1.4, 1.2, 9)
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


def test_what_was_measured_with_another_target_goes(drafters):
    drafters.apply_measure("ngram", 1.4, 1.2, 9)

    drafters.set_choices(CHOICES[:2])

    assert fact(drafters, "N-gram") == ""


def test_every_control_has_a_name(drafters):
    drafters.apply_measure("ngram", 1.4, 1.2, 9)

    assert length_box(drafters).accessibleName() == "Draft length"
    assert radio(drafters, "N-gram").accessibleDescription() == "1.4 · 1.2 ×"
    assert radio(drafters, "Medusa").accessibleDescription() == "not trained for it"
