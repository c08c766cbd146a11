"""One reply: its text as it arrives, each token painted by its origin, the pending draft pale."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QPointF, QRectF, Qt
from PySide6.QtGui import (
    QHelpEvent,
    QPainter,
    QTextCharFormat,
    QTextCursor,
)
from PySide6.QtWidgets import QToolTip

from app.chat.markdown import FenceReader
from app.chat.origin_format import LINE_PIXELS
from app.chat.reply_format import CODE_PADDING, GAP, code_look, code_number, paragraph
from app.chat.reply_painting import ReplyPainter
from app.chat.token_runs import TokenRuns, facts_of
from app.text_view import TextView
from engine.events import Drafted, Finished, Round

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from PySide6.QtCore import QPoint
    from PySide6.QtGui import QPaintEvent, QResizeEvent, QTextBlock, QTextBlockFormat

    from app.chat.markdown import Piece
    from app.chat.token_runs import TokenFacts
    from app.theme import Theme
    from engine.events import Event


class ReplyView(TextView):
    """Takes a reply's events; what a token wrote is remembered by offset."""

    def __init__(self, theme: Theme) -> None:
        self._runs = TokenRuns()
        self._reader = FenceReader()
        self._parts: list[str] = []
        self._tallest = 0
        self._writing = True
        super().__init__()
        self._pen = QTextCursor(self.document())
        self._painter = ReplyPainter(self.document(), self._runs)
        self.setAccessibleName("Reply")
        self.set_theme(theme)
        self.restyle()

    @property
    def text(self) -> str:
        """The reply exactly as the model wrote it."""
        return "".join(self._parts)

    def apply(self, events: Sequence[Event]) -> None:
        """Show a batch of events in one edit; of several drafts only the newest pending one."""
        draft = ""
        self._pen.beginEditBlock()
        self._withdraw_draft()
        first_changed = self._pen.position()
        for event in events:
            match event:
                case Drafted():
                    draft = event.text
                case Round():
                    draft = ""
                    for facts in facts_of(event):
                        self._take(facts.token.text, self._runs.add(facts))
                case Finished():
                    draft = ""
                    self._take(event.text, self._runs.newest)
                    self._end()
        if draft:
            self._show_draft(draft)
        self._pen.endEditBlock()
        # At the end the height that was kept for drafts goes, even if the text stays as it is.
        self.fit()
        self._repaint_from(first_changed)

    def break_off(self) -> None:
        """The reply ended without `Finished`: withdraw the draft, let go of what was held back."""
        self._pen.beginEditBlock()
        self._withdraw_draft()
        self._end()
        self._pen.endEditBlock()
        self.fit()

    def token_at(self, place: QPoint) -> TokenFacts | None:
        """The token whose text stands at this place of the view."""
        layout = self.document().documentLayout()
        offset = layout.hitTest(QPointF(place), Qt.HitTestAccuracy.ExactHit)
        return None if offset < 0 else self._runs.at(offset)

    def set_colours(self, shown: bool) -> None:
        """Show or hide where the tokens came from."""
        self._painter.colours_shown = shown
        self.viewport().update()

    def set_theme(self, theme: Theme) -> None:
        """Take on the colours of a theme."""
        self._painter.set_theme(theme)
        self._draft_color = theme.color("draft_text")
        self.viewport().update()

    def block_format(self, block: QTextBlock) -> QTextBlockFormat:
        """Margins make room for the card round code; a blank line between paragraphs is low."""
        blank = block.length() == 1 and block.next().isValid()
        return paragraph(self._text_pixels(), block.previous(), code_number(block), blank=blank)

    def space_below(self) -> int:
        """Room for the card's lower edge, or for the line under the last line's text."""
        return CODE_PADDING if code_number(self.document().lastBlock()) else LINE_PIXELS

    def wanted_height(self) -> int:
        """While the reply is written, a withdrawn draft does not pull up what is below."""
        self._tallest = max(self._tallest, super().wanted_height()) if self._writing else 0
        return self._tallest or super().wanted_height()

    def restyle(self) -> None:
        """Code has a font of its own, which follows the view's in size."""
        super().restyle()
        self._painter.forget_places()
        look = code_look(self._text_pixels())
        cursor = QTextCursor(self.document())
        block = self.document().begin()
        while block.isValid():
            if code_number(block):
                cursor.setPosition(block.position())
                cursor.movePosition(
                    QTextCursor.MoveOperation.EndOfBlock, QTextCursor.MoveMode.KeepAnchor
                )
                cursor.mergeCharFormat(look)
            block = block.next()

    def _repaint_from(self, offset: int) -> None:
        """Repaint everything below: a card's edge lies outside what its text needs repainted."""
        box = self.document().documentLayout().blockBoundingRect(self.document().findBlock(offset))
        top = int(box.top()) - CODE_PADDING - GAP
        self.viewport().update(0, top, self.viewport().width(), self.viewport().height() - top)

    def _take(self, text: str, owner: int) -> None:
        self._parts.append(text)
        self._write(self._reader.feed(text, owner))

    def _end(self) -> None:
        self._write(self._reader.finish())
        self._writing = False

    def _write(self, pieces: Iterable[Piece]) -> None:
        for piece in pieces:
            start = self._insert(piece, self._look(piece.block))
            self._runs.wrote(piece.owner, start, self._pen.position())

    def _show_draft(self, text: str) -> None:
        self._painter.draft_start = self._pen.position()
        for piece in self._reader.fork().feed(text, self._runs.newest):
            look = self._look(piece.block)
            look.setForeground(self._draft_color)
            self._insert(piece, look)

    def _withdraw_draft(self) -> None:
        if self._painter.draft_start is None:
            return
        self._pen.setPosition(self._painter.draft_start)
        self._pen.movePosition(QTextCursor.MoveOperation.End, QTextCursor.MoveMode.KeepAnchor)
        self._pen.removeSelectedText()
        self._painter.draft_start = None

    def _insert(self, piece: Piece, look: QTextCharFormat) -> int:
        """Put a piece at the end; returns where its text begins."""
        pixels = self._text_pixels()
        for left in range(piece.breaks, 0, -1):
            made = paragraph(pixels, self._pen.block(), piece.block, blank=left > 1)
            self._pen.insertBlock(made, look)
        if not self._pen.position():
            self._pen.setBlockFormat(paragraph(pixels, None, piece.block))
            self._leave_above(CODE_PADDING if piece.block else 0)
        start = self._pen.position()
        self._pen.insertText(piece.text, look)
        return start

    def _leave_above(self, pixels: int) -> None:
        # Qt gives a document's first paragraph no margin above it.
        frame = self.document().rootFrame()
        made = frame.frameFormat()
        made.setTopMargin(pixels)
        frame.setFrameFormat(made)

    def _look(self, code: int) -> QTextCharFormat:
        return code_look(self._text_pixels()) if code else QTextCharFormat()

    def _text_pixels(self) -> int:
        return self.fontInfo().pixelSize()

    def viewportEvent(self, event: QEvent) -> bool:
        """Tell about the token under the pointer."""
        if not isinstance(event, QHelpEvent):
            return super().viewportEvent(event)
        facts = self.token_at(event.pos())
        if facts is None:
            QToolTip.hideText()
        else:
            QToolTip.showText(event.globalPos(), facts.sentence(), self.viewport())
        return True

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint what lies behind the text, then the text."""
        painter = QPainter(self.viewport())
        self._painter.paint(painter, QRectF(event.rect()))
        painter.end()
        super().paintEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """At another width the reply may need less height."""
        if event.size().width() != event.oldSize().width():
            self._tallest = 0
            self._painter.forget_places()
        super().resizeEvent(event)
