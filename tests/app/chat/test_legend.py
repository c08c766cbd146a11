"""The legend: the share of each origin among the tokens, and the switch for the colours."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt

from app.chat.legend import Legend
from app.theme import load_theme
from engine.events import Drafted
from tests.app.events import ACCEPTED, RESAMPLED, TARGET_ONLY, ended, spoken


@pytest.fixture
def legend(qtbot, theme) -> Legend:
    made = Legend(theme)
    qtbot.addWidget(made)
    made.resize(720, 30)
    made.show()
    return made


def test_shares_are_of_the_tokens_not_of_the_draft(legend):
    legend.apply([spoken(*"abcde", origins="aaart"), Drafted("x", "ngram"), ended()])

    assert legend.shares() == {ACCEPTED: 60, RESAMPLED: 20, TARGET_ONLY: 20}


def test_shares_add_up_over_rounds_and_begin_anew_on_reset(legend):
    legend.apply([spoken("a", origins="a")])
    legend.apply([spoken("b", origins="t")])
    assert legend.shares()[ACCEPTED] == 50

    legend.reset()

    assert legend.shares() == {}


def test_given_counts_are_shown(legend):
    legend.set_shares(61, 16, 23)

    assert legend.shares() == {ACCEPTED: 61, RESAMPLED: 16, TARGET_ONLY: 23}


def test_a_click_switches_the_colours(legend, qtbot):
    switched = []
    legend.colours_toggled.connect(switched.append)

    qtbot.mouseClick(legend, Qt.MouseButton.LeftButton)
    qtbot.mouseClick(legend, Qt.MouseButton.LeftButton)

    assert switched == [False, True]


def test_the_keyboard_switches_the_colours(legend, qtbot):
    switched = []
    legend.colours_toggled.connect(switched.append)

    qtbot.keyClick(legend, Qt.Key.Key_Space)

    assert switched == [False]


def test_setting_the_switch_from_elsewhere_tells_nobody(legend):
    switched = []
    legend.colours_toggled.connect(switched.append)

    legend.setChecked(False)

    assert switched == []


def test_its_name_tells_the_shares_without_colour(legend):
    legend.set_shares(61, 16, 23)

    assert legend.accessibleName() == (
        "Token colours: accepted 61 %, resampled 16 %, target only 23 %"
    )


@pytest.mark.parametrize("name", ["light", "dark"])
def test_samples_are_painted_in_the_themes_tints_only_while_on(legend, name):
    theme = load_theme(name)
    legend.set_theme(theme)
    tint = theme.color("accepted_tint").name()

    on = legend.grab().toImage()
    legend.setChecked(False)
    off = legend.grab().toImage()

    found = [tint in {image.pixelColor(x, 14).name() for x in range(720)} for image in (on, off)]
    assert found == [True, False]
