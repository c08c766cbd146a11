"""Where the window stands: with its frame on its screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget

from app.frame import make_room_for_frame, place_of, put

if TYPE_CHECKING:
    from PySide6.QtCore import QRect


@pytest.fixture
def screen(qapp) -> QRect:
    return QGuiApplication.primaryScreen().availableGeometry()


@pytest.fixture
def window(qtbot) -> QWidget:
    made = QWidget()
    qtbot.addWidget(made)
    return made


def shown(window: QWidget, qtbot) -> None:
    window.show()
    qtbot.waitExposed(window)
    assert window.frameGeometry() != window.geometry(), "this platform frames no windows"


@pytest.mark.parametrize("place", [(), (0, 0, 2360, 1860), (-50, 900, 300, 200)])
def test_the_frame_has_room_on_the_screen_too(window, qtbot, screen, place):
    put(window, place)
    shown(window, qtbot)

    make_room_for_frame(window)

    assert screen.contains(window.frameGeometry())


def test_a_window_that_has_room_stays_as_it_was(window, qtbot):
    put(window, (30, 40, 300, 200))
    shown(window, qtbot)

    make_room_for_frame(window)

    assert place_of(window) == (30, 40, 300, 200)


def test_a_place_comes_back_as_it_was_told(window, qtbot):
    put(window, (30, 40, 300, 200))
    shown(window, qtbot)

    put(window, place_of(window))

    assert place_of(window) == (30, 40, 300, 200)
