"""The target's states on texts, computed once and kept in bounded disk space, shard by shard."""

# torch's and safetensors' own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from itertools import accumulate, takewhile
from typing import TYPE_CHECKING, Any, overload

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from engine.errors import EngineError
from engine.training.examples import Example
from engine.training.files import replace_file, write_through
from engine.training.reading_pace import Pace, Room
from engine.training.store import StoredText
from engine.training.unpacking import unpacked_once

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable
    from pathlib import Path

    from engine.models.causal_lm import CausalLM
    from engine.training.examples import Text
    from engine.training.files import Write
    from engine.training.reading_pace import Reading

_FORM = 2
"""Counts the forms that these files have had."""

_NOTE = "features"
_PATTERN = "features-*.safetensors"
_TEXTS_A_SHARD = 64


def features(lm: CausalLM, text: Text, taps: Sequence[int]) -> Example:
    """A text with the target's states at the taps."""
    chunks = [chunk for chunk in lm.read(lm.new_memo(), text.ids, taps) if chunk.rows]
    hidden = {
        tap: torch.cat([chunk.hidden[tap] for chunk in chunks]).to("cpu", torch.bfloat16)
        for tap in taps
    }
    return Example.of(text, hidden)


@dataclass(frozen=True, slots=True)
class Fact:
    """What is known of an example without reading it. length: of its ids."""

    prompt: str
    writing: int
    turn: int
    temperature: float
    length: int
    first_reply: int

    @property
    def place(self) -> tuple[str, int, int]:
        """As StoredText.place."""
        return self.prompt, self.writing, self.turn


class FeatureStore:
    """A folder of shards, tied to the target and to what they hold of it.

    target: its fingerprint. most_bytes: what all shards may take together.
    """

    def __init__(
        self,
        folder: Path,
        target: str,
        taps: Sequence[int],
        *,
        most_bytes: int,
        write: Write = write_through,
    ) -> None:
        self.taps = tuple(taps)
        self._folder = folder
        self._target = target
        self._most_bytes = most_bytes
        self._write = write

    def fill(
        self,
        lm: CausalLM,
        texts: Sequence[StoredText],
        *,
        told: Callable[[Reading], None] = lambda reading: None,
        stop: threading.Event,
    ) -> None:
        """Have the target read the texts that the store lacks, from the first on, while they fit.

        Raises:
            EngineError: a shard is damaged or another's, or can't be written; the others are kept.
        """
        places, room = self._places(), self._room()
        missing = [each for each in texts if each.place not in places]
        if not missing:
            return
        reader, shard = unpacked_once(lm), list[tuple[StoredText, Example]]()
        pace = Pace(sum(len(each.text.ids) for each in missing), room)
        for stored in missing:
            example = features(reader, stored.text, self.taps)
            if not room.takes(example):
                break
            shard.append((stored, example))
            told(pace.reading_after(example))
            if len(shard) == _TEXTS_A_SHARD or stop.is_set():
                self._keep(shard)
                shard = []
            if stop.is_set():
                break
        if shard:
            self._keep(shard)

    def add(self, texts: Sequence[tuple[StoredText, Example]]) -> None:
        """Keep the states of texts that the store lacks, from the first on, while they fit.

        Raises:
            EngineError: a shard is damaged or another's, or can't be written; the others are kept.
        """
        places, room = self._places(), self._room()
        missing = [each for each in texts if each[0].place not in places]
        fitting = list(takewhile(lambda each: room.takes(each[1]), missing))
        for first in range(0, len(fitting), _TEXTS_A_SHARD):
            self._keep(fitting[first : first + _TEXTS_A_SHARD])

    def examples(self) -> Examples:
        """All that there is.

        Raises:
            EngineError: a shard is damaged or another's.
        """
        return Examples(self._shards(), self.taps)

    def _places(self) -> set[tuple[str, int, int]]:
        """Of the texts whose states there are; see StoredText."""
        return {fact.place for shard in self._shards() for fact in shard.facts}

    def _room(self) -> Room:
        used = sum(path.stat().st_size for path in self._paths())
        return Room(self._most_bytes - used)

    def _keep(self, texts: Sequence[tuple[StoredText, Example]]) -> None:
        """Write a shard."""
        note = {
            "form": _FORM,
            "target": self._target,
            "taps": self.taps,
            "facts": [astuple(_fact(stored)) for stored, _ in texts],
        }
        tensors = {"ids": torch.cat([example.ids.to(torch.int32) for _, example in texts])}
        for tap in self.taps:
            tensors[_name(tap)] = torch.cat([example.hidden[tap] for _, example in texts])
        paths = self._paths()
        number = int(paths[-1].stem.partition("-")[2]) + 1 if paths else 0
        path = self._folder / f"features-{number:05}.safetensors"
        replace_file(path, save(tensors, metadata={_NOTE: json.dumps(note)}), self._write)

    def _paths(self) -> list[Path]:
        return sorted(self._folder.glob(_PATTERN))

    def _shards(self) -> list[_Shard]:
        return [self._shard(path) for path in self._paths()]

    def _shard(self, path: Path) -> _Shard:
        try:
            with safe_open(path, framework="pt") as file:
                note = json.loads(file.metadata()[_NOTE])
            facts = tuple(Fact(*fact) for fact in note["facts"])
            form, target, taps = note["form"], note["target"], set(note["taps"])
        except (SafetensorError, OSError, ValueError, KeyError, TypeError) as error:
            raise EngineError(
                f"{path} is damaged. Delete it, and it will be computed anew; the others are kept."
            ) from error
        for owner, is_own in (
            ("another model", target == self._target),
            ("another version of this program", form == _FORM),
            ("other layers", taps.issuperset(self.taps)),
        ):
            if not is_own:
                raise EngineError(
                    f"The features in {self._folder} are of {owner}. Choose another folder, or "
                    "delete them; they can be computed anew."
                )
        return _Shard(path, facts)


class Examples(Sequence[Example]):
    """Examples on disk, each read when it is asked for. facts: of each of them."""

    def __init__(self, shards: Sequence[_Shard], taps: Sequence[int]) -> None:
        self._shards = shards
        self._taps = taps
        self._files: dict[Path, Any] = {}
        self._ends = list(accumulate(len(shard.facts) for shard in shards))
        self.facts = [fact for shard in shards for fact in shard.facts]

    @property
    def lengths(self) -> list[int]:
        """How many ids each has."""
        return [fact.length for fact in self.facts]

    def __len__(self) -> int:
        return len(self.facts)

    @overload
    def __getitem__(self, place: int, /) -> Example: ...
    @overload
    def __getitem__(self, place: slice, /) -> list[Example]: ...

    def __getitem__(self, place: int | slice, /) -> Example | list[Example]:
        """One of them."""
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        place = range(len(self))[place]
        number = bisect_right(self._ends, place)
        shard = self._shards[number]
        within = place - (self._ends[number - 1] if number else 0)
        first = sum(fact.length for fact in shard.facts[:within])
        fact = shard.facts[within]
        ids = slice(first, first + fact.length)
        # Each of those before has a row less than ids.
        rows = slice(first - within, first - within + fact.length - 1)
        file = self._file(shard.path)
        hidden = {tap: file.get_slice(_name(tap))[rows] for tap in self._taps}
        return Example(file.get_slice("ids")[ids].long(), fact.first_reply, hidden)

    def _file(self, path: Path) -> Any:  # noqa: ANN401 - safetensors has no annotations
        if path not in self._files:
            self._files[path] = safe_open(path, framework="pt")
        return self._files[path]


@dataclass(frozen=True, slots=True)
class _Shard:
    path: Path
    facts: tuple[Fact, ...]


def _fact(stored: StoredText) -> Fact:
    text = stored.text
    return Fact(
        stored.prompt,
        stored.writing,
        stored.turn,
        text.temperature,
        len(text.ids),
        text.first_reply,
    )


def _name(tap: int) -> str:
    return f"tap.{tap}"
