"""The header: which target, how far it is loaded, what the seal may say."""

from __future__ import annotations

from typing import cast

import pytest
from PySide6.QtWidgets import QLabel, QPushButton

from app.header import Header
from app.theme import style_sheet


@pytest.fixture
def header(qtbot, theme) -> Header:
    made = Header(theme)
    qtbot.addWidget(made)
    made.setStyleSheet(style_sheet(theme))
    made.resize(900, 51)
    made.show()
    return made


def target(header: Header) -> QPushButton:
    return cast("QPushButton", header.findChild(QPushButton, "target"))


def seal(header: Header) -> QLabel:
    return cast("QLabel", header.findChild(QLabel, "seal"))


@pytest.mark.parametrize(
    ("bit_exact", "words"), [(True, "same text, checked"), (False, "near ties may differ")]
)
def test_the_seal_claims_no_more_than_the_engine_has_checked(header, bit_exact, words):
    header.show_target("SmolLM2", "cpu", bit_exact=bit_exact)

    assert seal(header).text() == words
    assert seal(header).isVisible()
    assert seal(header).property("checked") is bit_exact


def test_while_loading_the_target_says_how_far_it_is_and_opens_nothing(header):
    header.show_target("SmolLM2", "cpu", bit_exact=True)

    header.show_loading("Reading the weights", 0.4)

    assert target(header).text() == "Reading the weights 40\u202f%"
    assert not target(header).isEnabled()
    assert not seal(header).isVisible()


def test_an_unknown_share_gives_no_number(header):
    header.show_loading("Starting the engine", None)

    assert target(header).text() == "Starting the engine"


def test_cancel_is_offered_only_while_loading(header, qtbot):
    cancel = next(b for b in header.findChildren(QPushButton) if b.text() == "Cancel")
    before = cancel.isVisible()
    header.show_loading("Reading the weights", 0.4)

    with qtbot.waitSignal(header.cancel_requested):
        cancel.click()
    header.show_target("SmolLM2", "cpu", bit_exact=True)

    assert not before
    assert not cancel.isVisible()


def test_the_bar_is_as_long_as_the_share_that_is_loaded(header, theme):
    header.show_loading("Reading the weights", 0.5)

    image = target(header).grab().toImage()
    row = [image.pixelColor(x, image.height() - 3).name() for x in range(image.width())]

    filled = row.count(theme.color("accent").name())
    track = row.count(theme.color("meter_track").name())
    assert filled == pytest.approx(track, abs=6)
    assert filled > 20


def test_a_narrow_header_gives_up_the_seal_before_the_name(header):
    header.show_target("SmolLM2 135M Instruct", "cpu", bit_exact=True)

    header.resize(500, 51)
    header.layout().activate()

    assert not seal(header).isVisible()
    assert target(header).text() == "SmolLM2 135M Instruct ▾"


def test_the_seal_is_shown_wherever_there_is_room_for_it(header):
    header.show_target("Tiny", "cpu", bit_exact=True)
    parts = [target(header), seal(header), *header.findChildren(QPushButton)]
    needed = sum(part.sizeHint().width() for part in parts if part.isVisible()) + 8 * 8

    header.resize(needed, 51)

    assert needed < 600
    assert seal(header).isVisible()


def test_a_name_that_is_too_long_is_cut_short(header):
    header.show_target("A model with a very long name " * 5, "cpu", bit_exact=True)
    header.resize(400, 51)

    header.layout().activate()

    assert target(header).text().endswith("…")
    assert header.minimumSizeHint().width() <= 400


def test_an_ampersand_in_a_name_is_shown_and_underlines_nothing(header):
    header.show_target("R&D 7B", "cpu", bit_exact=True)

    assert target(header).text() == "R&&D 7B ▾"
    assert target(header).shortcut().isEmpty()
    assert "R&D 7B" in target(header).accessibleName()


def test_a_new_chat_is_offered_where_no_column_offers_it(header, qtbot):
    new = next(b for b in header.findChildren(QPushButton) if b.accessibleName() == "New chat")
    before = new.isVisible()

    header.set_new_chat(True)

    assert not before
    assert new.isVisible()
    assert "Ctrl" in new.toolTip() or "⌘" in new.toolTip()
    with qtbot.waitSignal(header.new_chat_requested):
        new.click()


def test_setting_a_switch_asks_for_nothing(header, qtbot):
    with (
        qtbot.assertNotEmitted(header.colours_toggled),
        qtbot.assertNotEmitted(header.panel_toggled),
    ):
        header.set_colours(False)
        header.set_panel(False, fits=True)


def test_every_control_has_a_name_for_screen_readers(header):
    header.show_loading("Reading the weights", None)

    assert all(b.accessibleName() for b in header.findChildren(QPushButton))
