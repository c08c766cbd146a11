"""What can be set of the drafter in charge: told once, kept, and left out where it is nonsense."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QSpinBox

from app.lab.drafter_list import DrafterList, DrafterRow
from tests.app.fakes import LOOKAHEAD
from tests.app.lab.rows import field, radio, row
from tests.app.widgets import heard


def shown(drafters: DrafterList) -> dict[str, int]:
    fields = drafters.findChildren(QSpinBox)
    names = {field.accessibleName(): field for field in fields if field.isVisible()}
    return {name: field.value() for name, field in names.items() if name != "Draft length"}


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

    settable.apply_measure("lookahead", 1.4, 1.2, 9)
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
