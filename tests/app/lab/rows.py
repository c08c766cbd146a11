"""The list of drafters under test: what it offers, and how a test takes hold of its parts."""

from __future__ import annotations

from typing import cast

from PySide6.QtWidgets import QLabel, QPushButton, QRadioButton, QSpinBox, QWidget

from app.lab.drafter_list import DrafterList, DrafterRow
from tests.app.widgets import part_of

CHOICES = [
    DrafterRow("off", "Off"),
    DrafterRow("ngram", "N-gram"),
    DrafterRow("layer-skip", "Layer skip"),
    DrafterRow("medusa", "Medusa", reason="not trained for it"),
    DrafterRow("draft-model", "Draft model…", needs="a model"),
]


def radio(drafters: DrafterList, label: str) -> QRadioButton:
    return [found for found in drafters.findChildren(QRadioButton) if found.text() == label][-1]


def row(drafters: DrafterList, label: str) -> QWidget:
    return cast("QWidget", radio(drafters, label).parentWidget())


def fact(drafters: DrafterList, label: str) -> str:
    return fact_label(drafters, label).text()


def fact_label(drafters: DrafterList, label: str) -> QLabel:
    return part_of(row(drafters, label), QLabel)


def marked(drafters: DrafterList) -> list[str]:
    rows = [found for found in drafters.findChildren(QRadioButton) if found.isVisible()]
    return [found.text() for found in rows if found.isChecked()]


def fold(drafters: DrafterList) -> QPushButton:
    return part_of(drafters, QPushButton)


def length_box(drafters: DrafterList) -> QSpinBox:
    return part_of(drafters, QSpinBox)


def field(drafters: DrafterList, name: str) -> QSpinBox:
    return [found for found in drafters.findChildren(QSpinBox) if found.accessibleName() == name][
        -1
    ]
