"""The texts that a target wrote, on disk: a shard at a time, each whole or not at all."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.errors import EngineError
from engine.training.examples import Text
from engine.training.files import replace_file, write_through

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from engine.training.files import Write

_FORM = 1
"""Counts the forms that these files have had."""

_PATTERN = "texts-*.jsonl"


@dataclass(frozen=True, slots=True)
class StoredText:
    """A text with its origin: the key of its prompt, and which writing of it and which turn it is.

    turn 1 continues turn 0, in the same conversation or in a new one.
    """

    prompt: str
    writing: int
    turn: int
    text: Text

    @property
    def place(self) -> tuple[str, int, int]:
        """What no two texts of a store have in common."""
        return self.prompt, self.writing, self.turn

    @property
    def reply(self) -> tuple[int, ...]:
        """The reply's ids."""
        return self.text.ids[self.text.first_reply :]


class TextStore:
    """A folder of shards; each is tied to the target that wrote it.

    target: its fingerprint.
    """

    def __init__(self, folder: Path, target: str, *, write: Write = write_through) -> None:
        self._folder = folder
        self._target = target
        self._write = write

    def read(self) -> list[StoredText]:
        """All texts, in the order in which they were written.

        Raises:
            EngineError: a shard is damaged, or another model wrote it; no file is changed.
        """
        return [text for path in self._paths() for text in self._shard(path)]

    def add(self, texts: Sequence[StoredText]) -> None:
        """Keep more texts.

        Raises:
            EngineError: they can't be written; those before are as they were.
        """
        paths = self._paths()
        number = int(paths[-1].stem.partition("-")[2]) + 1 if paths else 0
        body = "".join(f"{json.dumps(_record(text))}\n" for text in texts).encode()
        head = {"form": _FORM, "target": self._target, "checksum": zlib.crc32(body)}
        content = json.dumps(head).encode() + b"\n" + body
        replace_file(self._folder / f"texts-{number:05}.jsonl", content, self._write)

    def _paths(self) -> list[Path]:
        return sorted(self._folder.glob(_PATTERN))

    def _shard(self, path: Path) -> Iterator[StoredText]:
        try:
            first, _, body = path.read_bytes().partition(b"\n")
            head = json.loads(first)
            sound = head["form"] == _FORM and head["checksum"] == zlib.crc32(body)
            target = str(head["target"])
        except (OSError, ValueError, KeyError, TypeError):
            sound, target, body = False, self._target, b""
        if target != self._target:
            raise EngineError(
                f"The texts in {self._folder} were written by another model. Choose another "
                "folder, or delete them."
            )
        if not sound:
            raise EngineError(
                f"{path} is damaged. Delete it, and its texts will be written anew; the other "
                "texts are kept."
            )
        for line in body.splitlines():
            yield _text(json.loads(line))


def _record(stored: StoredText) -> dict[str, Any]:
    return {
        "prompt": stored.prompt,
        "writing": stored.writing,
        "turn": stored.turn,
        "temperature": stored.text.temperature,
        "first_reply": stored.text.first_reply,
        "ids": stored.text.ids,
    }


def _text(record: dict[str, Any]) -> StoredText:
    text = Text(tuple(record["ids"]), record["first_reply"], record["temperature"])
    return StoredText(record["prompt"], record["writing"], record["turn"], text)
