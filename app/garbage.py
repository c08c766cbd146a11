"""Python's cyclic garbage, collected on the GUI thread only.

Python collects on whatever thread happens to allocate; a QObject found in a cycle would then be
destroyed on the engine thread, with its timers and children, which Qt does not survive.
"""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer

if TYPE_CHECKING:
    from collections.abc import Iterator

_INTERVAL_MILLISECONDS = 1000


@contextmanager
def collected_here() -> Iterator[None]:
    """While it lasts, nothing but this thread's event loop collects; on leaving, the rest is."""
    gc.collect()
    gc.disable()
    owner = QObject()
    timer = QTimer(owner)
    timer.timeout.connect(_collect_what_is_due)
    timer.start(_INTERVAL_MILLISECONDS)
    try:
        yield
    finally:
        timer.stop()
        gc.collect()
        gc.enable()


def _collect_what_is_due() -> None:
    """The oldest generation that has passed its threshold, as Python's own collector would."""
    due = [
        generation
        for generation, (count, threshold) in enumerate(
            zip(gc.get_count(), gc.get_threshold(), strict=True)
        )
        if count > threshold
    ]
    if due:
        gc.collect(due[-1])
