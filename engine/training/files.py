"""Files that are written whole or not at all, whatever ends the program."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from typing import TYPE_CHECKING

from engine.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Write = Callable[[Path, bytes], None]


def write_through(path: Path, content: bytes) -> None:
    """Write a file, and see it on the disk."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def replace_file(path: Path, content: bytes, write: Write = write_through) -> None:
    """Put a file in the place of an older one, which stays if this fails.

    Raises:
        EngineError: it can't be written; the sentence says why.
    """
    part = path.with_name(f"{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(part, content)
        os.replace(part, path)
    except OSError as error:
        with suppress(OSError):
            part.unlink()
        raise EngineError(_sentence(path, len(content), error)) from error


def _sentence(path: Path, size: int, error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return (
            f"The disk is full: {path.name} needs {size / 1e6:,.0f} MB in {path.parent}. Make room "
            "and start again; what was learnt up to the last checkpoint is kept."
        )
    return f"{path.name} can't be written to {path.parent}: {error.strerror or error}."
