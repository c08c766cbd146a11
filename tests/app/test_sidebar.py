"""The left column."""

from __future__ import annotations

from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QPushButton

from app.sidebar import Sidebar


def test_a_new_chat_is_asked_for_by_a_click_and_has_the_systems_shortcut(qtbot):
    sidebar = Sidebar()
    qtbot.addWidget(sidebar)
    button = sidebar.findChildren(QPushButton)[0]

    with qtbot.waitSignal(sidebar.new_chat_requested):
        button.click()

    assert button.shortcut() == QKeySequence(QKeySequence.StandardKey.New)
