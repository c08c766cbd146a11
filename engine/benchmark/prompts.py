"""The prompts of a bench: read from a file, each seen to be one that can be answered."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from engine.errors import EngineError
from engine.templates import Message

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from engine.engine import Engine
    from engine.session import Session

_ROLES = ("system", "user", "assistant")


@dataclass(frozen=True, slots=True)
class Prompt:
    """One line of a prompts file: a conversation that ends with a user's turn.

    place: the file, the line and the id, for people.
    """

    id: str
    category: str
    messages: tuple[Message, ...]
    place: str

    @property
    def question(self) -> str:
        """What is to be answered."""
        return self.messages[-1].content

    def session(self, engine: Engine) -> Session:
        """The conversation up to the question."""
        before = self.messages[:-1]
        system = [turn.content for turn in before if turn.role == "system"]
        session = engine.new_session("\n\n".join(system))
        session.messages = [turn for turn in before if turn.role != "system"]
        return session


def read_prompts(path: Path) -> tuple[list[Prompt], str]:
    """The prompts of a JSONL file, and the SHA-256 of its bytes.

    Raises:
        EngineError: no such file, or a line that is no prompt; with its number and what is wrong.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise EngineError(f"The prompts file {path} can't be read: {error.strerror}.") from error
    # A text may hold other line breaks than the one that ends a line of the file.
    lines = content.decode("utf-8-sig", errors="replace").split("\n")
    prompts = [
        _prompt(line, f"{path.name}, line {at}") for at, line in enumerate(lines, 1) if line.strip()
    ]
    if not prompts:
        raise EngineError(f"The prompts file {path} holds no prompt.")
    return prompts, hashlib.sha256(content).hexdigest()


def check_lengths(engine: Engine, prompts: Sequence[Prompt]) -> None:
    """See, before anything runs, that the target can read every prompt.

    Raises:
        EngineError: one is too long, or its template can't spell it; with its file, line and id.
    """
    for prompt in prompts:
        try:
            needed = prompt.session(engine).context_tokens(prompt.question)
        except EngineError as error:
            raise EngineError(f"{prompt.place}: {error}") from error
        if needed >= engine.context_length:
            raise EngineError(
                f"{prompt.place}: the conversation needs {needed:,} tokens, and the model reads at "
                f"most {engine.context_length:,}. Shorten it, or leave it out."
            )


def _prompt(line: str, place: str) -> Prompt:
    try:
        data = cast("dict[str, Any]", json.loads(line))
        messages = tuple(Message(turn["role"], turn["content"]) for turn in data["messages"])
        name, category = str(data["id"]), str(data["category"])
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise EngineError(
            f'{place}: expected {{"id", "category", "messages": [{{"role", "content"}}]}}.'
        ) from error
    place = f'{place}, "{name}"'
    known = all(turn.role in _ROLES and isinstance(turn.content, str) for turn in messages)  # pyright: ignore[reportUnnecessaryIsInstance]
    if not known or not messages or messages[-1].role != "user":
        raise EngineError(f"{place}: the messages must be texts and end with a user's turn.")
    if not messages[-1].content.strip():
        raise EngineError(f"{place}: the last message is empty, so there is nothing to answer.")
    return Prompt(name, category, messages, place)
