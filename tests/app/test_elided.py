"""The label that gives way: no words widen what holds it, and none run over its edge."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QWidget

from app.elided import ElidedLabel

LONG = "16.0 tokens per pass · so far " * 5


def test_long_words_ask_for_no_room_and_stay_whole_for_who_asks(qtbot):
    label = ElidedLabel(LONG)
    qtbot.addWidget(label)

    assert label.minimumSizeHint().width() == 0
    assert label.text() == LONG


def test_where_there_is_room_it_looks_like_any_label(qtbot):
    pictures = []
    for kind in (QLabel, ElidedLabel):
        holder = QWidget()
        qtbot.addWidget(holder)
        QHBoxLayout(holder).addWidget(kind("1.4 · 1.2 ×"))
        holder.setStyleSheet("QLabel { color: #5D6673; font-size: 12px; background: white; }")
        holder.resize(200, 40)
        pictures.append(holder.grab().toImage())

    assert pictures[0] == pictures[1]


def test_what_does_not_fit_ends_in_an_ellipsis(qtbot):
    label, cut = ElidedLabel(LONG), QLabel()
    for widget in (label, cut):
        qtbot.addWidget(widget)
        widget.resize(100, 20)

    cut.setText(cut.fontMetrics().elidedText(LONG, Qt.TextElideMode.ElideRight, 100))

    assert label.grab().toImage() == cut.grab().toImage()
