"""Loading a target: one at a time, with progress, given up at once when the user says so."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from app.background import Background
from app.errors import failure_of
from engine.errors import LoadCancelled

if TYPE_CHECKING:
    from app.engine_thread import EngineThread

logger = logging.getLogger(__name__)


class TargetLoader(QObject):
    """Says of each load: started, progressed, loaded or failed unless it was given up, ended."""

    started = Signal()
    progressed = Signal(str, object)
    loaded = Signal(object)
    failed = Signal(object)
    ended = Signal()

    def __init__(self, engine: EngineThread, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._engine = engine
        self._tasks = Background()
        self._turn = asyncio.Lock()

    def load(self, target: str, device: str) -> None:
        """Load a target ("default", a folder or a GGUF file) onto a device ("auto" or an id).

        A load in progress is given up for it.
        """
        self.cancel()
        self._tasks.start(self._load(target, device))

    def cancel(self) -> None:
        """Keep the target there is."""
        self._engine.cancel_load()

    async def finish(self) -> None:
        """End a load in progress; the window is closing."""
        self.cancel()
        await self._tasks.finish()

    async def _load(self, target: str, device: str) -> None:
        async with self._turn:
            self.started.emit()
            try:
                loaded = await self._engine.load(
                    target, device=device, on_progress=self.progressed.emit
                )
            except LoadCancelled:
                logger.info("Loading %s was cancelled.", target)
            except Exception as error:
                self.failed.emit(failure_of(error))
            else:
                self.loaded.emit(loaded)
            self.ended.emit()
