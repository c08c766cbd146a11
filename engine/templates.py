"""Conversations as token ids: templates, repaired histories, control tokens typed as text."""

# transformers' and torch's own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass, replace
from itertools import chain, groupby
from typing import TYPE_CHECKING, Literal, cast

from engine.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from transformers import PreTrainedTokenizerBase

Role = Literal["system", "user", "assistant"]

NO_TEMPLATE = "This model has no chat template: it continues your text as plain completion."
FOLDED_SYSTEM = "This model knows no system role: the system prompt goes before your first message."


_PRIVATE_USE = (range(0xE000, 0xF900), range(0xF0000, 0xFFFFE), range(0x100000, 0x10FFFE))
"""Code points that mean nothing by themselves, those of the first plane first."""

_LONGEST_REASON = 160


@dataclass(frozen=True, slots=True)
class Message:
    """One turn. ids: a reply's own tokens, end of turn left out, where they spell it exactly."""

    role: Role
    content: str
    ids: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Prompt:
    """A conversation's ids, up to where the next reply begins.

    replies: positions of the rows that decoding writes where replies stand in it by their own ids:
    from the token before a reply to the one after it.
    """

    ids: list[int]
    replies: tuple[range, ...] = ()


class ChatFormat:
    """How one model's conversations are spelled in its tokens.

    Replies go in by their own ids, so that a later turn continues exactly what the model wrote;
    what users type goes in as ordinary text, even where it spells a control token.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self._tokenizer = tokenizer
        self._spelled: dict[int, str] = {}
        added = {token.content for token in tokenizer.added_tokens_decoder.values()}
        spellings = sorted(filter(None, added), key=len, reverse=True)
        self._control = re.compile("(" + ("|".join(map(re.escape, spellings)) or r"(?!)") + ")")
        self._added_ids = frozenset(tokenizer.added_tokens_decoder)
        self.has_template = bool(tokenizer.chat_template)
        self._folds_system = self.has_template and not self._knows_system()
        self.notes = (
            *([] if self.has_template else [NO_TEMPLATE]),
            *([FOLDED_SYSTEM] if self._folds_system else []),
        )

    def encode(self, messages: Sequence[Message]) -> Prompt:
        """A conversation in the model's tokens.

        Raises:
            EngineError: the model's template cannot spell it.
        """
        turns = _repaired(messages)
        if not self.has_template:
            return self._encode_plainly(turns)
        if self._folds_system:
            turns = _without_system(turns)
        guard, mark = _unused_characters("".join(turn.content for turn in turns))
        guarded = [replace(turn, content=self._guarded(turn.content, guard)) for turn in turns]
        own = [turn for turn in guarded if turn.role == "assistant" and turn.ids is not None]
        whole = self._render(guarded)
        marked = self._render(
            [replace(turn, content=mark) if turn in own else turn for turn in guarded]
        )
        pieces = marked.split(mark)
        # A template that rewrites replies (reasoning left out, say) has the last word.
        if len(pieces) != len(own) + 1 or _joined(pieces, [turn.content for turn in own]) != whole:
            return Prompt(self._encode_rendered(whole, guard))
        spelled = [self._encode_rendered(piece, guard) for piece in pieces]
        return _spliced(spelled[0], [turn.ids or () for turn in own], spelled[1:])

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids, control tokens left out."""
        return cast(
            "str",
            self._tokenizer.decode(
                list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False
            ),
        )

    def spelled(self, token_id: int) -> str:
        """What one id spells by itself, also where it is a control token."""
        if token_id not in self._spelled:
            text = self._tokenizer.decode([token_id], clean_up_tokenization_spaces=False)
            self._spelled[token_id] = cast("str", text)
        return self._spelled[token_id]

    def _encode_plainly(self, turns: Sequence[Message]) -> Prompt:
        """Without a template: everything in a row, after the token that begins a text, if any."""
        begin = self._tokenizer.bos_token_id
        first = [begin] if begin is not None and begin in self._tokenizer.encode("") else []
        replies: list[Sequence[int]] = [()]
        pieces: list[list[int]] = [[]]
        for turn in turns:
            if turn.ids is None:
                content = turn.content + ("\n\n" if turn.role == "system" else "")
                pieces[-1] += self._encode_typed(content)
            else:
                replies.append(turn.ids)
                pieces.append([])
        return _spliced([*first, *pieces[0]], replies[1:], pieces[1:])

    def _encode_rendered(self, text: str, guard: str) -> list[int]:
        """Rendered text to ids; what stands guarded between control tokens was typed."""
        if guard not in text:
            return self._encode_text(text)
        ids: list[int] = []
        for stretch in filter(None, self._control.split(text)):
            if guard in stretch:
                ids += self._encode_typed(stretch.replace(guard, ""))
            else:
                ids += self._encode_text(stretch)
        return ids

    def _encode_typed(self, text: str) -> list[int]:
        """Ordinary text to ids, none of them a control token."""
        ids = self._encode_text(text, split_special_tokens=True)
        found = self._control.search(text)
        if found is None or self._added_ids.isdisjoint(ids):
            return ids
        # Some tokenizers split only part of their added tokens: break the spelling ourselves.
        middle = found.start() + 1
        return self._encode_text(text[:middle]) + self._encode_typed(text[middle:])

    def _encode_text(self, text: str, *, split_special_tokens: bool = False) -> list[int]:
        # Half a surrogate pair, as a pipe or a paste may bring, is no text that can be encoded.
        whole = text.encode("utf-8", "replace").decode("utf-8")
        return self._tokenizer.encode(
            whole, add_special_tokens=False, split_special_tokens=split_special_tokens
        )

    def _guarded(self, content: str, guard: str) -> str:
        """Content with a guard inside everything that spells a control token."""
        return self._control.sub(lambda found: found[0][0] + guard + found[0][1:], content)

    def _render(self, turns: Sequence[Message]) -> str:
        try:
            text = self._tokenizer.apply_chat_template(
                [{"role": turn.role, "content": turn.content} for turn in turns],
                tokenize=False,
                add_generation_prompt=True,
            )
        except Exception as error:  # a template is a program, and fails in as many ways
            why = textwrap.shorten(str(error), _LONGEST_REASON, placeholder=" …")
            raise EngineError(
                "This model's chat template cannot spell the conversation "
                f"({why or type(error).__name__}). Choose a model with another template."
            ) from error
        return cast("str", text)

    def _knows_system(self) -> bool:
        """Whether a system turn gets through the template: some refuse it, some leave it out."""
        try:
            text = self._render([Message("system", "\ue000"), Message("user", "\ue001")])
        except EngineError:
            return False
        return "\ue000" in text


def _repaired(messages: Sequence[Message]) -> list[Message]:
    """A history that templates accept: no two turns of one role in a row, and no reply first."""
    turns: list[Message] = []
    for _, group in groupby(messages, key=lambda message: message.role):
        same = list(group)
        turns.append(
            same[0]
            if len(same) == 1
            else Message(same[0].role, "\n\n".join(turn.content for turn in same))
        )
    first = 1 if turns and turns[0].role == "system" else 0
    if first < len(turns) and turns[first].role == "assistant":
        turns.insert(first, Message("user", ""))
    return turns


def _without_system(turns: list[Message]) -> list[Message]:
    if not turns or turns[0].role != "system":
        return turns
    system, *rest = turns
    if not rest:
        return [Message("user", system.content)]
    return [replace(rest[0], content=f"{system.content}\n\n{rest[0].content}"), *rest[1:]]


def _unused_characters(text: str) -> tuple[str, str]:
    """Two private-use characters that do not occur in `text`.

    Raises:
        EngineError: all of them do.
    """
    taken = set(text)
    free = (letter for letter in map(chr, chain(*_PRIVATE_USE)) if letter not in taken)
    first, second = next(free, None), next(free, None)
    if first is None or second is None:
        raise EngineError("This conversation holds every private-use character. Leave some out.")
    return first, second


def _joined(pieces: Sequence[str], between: Sequence[str]) -> str:
    parts = [pieces[0]]
    for content, piece in zip(between, pieces[1:], strict=True):
        parts += [content, piece]
    return "".join(parts)


def _spliced(
    first: list[int], replies: Sequence[Sequence[int]], pieces: Sequence[list[int]]
) -> Prompt:
    """Replies by their own ids, each with the piece of the conversation that follows it."""
    ids, rows = list(first), list[range]()
    for reply, piece in zip(replies, pieces, strict=True):
        rows.append(range(max(0, len(ids) - 1), len(ids) + len(reply) + 1))
        ids += [*reply, *piece]
    return Prompt(ids, tuple(rows))
