"""Numbers on a command line, each refused with a sentence where it makes no sense."""

from __future__ import annotations

from argparse import ArgumentTypeError


def whole(text: str) -> int:
    """A whole number.

    Raises:
        ArgumentTypeError: it is none.
    """
    try:
        return int(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is no whole number") from None


def natural(text: str) -> int:
    """A whole number, at least 0.

    Raises:
        ArgumentTypeError: it is none.
    """
    number = whole(text)
    if number < 0:
        raise ArgumentTypeError(f"{text} is below 0")
    return number


def positive(text: str) -> int:
    """A whole number, at least 1.

    Raises:
        ArgumentTypeError: it is none.
    """
    number = whole(text)
    if number < 1:
        raise ArgumentTypeError(f"{text} is not at least 1")
    return number
