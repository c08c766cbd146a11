"""What might end the app against its will is noted on disk first, so that the next start knows."""

from __future__ import annotations

import faulthandler
import json
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from app.engine_host import LoadEngine, Progress
    from engine.engine import Engine


@dataclass(frozen=True, slots=True)
class Crash:
    """How the last run ended.

    doing: such as "opening /models/a.gguf"; empty if nothing in particular. trace: where each
    thread was, if the interpreter still came to write it down.
    """

    doing: str
    trace: str


class CrashWatch:
    """Keeps a note and a trace in a folder. A run that ends well takes the note away."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._note = folder / "running.json"
        self._trace = folder / "crash-trace.txt"
        self._doings: list[str] = []
        self._turn = threading.Lock()
        self._trace_file: IO[str] | None = None

    def begin(self) -> Crash | None:
        """How the last run crashed, None if it did not; from here on this run is watched.

        A run that was killed while it was doing nothing in particular did not crash.
        """
        crash = Crash(self._left_behind(), _read(self._trace).strip())
        crashed = self._note.exists() and bool(crash.doing or crash.trace)
        self._write()
        with suppress(OSError):
            self._trace_file = self._trace.open("w", encoding="utf-8")
            faulthandler.enable(self._trace_file)
        return crash if crashed else None

    @contextmanager
    def run(self) -> Generator[Crash | None]:
        """This run from its beginning to an end that is not a crash, be it by an exception."""
        crash = self.begin()
        try:
            yield crash
        finally:
            self.end()

    def starts(self, doing: str) -> None:
        """Something is done from now on that has been known to bring programs down."""
        with self._turn:
            self._doings.append(doing)
            self._write()

    def ends(self, doing: str) -> None:
        """It is over; nothing to do if it was not going on."""
        with self._turn, suppress(ValueError):
            self._doings.remove(doing)
            self._write()

    @contextmanager
    def during(self, doing: str) -> Generator[None]:
        """Note something for as long as it lasts."""
        self.starts(doing)
        try:
            yield
        finally:
            self.ends(doing)

    def end(self) -> None:
        """This run ends well."""
        faulthandler.disable()
        if self._trace_file is not None:
            self._trace_file.close()
        for path in (self._note, self._trace):
            with suppress(OSError):
                path.unlink(missing_ok=True)

    def _left_behind(self) -> str:
        try:
            doing = json.loads(_read(self._note))["doing"]
        except (ValueError, KeyError, TypeError):
            return ""
        return doing if isinstance(doing, str) else ""

    def _write(self) -> None:
        with suppress(OSError):  # A folder that can't be written to must not keep anyone waiting.
            self._folder.mkdir(parents=True, exist_ok=True)
            note = json.dumps({"doing": " and ".join(self._doings)})
            self._note.write_text(note, encoding="utf-8")


def watched(load: LoadEngine, watch: CrashWatch) -> LoadEngine:
    """Loading as before, under the eyes of the watch."""

    def load_watched(
        target: str, *, device: str, progress: Progress, stop: threading.Event
    ) -> Engine:
        with watch.during(f"opening {target}"):
            return load(target, device=device, progress=progress, stop=stop)

    return load_watched


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
