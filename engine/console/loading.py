"""From a command's options to a loaded target, and what is said of it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from engine.console.printing import StatusLine

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from engine.engine import Engine


def load(options: argparse.Namespace) -> Engine:
    """The target, with its progress on a terminal.

    Raises:
        EngineError: the target, device or dtype cannot be used.
    """
    from engine.engine import Engine

    with StatusLine(sys.stderr) as line:
        return Engine.load(
            options.target,
            device=options.device,
            dtype=options.dtype,
            threads=options.threads,
            progress=lambda text, share: line.say(f"{text} …"),
        )


def tell(engine: Engine, drafters: Sequence[str]) -> None:
    """What to know of the target and of these drafters here."""
    for note in engine.notes:
        print(note, file=sys.stderr)
    for choice in engine.drafter_choices():
        if choice.note and choice.spec in drafters:
            print(f"{choice.label}: {choice.note}.", file=sys.stderr)
