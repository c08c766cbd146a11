"""Where learning stands, in one file: weights and moments as tensors, the rest as JSON beside them.

A checkpoint belongs to a target, a kind of drafter and a recipe, and is refused by others.
"""

# torch's and safetensors' own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from engine.errors import EngineError
from engine.training.files import replace_file, write_through

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from torch import Tensor

    from engine.training.files import Write

_NOTE = "learning"
_IDS = "drafted ids"


@dataclass(frozen=True, slots=True)
class Point:
    """How far learning had come at some time: tokens learnt from, and what chains would gain."""

    seconds: float
    tokens: int
    loss: float
    length: float
    survival: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Standing:
    """step: steps done. tokens: of replies, learnt from. seconds: that it took.

    ids: those that are drafted, (n,).
    """

    step: int
    tokens: int
    seconds: float
    curve: tuple[Point, ...]
    ids: Tensor = field(repr=False, compare=False)
    tensors: Mapping[str, Tensor] = field(repr=False, compare=False)


class Checkpoint:
    """A file. belongs: what it is tied to, for JSON; by words that a sentence can use."""

    def __init__(
        self, path: Path, belongs: Mapping[str, Any], *, write: Write = write_through
    ) -> None:
        self.path = path
        self._belongs: dict[str, Any] = json.loads(json.dumps(dict(belongs)))
        self._write = write

    def keep(self, standing: Standing) -> None:
        """Put this in the place of what was there.

        Raises:
            EngineError: it can't be written; what was there is left.
        """
        held_by_name = {**standing.tensors, _IDS: standing.ids}
        tensors = {name: held.cpu().contiguous() for name, held in held_by_name.items()}
        note = {
            "belongs": self._belongs,
            "step": standing.step,
            "tokens": standing.tokens,
            "seconds": standing.seconds,
            "curve": [
                [point.seconds, point.tokens, point.loss, point.length, list(point.survival)]
                for point in standing.curve
            ],
            "checksum": _checksum(tensors),
        }
        content = save(tensors, metadata={_NOTE: json.dumps(note)})
        replace_file(self.path, content, self._write)

    def read(self) -> Standing | None:
        """What was kept; None where nothing was.

        Raises:
            EngineError: it is damaged, or belongs to other learning.
        """
        if not self.path.exists():
            return None
        try:
            with safe_open(self.path, framework="pt") as file:
                note = json.loads(file.metadata()[_NOTE])
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            if note["checksum"] != _checksum(tensors):
                raise ValueError
            belongs = dict(note["belongs"])
            standing = Standing(
                step=int(note["step"]),
                tokens=int(note["tokens"]),
                seconds=float(note["seconds"]),
                curve=tuple(_point(*point) for point in note["curve"]),
                ids=tensors.pop(_IDS),
                tensors=tensors,
            )
        except (SafetensorError, OSError, ValueError, KeyError, TypeError) as error:
            raise EngineError(
                f"The checkpoint {self.path} is damaged. Delete it to learn anew; the texts beside "
                "it are kept."
            ) from error
        self._check(belongs)
        return standing

    def _check(self, belongs: Mapping[str, Any]) -> None:
        for word, ours in self._belongs.items():
            theirs = belongs.get(word)
            if theirs != ours:
                raise EngineError(
                    f"The checkpoint {self.path} belongs to other learning: its {word} is "
                    f"{theirs}, not {ours}. Choose another folder, or delete it to learn anew."
                )


def _point(
    seconds: float, tokens: int, loss: float, length: float, survival: Sequence[float]
) -> Point:
    return Point(seconds, tokens, loss, length, tuple(survival))


def _checksum(tensors: Mapping[str, Tensor]) -> int:
    checksum = 0
    for name in sorted(tensors):
        checksum = zlib.crc32(tensors[name].numpy().tobytes(), checksum)
    return checksum
