"""The styles of the origins: told apart without colour, and readable in both themes."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QRectF
from PySide6.QtGui import QImage, QPainter

from app.chat.origin_format import LINE_PIXELS, Mark, origin_styles
from app.theme import load_theme
from engine.events import Origin


def underline(origin: Origin, theme_name: str) -> list[bool]:
    """Where along 60 pixels the line under this origin's text has ink."""
    theme = load_theme(theme_name)
    image = QImage(60, 20, QImage.Format.Format_RGB32)
    image.fill(theme.color("surface"))
    painter = QPainter(image)
    style = origin_styles(theme)[origin]
    style.paint(painter, [Mark.in_box(QRectF(0, 0, 60, 20))])
    painter.end()
    return [image.pixelColor(x, 20 - LINE_PIXELS) == style.line for x in range(60)]


@pytest.mark.parametrize("theme_name", ["light", "dark"])
def test_origins_differ_in_their_lines_without_any_colour(theme_name, qapp):
    lines = {origin: underline(origin, theme_name) for origin in Origin}

    assert all(lines[Origin.DRAFT_ACCEPTED])
    dashed, dotted = lines[Origin.RESAMPLED], lines[Origin.TARGET_ONLY]
    assert longest_ink(dashed) >= 3 * longest_ink(dotted) > 0
    assert not all(dashed)


def longest_ink(line: list[bool]) -> int:
    pieces = "".join("x" if ink else " " for ink in line).split()
    return max(len(piece) for piece in pieces)


def test_the_tint_leaves_room_for_the_line():
    mark = Mark.in_box(QRectF(10, 0, 30, 20))

    assert mark.tinted.bottom() == 20 - LINE_PIXELS
    assert mark.underline.y1() + LINE_PIXELS / 2 == 20
