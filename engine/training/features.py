"""The target's states on texts, computed once and kept in bounded disk space, shard by shard."""

# torch's and safetensors' own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import json
import time
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, overload

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from engine.errors import EngineError
from engine.training.examples import Example
from engine.training.files import replace_file, write_through
from engine.training.unpacking import unpacked_once

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable
    from pathlib import Path

    from engine.models.causal_lm import CausalLM
    from engine.training.examples import Text
    from engine.training.files import Write
    from engine.training.store import StoredText

_FORM = 2
"""Counts the forms that these files have had."""

_NOTE = "features"
_PATTERN = "features-*.safetensors"
_TEXTS_A_SHARD = 64
_ID_BYTES = 4
_FACT_BYTES = 256
"""More than what a text takes in a shard's header."""


def features(lm: CausalLM, text: Text, taps: Sequence[int]) -> Example:
    """A text with the target's states at the taps."""
    chunks = [chunk for chunk in lm.read(lm.new_memo(), text.ids, taps) if chunk.rows]
    hidden = {
        tap: torch.cat([chunk.hidden[tap] for chunk in chunks]).to("cpu", torch.bfloat16)
        for tap in taps
    }
    return Example(torch.tensor(text.ids), text.first_reply, hidden)


@dataclass(frozen=True, slots=True)
class Fact:
    """What is known of an example without reading it. length: of its ids."""

    prompt: str
    writing: int
    turn: int
    temperature: float
    length: int
    first_reply: int


@dataclass(frozen=True, slots=True)
class Reading:
    """How far reading has come. share: of the texts, or of the room for them."""

    texts: int
    tokens: int
    share: float
    tokens_per_second: float
    seconds_left: float | None


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
        self._folder = folder
        self._target = target
        self._taps = tuple(taps)
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
        shards = self._shards()
        kept = {(fact.prompt, fact.writing, fact.turn) for shard in shards for fact in shard.facts}
        missing = [each for each in texts if (each.prompt, each.writing, each.turn) not in kept]
        used = sum(shard.path.stat().st_size for shard in shards)
        reader, facts, examples = unpacked_once(lm), list[Fact](), list[Example]()
        pace = _Pace(sum(len(each.text.ids) for each in missing), self._most_bytes - used)
        for stored in missing:
            example = features(reader, stored.text, self._taps)
            if not pace.takes(example):
                break
            facts.append(_fact(stored))
            examples.append(example)
            told(pace.reading())
            if len(facts) == _TEXTS_A_SHARD or stop.is_set():
                self._add(facts, examples)
                facts, examples = [], []
            if stop.is_set():
                break
        if facts:
            self._add(facts, examples)

    def examples(self) -> Examples:
        """All that there is.

        Raises:
            EngineError: a shard is damaged or another's.
        """
        return Examples(self._shards(), self._taps)

    def _add(self, facts: Sequence[Fact], examples: Sequence[Example]) -> None:
        note = {
            "form": _FORM,
            "target": self._target,
            "taps": self._taps,
            "facts": [astuple(fact) for fact in facts],
        }
        tensors = {"ids": torch.cat([example.ids.to(torch.int32) for example in examples])}
        for tap in self._taps:
            tensors[_name(tap)] = torch.cat([example.hidden[tap] for example in examples])
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
            ("other layers", taps.issuperset(self._taps)),
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


class _Pace:
    """Counts what is read against what there is to read and the room for it."""

    def __init__(self, tokens: int, room: int) -> None:
        self._wanted = tokens
        self._room = room
        self._texts = self._tokens = self._used = 0
        self._start = time.monotonic()

    def takes(self, example: Example) -> bool:
        """Count an example in, unless there is no room for it."""
        states = sum(state.nbytes for state in example.hidden.values())
        size = states + _ID_BYTES * len(example.ids) + _FACT_BYTES
        if self._used + size > self._room:
            return False
        self._used += size
        self._texts += 1
        self._tokens += len(example.ids)
        return True

    def reading(self) -> Reading:
        """How far that is."""
        share = max(self._tokens / self._wanted, self._used / self._room)
        seconds = max(time.monotonic() - self._start, 1e-9)
        left = seconds * (1 / share - 1) if share else None
        return Reading(self._texts, self._tokens, share, self._tokens / seconds, left)


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
