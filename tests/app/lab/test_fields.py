"""Fields of the panel: the wheel scrolls past them unless they have the focus."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QApplication

from app.lab.fields import decimal_field, whole_field


def turn_wheel(widget) -> bool:
    """Turn the wheel up over a widget; returns whether the widget took it."""
    event = QWheelEvent(
        QPointF(5, 5),
        QPointF(5, 5),
        QPoint(0, 0),
        QPoint(0, 120),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(widget, event)
    return event.isAccepted()


@pytest.fixture(params=["decimal", "whole"])
def number(request, qtbot):
    made = decimal_field(2.0, 0, 9, step=1) if request.param == "decimal" else whole_field(2, 0, 9)
    qtbot.addWidget(made)
    made.show()
    qtbot.waitExposed(made)
    return made


def test_the_wheel_passes_over_a_field_without_the_focus(number):
    number.clearFocus()

    taken = turn_wheel(number)

    assert not taken
    assert number.value() == 2


def test_the_wheel_turns_the_number_that_has_the_focus(number, qtbot):
    number.activateWindow()
    number.setFocus()
    qtbot.waitUntil(number.hasFocus)

    turn_wheel(number)

    assert number.value() == 3


@pytest.mark.parametrize("value", ["7", None, [], float("nan")])
def test_what_is_no_number_leaves_the_field_as_it_is(number, value):
    number.take(value)

    assert number.value() == 2


def test_a_number_outside_the_range_is_drawn_into_it(number):
    number.take(10**12)

    assert number.value() == 9
