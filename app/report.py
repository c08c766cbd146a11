"""What a report of a problem or a crash says: versions, the machine, settings, the log's end.

Nothing that was typed: no conversation, no system prompt, no stop text. The home folder, whose name
is often a person's, is written "~".
"""

from __future__ import annotations

import json
import os
import platform
import sys
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
from PySide6.QtCore import qVersion

from app.settings import SettingsStore
from engine import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.crash_watch import Crash
    from app.engine_host import LoadedTarget

_PACKAGES = ("PySide6-Essentials", "pyqtgraph", "torch", "transformers", "tokenizers", "numpy")
_TYPED = ("system_prompt", "stop_texts")
_LOG_LINES = 200
_KEPT_CRASHES = 5
_GIB = 2**30


def problem_report(target: LoadedTarget | None, settings: Path, log: Path) -> str:
    """Everything that a report needs, to be read before it is shared."""
    parts = [
        ("Draftlight", _versions()),
        ("Machine", _machine(target)),
        ("Settings", _settings(settings)),
        *[(path.name, path.read_text("utf-8", "replace")) for path in _crashes(log.parent)[-1:]],
        (f"The last lines of {log.name}", log_tail(log)),
    ]
    return _assembled(parts)


def keep_crash_report(crash: Crash, log: Path) -> str:
    """Write down beside the log how the last run crashed; returns what was written.

    log: already begun by this run, so that its end shows how the last one ended.
    """
    parts = [
        ("Draftlight ended unexpectedly", f"While {crash.doing or 'doing nothing in particular'}."),
        ("Versions", _versions()),
        ("Machine", _machine(None)),
        ("Where each thread was", crash.trace or "Not known: it was ended from outside."),
        (f"The last lines of {log.name}", log_tail(log)),
    ]
    text = _assembled(parts)
    with suppress(OSError):
        now = datetime.now().strftime("%Y-%m-%d %H-%M-%S")
        (log.parent / f"crash {now}.txt").write_text(text, encoding="utf-8")
        for old in _crashes(log.parent)[:-_KEPT_CRASHES]:
            old.unlink()
    return text


def log_tail(log: Path) -> str:
    """The end of the log, of the older one too where the newest has just begun."""
    lines: list[str] = []
    for path in (log.with_name(log.name + ".1"), log):
        with suppress(OSError):
            lines += path.read_text("utf-8", "replace").splitlines()
    return "\n".join(lines[-_LOG_LINES:]) or "There is no log."


def _versions() -> str:
    kind = "packaged" if getattr(sys, "frozen", False) else "from a checkout"
    lines = [f"Draftlight {__version__}, {kind}", f"Python {platform.python_version()}"]
    for name in _PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            lines.append(f"{name} {metadata.version(name)}")
    return "\n".join([*lines, f"Qt {qVersion()}"])


def _machine(target: LoadedTarget | None) -> str:
    memory = psutil.virtual_memory()
    lines = [
        platform.platform(),
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} processors",
        f"{memory.total / _GIB:.1f} GiB of memory, {memory.available / _GIB:.1f} GiB free",
    ]
    if target is not None:
        found = (f"{d.label}, {d.memory_bytes / _GIB:.1f} GiB" for d in target.devices)
        lines += [*found, f"{target.name} runs on {target.device}, {target.dtype}"]
    return "\n".join(lines)


def _settings(path: Path) -> str:
    values = asdict(SettingsStore(path).load())
    values["sampling"] = {
        name: value for name, value in values["sampling"].items() if name not in _TYPED
    }
    return "\n".join(f"{name} = {json.dumps(value)}" for name, value in values.items())


def _crashes(folder: Path) -> list[Path]:
    """The crash reports that are kept, the newest last."""
    return sorted(folder.glob("crash *.txt"))


def _assembled(parts: Sequence[tuple[str, str]]) -> str:
    text = "\n\n".join(f"== {heading} ==\n{content.strip()}" for heading, content in parts)
    return text.replace(str(Path.home()), "~") + "\n"
