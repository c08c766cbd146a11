"""The list by the keyboard: tab goes to what is marked, arrows lead on, and only Enter asks."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt

from tests.app.lab.rows import fold, length_box, marked, radio


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


@pytest.fixture
def visited(settable, qtbot):
    """Where the tab key leads from the length round to it, by what the stops say or are called."""

    def go() -> list[str]:
        settable.activateWindow()
        length_box(settable).setFocus()
        stops = []
        while True:
            qtbot.keyClick(settable.focusWidget(), Qt.Key.Key_Tab)
            stop = settable.focusWidget()
            if stop is length_box(settable):
                return stops
            stops.append(stop.accessibleName() or stop.text())

    return go


def test_tab_goes_to_what_is_marked_and_on_from_the_top_to_the_bottom(settable, visited):
    settable.select("ngram")
    closed = visited()
    settable.select("lookahead")

    folded = "From a file or folder · 1 ▸"
    numbers = ["Lookahead: Window", "Lookahead: Guesses", "Lookahead: Tree nodes"]
    assert closed == ["N-gram", folded]
    assert visited() == ["Lookahead", *numbers, folded]


def test_a_row_that_came_out_of_the_fold_is_gone_to_where_it_stands(settable, visited):
    settable.select("draft-model:/models/tiny.gguf")

    assert visited() == ["Draft model…"]


def test_where_what_is_marked_cannot_be_gone_to_tab_goes_to_the_first_row(settable, visited):
    settable.select("medusa")

    assert visited() == ["Off", "From a file or folder · 1 ▸"]


def press(drafters, qtbot, *keys) -> str:
    for key in keys:
        qtbot.keyClick(drafters.focusWidget(), key)
    return drafters.focusWidget().text()


@pytest.fixture
def focused(settable):
    """With the focus on the row that is marked."""
    settable.select("ngram")
    fold(settable).click()
    settable.activateWindow()
    radio(settable, "N-gram").setFocus()
    return settable


def test_arrows_lead_over_the_rows_that_can_be_used_and_ask_for_nothing(
    focused, told, files, qtbot
):
    down, up = Qt.Key.Key_Down, Qt.Key.Key_Up

    way = [press(focused, qtbot, key) for key in (down, down, down, down, down, up)]

    # Medusa cannot be used; what stands in the fold comes last.
    assert way == ["Layer skip", "Lookahead", "Suffix", "Draft model…", "Draft model…", "Suffix"]
    assert told == files == []
    assert marked(focused) == ["N-gram"]


def test_an_arrow_says_which_row_is_to_be_seen(focused, qtbot):
    rows = []
    focused.focus_moved.connect(rows.append)

    press(focused, qtbot, Qt.Key.Key_Up)

    assert rows == [radio(focused, "Off").parentWidget()]


@pytest.mark.parametrize("key", [Qt.Key.Key_Space, Qt.Key.Key_Return, Qt.Key.Key_Enter])
def test_space_and_enter_choose(focused, told, files, qtbot, key):
    press(focused, qtbot, Qt.Key.Key_Down, key)
    chosen = marked(focused)
    press(focused, qtbot, Qt.Key.Key_Down, Qt.Key.Key_Down, Qt.Key.Key_Down, key)

    assert (chosen, told) == (["Layer skip"], ["layer-skip"])
    assert files == ["draft-model"]


def test_a_second_click_on_what_is_marked_leaves_it_marked(focused, told):
    radio(focused, "N-gram").click()

    assert marked(focused) == ["N-gram"]
    assert told == []
