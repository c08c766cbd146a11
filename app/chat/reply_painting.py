"""What is painted behind a reply's text: code cards, tints and lines, the draft's frame."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, cast

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPen

from app.chat.origin_format import LINE_PIXELS, Mark, origin_styles
from app.chat.reply_format import CODE_PADDING, code_number
from app.theme import CARD_RADIUS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from PySide6.QtGui import QPainter, QTextBlock, QTextDocument, QTextLine

    from app.chat.token_runs import TokenRuns
    from app.theme import Theme
    from engine.events import Origin

    _BlockLine = tuple[QTextBlock, QTextLine]

_BEYOND = 64  # How far a card that goes on outside the painted area is drawn past it.
_HEADROOM = 4  # A line's text sits at the bottom of its height; the card's padding makes up for it.
_DESCENT = 0.19  # How far below its baseline a box's tint reaches, of the distance between lines.
_CELL_GAP = 2  # Between the boxes of two lines.


class ReplyPainter:
    """Paints by the document's own layout; costs what is visible, however long the reply.

    colours_shown: whether tokens are painted. draft_start: where the pending draft begins, if any.
    """

    def __init__(self, document: QTextDocument, runs: TokenRuns) -> None:
        self.colours_shown = True
        self.draft_start: int | None = None
        self._document = document
        self._runs = runs
        self._settled: dict[int, list[tuple[Origin, Mark]]] = {}

    def set_theme(self, theme: Theme) -> None:
        """Take on the colours of a theme."""
        self._styles = origin_styles(theme)
        self._card = theme.color("code_tint")
        self._border = QPen(theme.color("border"))
        self._draft = QPen(theme.color("draft_line"))
        self._draft.setDashPattern([3, 2])

    def paint(self, painter: QPainter, exposed: QRectF) -> None:
        """Paint all that lies in this part of the document."""
        blocks = list(self._blocks(exposed))
        for card in self._cards(blocks):
            self._paint_card(painter, card)
        lines = [(block, line) for block in blocks for line in _lines(block, exposed)]
        if self.colours_shown:
            self._paint_origins(painter, lines)
        if self.draft_start is not None:
            self._paint_draft(painter, lines, self.draft_start)

    def forget_places(self) -> None:
        """The text has been laid out anew: nothing stands where it stood."""
        self._settled.clear()

    def _blocks(self, exposed: QRectF) -> Iterator[QTextBlock]:
        layout = self._document.documentLayout()
        top = QPointF(0, max(exposed.top() - _BEYOND, 0))
        block = self._document.findBlock(max(layout.hitTest(top, Qt.HitTestAccuracy.FuzzyHit), 0))
        while block.isValid():
            if layout.blockBoundingRect(block).top() > exposed.bottom() + _BEYOND:
                return
            yield block
            block = block.next()

    def _cards(self, blocks: list[QTextBlock]) -> Iterator[QRectF]:
        """The box round each run of code, past the blocks where it goes on out of sight."""
        layout = self._document.documentLayout()
        top = 0.0
        for block in blocks:
            number = code_number(block)
            if not number:
                continue
            box = layout.blockBoundingRect(block)
            begins = code_number(block.previous()) != number
            if begins or block == blocks[0]:
                top = box.top() - (CODE_PADDING - _HEADROOM if begins else _BEYOND)
                if begins:
                    # Qt gives a document's first block no room above, so its card has less.
                    top = max(top, 0.0)
            ends = code_number(block.next()) != number
            if ends or block == blocks[-1]:
                bottom = box.bottom() + (CODE_PADDING if ends else _BEYOND)
                width = self._document.textWidth()
                yield QRectF(0.5, round(top) + 0.5, width - 1, round(bottom - top) - 1)

    def _paint_card(self, painter: QPainter, card: QRectF) -> None:
        painter.save()
        painter.setRenderHint(painter.RenderHint.Antialiasing)
        painter.setPen(self._border)
        painter.setBrush(self._card)
        painter.drawRoundedRect(card, CARD_RADIUS, CARD_RADIUS)
        painter.restore()

    def _paint_origins(self, painter: QPainter, lines: Iterable[_BlockLine]) -> None:
        marks: defaultdict[Origin, list[Mark]] = defaultdict(list)
        for block, line in lines:
            for origin, mark in self._marks(block, line):
                marks[origin].append(mark)
        for origin, group in marks.items():
            self._styles[origin].paint(painter, group)

    def _marks(self, block: QTextBlock, line: QTextLine) -> list[tuple[Origin, Mark]]:
        begin = block.position() + line.textStart()
        if begin in self._settled:
            return self._settled[begin]
        place = Place(block, line)
        marks = [
            (origin, Mark.in_box(box))
            for start, stop, origin in self._runs.stretches(begin, begin + line.textLength())
            for box in place.boxes(start, stop)
        ]
        if _end_of_next(block, line) <= self._runs.end:
            self._settled[begin] = marks
        return marks

    def _paint_draft(self, painter: QPainter, lines: Iterable[_BlockLine], start: int) -> None:
        painter.setPen(self._draft)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for block, line in lines:
            begin = block.position() + line.textStart()
            end = begin + line.textLength()
            if end > start:
                for box in Place(block, line).boxes(max(begin, start), end):
                    painter.drawRect(box.adjusted(0.5, 0.5, -0.5, -0.5))


def _lines(block: QTextBlock, exposed: QRectF) -> Iterator[QTextLine]:
    layout = block.layout()
    pitch = max(block.blockFormat().lineHeight(), 1.0)
    top = layout.position().y()
    first = max(int((exposed.top() - top) / pitch) - 1, 0)
    last = min(int((exposed.bottom() - top) / pitch) + 1, layout.lineCount() - 1)
    for number in range(first, last + 1):
        yield layout.lineAt(number)


def _end_of_next(block: QTextBlock, line: QTextLine) -> int:
    """Where the line below ends: once that is written, this line's words stay where they are."""
    layout = block.layout()
    below = line.lineNumber() + 1
    if below == layout.lineCount():
        return block.position() + block.length()
    after = layout.lineAt(below)
    return block.position() + after.textStart() + after.textLength()


class Place:
    """Where the characters of a line stand, on whole pixels downward."""

    def __init__(self, block: QTextBlock, line: QTextLine) -> None:
        at = block.layout().position()
        pitch = round(block.blockFormat().lineHeight())
        self._line = line
        self._first = block.position()
        self._left = at.x()
        # A space at the line's end hangs over the edge.
        self._room = line.naturalTextRect()
        self._both_ways = any(run.isRightToLeft() for run in line.glyphRuns())
        self._height = pitch - _CELL_GAP
        baseline = round(at.y() + line.y() + line.ascent())
        self._top = baseline + round(pitch * _DESCENT) + LINE_PIXELS - self._height

    def boxes(self, start: int, stop: int) -> Iterator[QRectF]:
        """The boxes of the characters [start, stop): one for each stretch of a direction."""
        for left, right in self._edges(start - self._first, stop - self._first):
            left, right = max(left, self._room.left()), min(right, self._room.right())
            if left < right:
                yield QRectF(self._left + left, self._top, right - left, self._height)

    def _edges(self, start: int, stop: int) -> Iterator[tuple[float, float]]:
        if not self._both_ways:
            yield self._x(start), self._x(stop)
            return
        # Where directions meet, an offset has two places; its glyphs have one.
        for run in self._line.glyphRuns(start, stop - start):
            yield run.boundingRect().left(), run.boundingRect().right()

    def _x(self, offset: int) -> float:
        # The bindings give the clamped offset along with the place, unlike what their stubs say.
        return cast("tuple[float, int]", self._line.cursorToX(offset))[0]
