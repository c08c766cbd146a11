"""How each origin looks: a tint and, under the text, a line of its own kind; not colour alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from PySide6.QtCore import QLineF, QRectF, Qt
from PySide6.QtGui import QColor, QPen

from engine.events import Origin

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from PySide6.QtGui import QPainter

    from app.theme import Theme

LINE_PIXELS = 2
WORDS = {
    Origin.DRAFT_ACCEPTED: "accepted",
    Origin.RESAMPLED: "resampled",
    Origin.TARGET_ONLY: "target only",
}
_ROLES = {
    Origin.DRAFT_ACCEPTED: "accepted",
    Origin.RESAMPLED: "resampled",
    Origin.TARGET_ONLY: "target",
}
_DASHES: dict[Origin, tuple[float, float] | None] = {
    Origin.DRAFT_ACCEPTED: None,
    Origin.RESAMPLED: (3.5, 1.5),
    Origin.TARGET_ONLY: (1.0, 1.5),
}


@dataclass(frozen=True, slots=True)
class Mark:
    """Where the tint and the line of some text go."""

    tinted: QRectF
    underline: QLineF

    @classmethod
    def in_box(cls, box: QRectF) -> Self:
        """The mark that fills a box; the line lies inside it, at its lower edge."""
        y = box.bottom() - LINE_PIXELS / 2
        return cls(box.adjusted(0, 0, 0, -LINE_PIXELS), QLineF(box.left(), y, box.right(), y))


@dataclass(frozen=True, slots=True)
class OriginStyle:
    """The look of one origin. dashes: ink and gap in line widths, None for a solid line."""

    tint: QColor
    line: QColor
    dashes: tuple[float, float] | None

    def paint(self, painter: QPainter, marks: Sequence[Mark]) -> None:
        """Paint the tint and the line of every mark."""
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self.tint)
        painter.drawRects([mark.tinted for mark in marks])
        pen = QPen(self.line, LINE_PIXELS)
        pen.setCapStyle(Qt.PenCapStyle.FlatCap)
        if self.dashes is not None:
            pen.setDashPattern(self.dashes)
        painter.setPen(pen)
        painter.drawLines([mark.underline for mark in marks])


def origin_styles(theme: Theme) -> Mapping[Origin, OriginStyle]:
    """The look of every origin in a theme."""
    styles: dict[Origin, OriginStyle] = {}
    for origin, role in _ROLES.items():
        tint, line = theme.color(f"{role}_tint"), theme.color(f"{role}_line")
        styles[origin] = OriginStyle(tint, line, _DASHES[origin])
    return styles
