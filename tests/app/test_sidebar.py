"""The left column."""

from __future__ import annotations

from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QLabel, QPushButton

from app.sidebar import Sidebar
from tests.app.widgets import part_of


def test_a_new_chat_is_asked_for_by_a_click_and_the_systems_shortcut_for_it_is_named(qtbot):
    sidebar = Sidebar()
    qtbot.addWidget(sidebar)
    button = sidebar.findChildren(QPushButton)[0]

    with qtbot.waitSignal(sidebar.new_chat_requested):
        button.click()

    keys = QKeySequence(QKeySequence.StandardKey.New).toString(
        QKeySequence.SequenceFormat.NativeText
    )
    assert part_of(sidebar, QLabel).text().split() == keys.split("+")
