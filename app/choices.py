"""The window's choices: every change is kept soon after it, and a file that takes none is told."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal

if TYPE_CHECKING:
    from app.settings import SettingsStore

_PAUSE_MS = 1000
_REFUSED = "Your choices cannot be kept for the next start: the settings file cannot be written."


class Choices(QObject):
    """Whoever made them answers `due` with `save`, and so brings what cannot be told one by one."""

    due = Signal()
    refused = Signal(str)

    def __init__(self, store: SettingsStore, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.now = store.load()
        self._store = store
        self._told = False
        self._pause = QTimer(self)
        self._pause.setSingleShot(True)
        self._pause.setInterval(_PAUSE_MS)
        self._pause.timeout.connect(self.due)

    def change(self, **changes: object) -> None:
        """Make other choices; changes: fields of Settings."""
        self.now = replace(self.now, **changes)
        self.note_change()

    def note_change(self) -> None:
        """Something changed that `save` is going to bring."""
        self._pause.start()

    def save(self, **changes: object) -> None:
        """Keep the choices at once."""
        self._pause.stop()
        self.now = replace(self.now, **changes)
        if not self._store.save(self.now) and not self._told:
            self._told = True
            self.refused.emit(_REFUSED)
