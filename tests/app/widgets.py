"""A widget under test: its parts, and what it says."""

from __future__ import annotations

from typing import Any, TypeVar

from PySide6.QtWidgets import QWidget

Part = TypeVar("Part", bound=QWidget)


def part_of(widget: QWidget, kind: type[Part]) -> Part:
    """The first part of this kind."""
    found = widget.findChild(kind)
    assert found is not None
    return found


def heard(signal: Any) -> list[Any]:
    """What this signal says from now on; None each time where it says nothing more."""
    said: list[Any] = []
    signal.connect(lambda *values: said.append(values[0] if values else None))
    return said
