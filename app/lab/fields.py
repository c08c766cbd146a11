"""Fields of the panel: numbers that the wheel does not change in passing, in a grid with labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QDoubleSpinBox,
    QGridLayout,
    QLabel,
    QPlainTextEdit,
    QSpinBox,
    QWidget,
)

if TYPE_CHECKING:
    from PySide6.QtGui import QWheelEvent

_FIELD_PIXELS = 128
_TEXT_INDENT = 6


class DecimalField(QDoubleSpinBox):
    """A number with a fraction."""

    def __init__(self) -> None:
        super().__init__()
        # A style sheet's padding does not reach the text of a spin box.
        self.lineEdit().setTextMargins(_TEXT_INDENT, 0, 0, 0)

    def take(self, value: object) -> None:
        """Show a kept value, unless it is no number."""
        if isinstance(value, int | float) and value == value:
            self.setValue(float(value))

    def wheelEvent(self, event: QWheelEvent) -> None:
        """The wheel scrolls the panel; only a field with the focus takes it."""
        super().wheelEvent(event) if self.hasFocus() else event.ignore()


class WholeField(QSpinBox):
    """A whole number."""

    def __init__(self) -> None:
        super().__init__()
        self.lineEdit().setTextMargins(_TEXT_INDENT, 0, 0, 0)

    def take(self, value: object) -> None:
        """Show a kept value, unless it is no number."""
        if isinstance(value, int):
            self.setValue(min(max(value, self.minimum()), self.maximum()))

    def wheelEvent(self, event: QWheelEvent) -> None:
        """The wheel scrolls the panel; only a field with the focus takes it."""
        super().wheelEvent(event) if self.hasFocus() else event.ignore()


class LinesField(QPlainTextEdit):
    """Several lines of plain text."""

    def __init__(self, hint: str, *, pixels: int) -> None:
        super().__init__()
        self.setProperty("kind", "field")
        self.setPlaceholderText(hint)
        self.setFixedHeight(pixels)
        self.setTabChangesFocus(True)


def decimal_field(value: float, low: float, high: float, *, step: float) -> DecimalField:
    """A field for a number with two places."""
    field = DecimalField()
    field.setRange(low, high)
    field.setSingleStep(step)
    field.setValue(value)
    field.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    return field


def whole_field(value: int, low: int, high: int, *, zero: str = "") -> WholeField:
    """A field for a whole number; `zero` is the word for the lowest value."""
    field = WholeField()
    field.setRange(low, high)
    field.setSpecialValueText(zero)
    field.setValue(value)
    field.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    return field


class FieldGrid(QWidget):
    """Labels on the left, fields of one width on the right."""

    def __init__(self) -> None:
        super().__init__()
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(8, 0, 8, 0)
        self._grid.setVerticalSpacing(8)
        self._grid.setColumnStretch(0, 1)

    def add(self, words: str, field: QWidget) -> None:
        """A label with its field beside it."""
        row = self._grid.rowCount()
        self._grid.addWidget(_label(words, field), row, 0)
        self._grid.addWidget(field, row, 1)
        field.setFixedWidth(_FIELD_PIXELS)

    def add_over(self, words: str, field: QWidget) -> None:
        """A label with its field below it, over the whole width."""
        self._grid.addWidget(_label(words, field), self._grid.rowCount(), 0, 1, 2)
        self.add_across(field)

    def add_across(self, field: QWidget) -> None:
        """A field over the whole width."""
        self._grid.addWidget(field, self._grid.rowCount(), 0, 1, 2)


def _label(words: str, field: QWidget) -> QLabel:
    label = QLabel(words)
    label.setProperty("kind", "muted")
    label.setBuddy(field)
    field.setAccessibleName(words)
    return label
