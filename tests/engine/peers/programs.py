"""A fake server program, and what it noted of how it was run."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

FAKE = Path(__file__).with_name("fake_llama_server.py")


class Program:
    """An executable file that behaves as told."""

    def __init__(self, folder: Path, behaviour: str = "well") -> None:
        self.path = folder / "llama-server"
        self._folder = folder
        self.path.write_text(
            f'#!/bin/sh\nexec "{sys.executable}" -I "{FAKE}" "{folder}" "{behaviour}" "$@"\n',
            encoding="utf-8",
        )
        self.path.chmod(0o755)

    def noted(self, kind: str) -> list:
        path = self._folder / kind
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        return [json.loads(line) for line in lines]

    def is_running(self) -> bool:
        return any(_is_alive(process) for process in self.noted("processes"))


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
