"""The paragraphs of a reply: how prose and code stand, and which code block one belongs to."""

from __future__ import annotations

from PySide6.QtGui import QTextBlock, QTextBlockFormat, QTextCharFormat, QTextFormat

from app.text_view import set_line_pixels
from app.theme import CODE_PIXELS, TEXT_PIXELS, code_font

CODE_PADDING = 12
GAP = 12  # Between a code card and the text around it.
_BLANK_LINE_PIXELS = 10  # A blank line of prose only parts two paragraphs.
_CODE_NUMBER = QTextFormat.Property.UserProperty.value + 1


def code_number(block: QTextBlock) -> int:
    """Which code block a paragraph belongs to; 0 for prose, and for no paragraph at all."""
    return block.blockFormat().intProperty(_CODE_NUMBER) if block.isValid() else 0


def paragraph(
    text_pixels: int, above: QTextBlock | None, code: int, *, blank: bool = False
) -> QTextBlockFormat:
    """The format of a paragraph below another, in the code block of this number or prose (0)."""
    made = QTextBlockFormat()
    made.setProperty(_CODE_NUMBER, code)
    if code:
        set_line_pixels(made, _code_pixels(text_pixels))
        made.setLeftMargin(CODE_PADDING)
        made.setRightMargin(CODE_PADDING)
    else:
        set_line_pixels(made, text_pixels, at_most=_BLANK_LINE_PIXELS if blank else None)
    code_above = code_number(above) if above is not None else 0
    if above is not None and above.isValid() and code != code_above:
        edges = bool(code) + bool(code_above)
        made.setTopMargin(edges * CODE_PADDING + GAP)
    return made


def code_look(text_pixels: int) -> QTextCharFormat:
    """The look of code beside prose of this size."""
    font = code_font()
    font.setPixelSize(_code_pixels(text_pixels))
    look = QTextCharFormat()
    look.setFont(font)
    return look


def _code_pixels(text_pixels: int) -> int:
    return round(text_pixels * CODE_PIXELS / TEXT_PIXELS)
