"""The drafters: only a click chooses, what cannot be used says why, and off stays off."""

from __future__ import annotations

from typing import cast

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QPushButton, QRadioButton, QSpinBox, QWidget

from app.lab.drafter_list import AS_IT_PAYS, LONGEST_DRAFT, DrafterList, DrafterRow
from tests.app.fakes import LOOKAHEAD
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
    return [found for found in drafters.findChildren(QRadioButton) if found.text() == label][-1]


def marked(drafters: DrafterList) -> list[str]:
    rows = [found for found in drafters.findChildren(QRadioButton) if found.isVisible()]
    return [found.text() for found in rows if found.isChecked()]


def fact(drafters: DrafterList, label: str) -> str:
    return part_of(row(drafters, label), QLabel).text()


def row(drafters: DrafterList, label: str) -> QWidget:
    return cast("QWidget", radio(drafters, label).parentWidget())


def length_box(drafters: DrafterList) -> QSpinBox:
    return part_of(drafters, QSpinBox)


def fold(drafters: DrafterList) -> QPushButton:
    return part_of(drafters, QPushButton)


def test_what_needs_a_file_first_is_folded_away(drafters):
    assert row(drafters, "N-gram").isVisible()
    assert not row(drafters, "Draft model…").isVisible()
    assert fold(drafters).text() == "From a file · 1 ▸"

    fold(drafters).click()

    assert row(drafters, "Draft model…").isVisible()
    assert fold(drafters).text() == "From a file · 1 ▾"


def test_a_drafter_whose_file_was_chosen_once_stands_among_the_others(drafters):
    drafters.select("draft-model:/models/small.gguf")

    assert row(drafters, "Draft model…").isVisible()
    assert not fold(drafters).isVisible()

    drafters.select("ngram")

    assert row(drafters, "Draft model…").isVisible()


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


def test_another_drafter_that_was_opened_by_a_file_leaves_this_ones_file_known(drafters, files):
    drafters.select("draft-model:/models/tiny.gguf")
    drafters.select("ngram")
    drafters.select("layer-skip@20")

    radio(drafters, "Draft model…").click()

    assert files == []
    assert drafters.kept["draft-model"] == "draft-model:/models/tiny.gguf"


def test_what_is_known_of_a_drafter_stands_in_its_row_until_it_was_measured(drafters):
    note = "no exit of this model pays; it was not trained for it"
    drafters.set_choices([DrafterRow("layer-skip", "Layer skip", note=note)])

    before = fact(drafters, "Layer skip"), row(drafters, "Layer skip").toolTip()
    drafters.apply_measure("layer-skip", 1.1, 0.8)

    assert before == ("no exit of this model pays", note)
    assert radio(drafters, "Layer skip").isEnabled()
    assert fact(drafters, "Layer skip") == "1.1 · 0.8 ×"
    assert note in row(drafters, "Layer skip").toolTip()


def test_it_says_nothing_of_what_the_user_has_set(drafters):
    drafters.set_choices([DrafterRow("layer-skip", "Layer skip", note="no exit of this pays")])

    drafters.select("layer-skip@20")

    assert fact(drafters, "Layer skip") == ""


# What can be set of the drafter in charge.


@pytest.fixture
def settable(drafters) -> DrafterList:
    drafters.set_choices([*CHOICES, DrafterRow.of(LOOKAHEAD), DrafterRow("suffix", "Suffix")])
    return drafters


def shown(drafters: DrafterList) -> dict[str, int]:
    fields = drafters.findChildren(QSpinBox)
    names = {field.accessibleName(): field for field in fields if field.isVisible()}
    return {name: field.value() for name, field in names.items() if name != "Draft length"}


def field(drafters: DrafterList, name: str) -> QSpinBox:
    return [found for found in drafters.findChildren(QSpinBox) if found.accessibleName() == name][
        -1
    ]


def test_only_the_drafter_in_charge_shows_what_can_be_set_of_it(settable):
    before = shown(settable)
    settable.select("lookahead")
    in_charge = shown(settable)
    settable.select("ngram")

    assert in_charge == {
        "Lookahead: Window": 7,
        "Lookahead: Guesses": 5,
        "Lookahead: Tree nodes": 0,
    }
    assert before == shown(settable) == {}


def test_the_fields_stand_beneath_its_row(settable):
    settable.select("lookahead")

    rows = [row(settable, "Lookahead"), field(settable, "Lookahead: Window").parentWidget()]
    tops = [*(part.y() for part in rows), row(settable, "Suffix").y()]
    assert tops == sorted(tops)


def test_several_steps_of_a_number_choose_once(settable, told, qtbot):
    settable.select("lookahead")

    for _ in range(3):
        field(settable, "Lookahead: Window").stepUp()
    qtbot.waitUntil(lambda: bool(told))

    assert told == ["lookahead@10x5"]
    assert settable.chosen == "lookahead@10x5"


def test_numbers_can_be_typed(settable, told, qtbot):
    settable.select("lookahead@9x5")
    box = field(settable, "Lookahead: Guesses")

    box.selectAll()
    qtbot.keyClicks(box, "12")
    qtbot.keyClick(box, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: bool(told))

    assert told == ["lookahead@9x12"]


def test_the_tab_key_leads_from_a_row_through_what_can_be_set(settable, qtbot):
    settable.select("lookahead")
    settable.activateWindow()
    radio(settable, "Lookahead").setFocus()
    visited = []

    for _ in range(4):
        qtbot.keyClick(settable.window().focusWidget(), Qt.Key.Key_Tab)
        visited.append(settable.window().focusWidget().accessibleName())

    names = ["Window", "Guesses", "Tree nodes"]
    assert visited[:3] == [f"Lookahead: {name}" for name in names]


def test_numbers_that_are_refused_give_way_to_those_in_charge(settable, told, qtbot):
    settable.select("lookahead@9x5")
    field(settable, "Lookahead: Window").setValue(31)
    qtbot.waitUntil(lambda: told == ["lookahead@31x5"])

    settable.select("lookahead@9x5")

    assert shown(settable)["Lookahead: Window"] == 9
    assert settable.kept == {"lookahead": "lookahead@9x5"}


def test_what_arrives_while_a_number_is_being_changed_does_not_undo_it(settable, told, qtbot):
    settable.select("lookahead")
    field(settable, "Lookahead: Window").stepUp()

    settable.apply_measure("lookahead", 1.4, 1.2)
    settable.select("lookahead")
    qtbot.waitUntil(lambda: bool(told))

    assert told == ["lookahead@8x5"]


def test_a_number_changed_just_before_another_drafter_was_clicked_chooses_nothing(
    settable, told, qtbot
):
    settable.select("lookahead")
    numbers = heard(settable._row_of("lookahead").settings.numbers_changed)
    field(settable, "Lookahead: Window").stepUp()
    radio(settable, "Suffix").click()

    qtbot.waitUntil(lambda: bool(numbers))

    assert told == ["suffix"]
    assert settable.chosen == "suffix"


def test_numbers_are_kept_while_another_drafts(settable, told):
    settable.select("lookahead@9x5")
    settable.select("ngram")

    radio(settable, "Lookahead").click()

    assert told == ["lookahead@9x5"]
    assert shown(settable)["Lookahead: Window"] == 9


def test_what_was_kept_comes_back_and_nonsense_does_not(settable, told):
    settable.keep({"lookahead": "lookahead@9x5", "suffix": 7, "ngram": "off", "off": "off"})

    radio(settable, "Lookahead").click()

    assert told == ["lookahead@9x5"]
    assert settable.kept == {"lookahead": "lookahead@9x5"}


def test_numbers_that_another_target_does_not_take_are_not_kept(settable):
    settable.keep({"lookahead": "lookahead@99x5"})

    settable.set_choices([DrafterRow.of(LOOKAHEAD)])

    assert settable.kept == {}


def test_tree_nodes_are_told_when_changed_by_hand_only_and_are_the_same_for_all(settable):
    nodes = heard(settable.tree_nodes_changed)
    settable.set_choices([DrafterRow.of(LOOKAHEAD), DrafterRow("eagle", "E", grows_trees=True)])
    settable.select("lookahead")

    settable.set_tree_nodes(15)
    field(settable, "Lookahead: Tree nodes").stepUp()
    settable.select("eagle:/heads")

    assert nodes == [16]
    assert shown(settable) == {"E: Tree nodes": 16}


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


def test_what_was_measured_with_another_target_goes(drafters):
    drafters.apply_measure("ngram", 1.4, 1.2)

    drafters.set_choices(CHOICES[:2])

    assert fact(drafters, "N-gram") == ""


def test_every_control_has_a_name(drafters):
    drafters.apply_measure("ngram", 1.4, 1.2)

    assert length_box(drafters).accessibleName() == "Draft length"
    assert radio(drafters, "N-gram").accessibleDescription() == "1.4 · 1.2 ×"
    assert radio(drafters, "Medusa").accessibleDescription() == "not trained for it"
