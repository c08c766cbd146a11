"""Prompts for training text: our own, written out or made from templates, and a user's."""

from __future__ import annotations

import hashlib
import json
import random
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, cast

from engine.benchmark import read_prompts
from engine.errors import EngineError
from engine.templates import Message

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_PROMPTS = Path(__file__).resolve().parents[2] / "resources" / "prompts"
TEMPLATES = _PROMPTS / "training.json"
WRITTEN_OUT = _PROMPTS / "training.jsonl"
REPLY = "<<reply>>"
"""In a turn: the target's reply to the one before; the turn then begins a new conversation."""

_PLACE = re.compile(r"<<([\^+]?)(?:(\w+)=)?(?!reply>>)(\w+|\d+\.\.\d+)>>")
_VOWELS = ("a", "e", "i", "o")
_SHARE_WITH_SYSTEM = 0.06
_MOST_TRIES = 40
"""Draws a prompt on average; kinds with few variants run dry."""


@dataclass(frozen=True)
class TrainingPrompt:
    """A conversation to be written.

    before: a system prompt and earlier turns, as they stand. turns: what the user says, one after
    another, each time the target has replied.
    """

    kind: str
    turns: tuple[str, ...]
    before: tuple[Message, ...] = ()

    @cached_property
    def key(self) -> str:
        """What tells it from others: a hash of its texts."""
        texts = [*(f"{turn.role}: {turn.content}" for turn in self.before), *self.turns]
        return hashlib.sha256("\0".join(texts).encode("utf-8", "replace")).hexdigest()[:16]


class Grammar:
    """Texts with places for other texts, drawn at random.

    <<name>> stands for one of a rule's texts, or for what was remembered under that name;
    <<x=name>> remembers it as x; <<2..9>> is a number; <<^name>> begins with a capital, <<+name>>
    with an article.
    """

    def __init__(self, rules: Mapping[str, Sequence[str | Sequence[str]]]) -> None:
        self._rules = rules

    def turns(self, rule: str, chance: random.Random) -> tuple[str, ...]:
        """A user's turns: one, or several where the rule gives a list."""
        drawn = chance.choice(self._rules[rule])
        remembered: dict[str, str] = {}
        texts = [drawn] if isinstance(drawn, str) else drawn
        return tuple(self._filled(text, chance, remembered) for text in texts)

    def _filled(self, text: str, chance: random.Random, remembered: dict[str, str]) -> str:
        def put(place: re.Match[str]) -> str:
            sign, name, source = place.groups()
            found = self._drawn(source, chance, remembered)
            if name is not None:
                remembered[name] = found
            if sign == "+":
                return f"an {found}" if found.startswith(_VOWELS) else f"a {found}"
            return found[:1].upper() + found[1:] if sign else found

        return _PLACE.sub(put, text)

    def _drawn(self, source: str, chance: random.Random, remembered: dict[str, str]) -> str:
        if source in remembered:
            return remembered[source]
        if ".." in source:
            first, _, last = source.partition("..")
            return str(chance.randint(int(first), int(last)))
        text = cast("str", chance.choice(self._rules[source]))
        return self._filled(text, chance, remembered)


def written_out() -> list[TrainingPrompt]:
    """Our own that are written out, less alike than what templates yield.

    In no order, so that the first of them are of all kinds.
    """
    return read(WRITTEN_OUT)


def generated(count: int, *, seed: int, templates: Path = TEMPLATES) -> list[TrainingPrompt]:
    """As many different prompts, fewer where the templates yield no more.

    With the same seed, the first of many are those of few.
    """
    data = json.loads(templates.read_text(encoding="utf-8"))
    return list(_distinct(count, Grammar(data["rules"]), data["kinds"], random.Random(seed)))


def _distinct(
    count: int, grammar: Grammar, kinds: Mapping[str, float], chance: random.Random
) -> Iterator[TrainingPrompt]:
    seen, names, weights = set[str](), list(kinds), list(kinds.values())
    for _ in range(_MOST_TRIES * count):
        if len(seen) == count:
            return
        [kind] = chance.choices(names, weights)
        before = tuple[Message, ...]()
        if chance.random() < _SHARE_WITH_SYSTEM:
            before = (Message("system", grammar.turns("system", chance)[0]),)
        prompt = TrainingPrompt(kind, grammar.turns(kind, chance), before)
        if prompt.key not in seen:
            seen.add(prompt.key)
            yield prompt


def read(path: Path) -> list[TrainingPrompt]:
    """A user's prompts: JSONL as the benchmark reads it, or any text with one prompt a line.

    Raises:
        EngineError: the file can't be read, or holds no prompts; with what is wrong.
    """
    if path.suffix.lower() == ".jsonl":
        return [
            TrainingPrompt(each.category, (each.messages[-1].content,), each.messages[:-1])
            for each in read_prompts(path)[0]
        ]
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise EngineError(f"The prompts file {path} can't be read: {error.strerror}.") from error
    lines = dict.fromkeys(line.strip() for line in text.splitlines() if line.strip())
    if not lines:
        raise EngineError(f"The prompts file {path} holds no prompt.")
    return [TrainingPrompt("user", (line,)) for line in lines]
