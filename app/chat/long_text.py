"""Text that is too long to be laid out whole: how long in words, and how it begins."""

from __future__ import annotations

MOST_EDITED = 8_000
"""Characters; every key pressed lays the paragraph out anew."""
_MOST_SHOWN, _MOST_LINES = 4_000, 80
_BEGINNING, _FIRST_LINES = 1_200, 16


def size_of(text: str) -> str:
    """How long a text is, in words."""
    lines = text.count("\n") + (not text.endswith("\n"))
    return f"{lines:,} lines" if lines > 1 else f"{len(text):,} characters"


def beginning(text: str) -> str:
    """The whole text, or the beginning of one that is too long to be shown among others."""
    if len(text) <= _MOST_SHOWN and text.count("\n") < _MOST_LINES:
        return text
    lines = text[:_BEGINNING].split("\n")[:_FIRST_LINES]
    return "\n".join(lines).rstrip() + "…"
