"""One Draftlight for each user: a later start hands its file to the first one, and ends."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from PySide6.QtCore import QLockFile, QObject, Signal
from PySide6.QtNetwork import QLocalServer, QLocalSocket

_WAIT_MS = 3000
_LOCK_MS = 100


class SingleInstance(QObject):
    """Whoever holds the lock in a folder of the user's is the first; a dead holder loses it."""

    handed_over = Signal(str)
    """A later start wants this file opened; empty if it brought none."""

    def __init__(self, folder: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._folder = folder
        self._lock = QLockFile(str(folder / "running.lock"))
        self._lock.setStaleLockTime(0)  # Never by its age: a window may stay open for weeks.
        name = f"draftlight-{hashlib.sha256(str(folder).encode()).hexdigest()[:16]}"
        # Where the system has a folder for it that others can't reach.
        self._name = str(Path(os.environ.get("XDG_RUNTIME_DIR", "")) / name)
        self._server = QLocalServer(self)
        self._server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        self._server.newConnection.connect(self._greet)

    def claim(self) -> bool:
        """Whether this start is the first, and so goes on; also where nothing can be locked."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            return True
        if not self._lock.tryLock(_LOCK_MS):
            return self._lock.error() is not QLockFile.LockError.LockFailedError
        QLocalServer.removeServer(self._name)  # Of one that crashed.
        self._server.listen(self._name)
        return True

    def hand_over(self, file: str) -> bool:
        """Tell the first start which file is wanted; whether it has heard."""
        socket = QLocalSocket()
        socket.connectToServer(self._name)
        if not socket.waitForConnected(_WAIT_MS):
            return False
        socket.write(file.encode())
        socket.disconnectFromServer()
        return (
            socket.state() is QLocalSocket.LocalSocketState.UnconnectedState
            or socket.waitForDisconnected(_WAIT_MS)
        )

    def release(self) -> None:
        """Let the next start be the first."""
        self._server.close()
        self._lock.unlock()

    def _greet(self) -> None:
        caller = self._server.nextPendingConnection()
        caller.setParent(self)
        caller.disconnected.connect(lambda: self._hear(caller))
        if caller.state() is QLocalSocket.LocalSocketState.UnconnectedState:
            self._hear(caller)  # It had gone before anybody could listen.

    def _hear(self, caller: QLocalSocket) -> None:
        self.handed_over.emit(bytes(caller.readAll().data()).decode(errors="replace"))
        caller.disconnected.disconnect()
        caller.deleteLater()
