"""What goes on before a reply has a first word, said once that takes a moment."""

from __future__ import annotations

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QLabel

_PAUSE_MS = 300  # Words that come and go within it would only flicker.


class WaitingLine(QLabel):
    """A line that stands where the reply is going to; hidden while there is nothing to wait for."""

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("kind", "muted")
        self.setWordWrap(True)
        self._pause = QTimer(self)
        self._pause.setSingleShot(True)
        self._pause.setInterval(_PAUSE_MS)
        self._pause.timeout.connect(self.show)
        self.hide()

    def begin(self) -> None:
        """Something has been asked."""
        self.setText("Reading the conversation…")
        self._pause.start()

    def show_progress(self, done: int, total: int) -> None:
        """So many tokens of the conversation have been read."""
        self.setText(f"Reading the conversation: {done:,} of {total:,} tokens")

    def end(self) -> None:
        """There is a reply, or there will be none."""
        self._pause.stop()
        self.hide()
