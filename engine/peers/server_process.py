"""A server program of our own: started on a free local port, asked over HTTP, always ended."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException
from typing import IO, TYPE_CHECKING

from engine.peers.peer import PeerError

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

HOST = "127.0.0.1"
_OK = 200
_POLL_SECONDS = 0.05
_HEALTH_SECONDS = 5.0
_GRACE_SECONDS = 5.0


class ServerProcess:
    """A server that runs. Plain HTTP to this machine: no proxy, no redirect leads elsewhere."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, log: IO[bytes]) -> None:
        self._process = process
        self._port = port
        self._log = log

    def wait_until_ready(self, deadline_seconds: float) -> None:
        """Ask for its health until it is well.

        Raises:
            PeerError: it ended, or the time is up.
        """
        give_up_at = time.monotonic() + deadline_seconds
        while time.monotonic() < give_up_at:
            if self._process.poll() is not None:
                raise PeerError(f"the server ended before it was ready{self._last_words()}.")
            try:
                status, _ = self._ask("GET", "/health", None, _HEALTH_SECONDS)
            except (OSError, HTTPException):
                status = None
            if status == _OK:
                return
            time.sleep(_POLL_SECONDS)
        raise PeerError(f"the server was not ready within {deadline_seconds:g} seconds.")

    def post(self, path: str, body: object, deadline_seconds: float) -> object:
        """Send JSON and return the JSON that comes back.

        Raises:
            PeerError: it died, took too long, refused, or answered something else.
        """
        try:
            status, content = self._ask("POST", path, json.dumps(body), deadline_seconds)
        except TimeoutError as error:
            raise PeerError(f"no answer came within {deadline_seconds:g} seconds.") from error
        except (OSError, HTTPException) as error:
            raise PeerError(f"the server went away{self._last_words()}.") from error
        if status != _OK:
            reason = " ".join(content[:200].decode("utf-8", "replace").split())
            raise PeerError(f"the server refused with status {status} ({reason}).")
        try:
            return json.loads(content)
        except ValueError as error:
            raise PeerError("the server's answer is no JSON.") from error

    def _ask(self, method: str, path: str, body: str | None, seconds: float) -> tuple[int, bytes]:
        connection = HTTPConnection(HOST, self._port, timeout=seconds)
        try:
            connection.request(method, path, body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def _last_words(self) -> str:
        """The last line that it printed, to be put into a sentence."""
        self._log.seek(0)
        lines = self._log.read().decode("utf-8", "replace").split("\n")
        said = [line.strip() for line in lines if line.strip()]
        return f" ({said[-1].rstrip('.')})" if said else ""


@contextmanager
def running(command: Sequence[str], *, ready_seconds: float) -> Generator[ServerProcess]:
    """The program of `command`, told where to listen, once it is ready; ended whatever happens.

    Raises:
        PeerError: it cannot be started, ends, or is not ready in time.
    """
    port = _free_port()
    with tempfile.TemporaryFile() as log:
        try:
            process = subprocess.Popen(
                [*command, "--host", HOST, "--port", str(port)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=_environment(),
            )
        except OSError as error:
            raise PeerError(f"{command[0]} can't be started: {error.strerror}.") from error
        try:
            server = ServerProcess(process, port, log)
            server.wait_until_ready(ready_seconds)
            yield server
        finally:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ask it to end, and end it if it does not; also when one is interrupted meanwhile."""
    process.terminate()
    try:
        process.wait(_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        pass
    finally:
        process.kill()
        process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _environment() -> dict[str, str]:
    """Ours, without the variables by which llama.cpp takes options: only the command counts."""
    return {name: value for name, value in os.environ.items() if not name.startswith("LLAMA_ARG_")}
