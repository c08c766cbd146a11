"""A conversation in one model's tokens told in another's, and what the other says told back."""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING, NamedTuple

from engine.models.kv_memo import common_prefix

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.models.spelling import Spelling

_LONGEST_WORD = 128
"""Characters; longer ones, as in writing without spaces, are cut, so that rounds cost little."""

_LONGEST_TAIL = 16
"""Tokens that what is told back is joined to."""

_WORD_BEGINS = re.compile(r"(?<=\S)(?= )|(?<=\w)(?=\n)")
_UNKNOWN = "\ufffd"


class _State(NamedTuple):
    """After some of the ids. told: how many of their ids stand; word, rest: what is still open."""

    told: int
    word: str
    rest: bytes


class Retelling:
    """One model's ids as another's, word by word, in step with the conversation.

    What it tells follows from the ids alone, so it is the same after any history. A word's ids
    stand once another word has begun, and only the open one is spelled anew.

    controls: our ids that are no text, with how they are told.
    """

    def __init__(
        self, ours: Spelling, theirs: Spelling, controls: Mapping[int, Sequence[int]]
    ) -> None:
        self._ours = ours
        self._theirs = theirs
        self._controls = controls
        self._told: list[int] = [] if theirs.begin_id is None else [theirs.begin_id]
        self._seen: list[int] = []
        self._states = [_State(len(self._told), "", b"")]

    def follow(self, ids: Sequence[int]) -> None:
        """Bring it to tell all of `ids`."""
        known = common_prefix(self._seen, ids)
        del self._seen[known:], self._states[known + 1 :]
        del self._told[self._states[-1].told :]
        for token in ids[known:]:
            self._states.append(self._after(self._states[-1], token))
        self._seen.extend(ids[known:])

    def to_go_on(self) -> tuple[list[int], bytes]:
        """Their ids up to where their next token may begin, and what it has to begin with."""
        state = self._states[-1]
        if state.word == " ":
            # A word's space alone is not how they would have spelled it.
            return list(self._told), b" " + state.rest
        return [*self._told, *self._ids_of(state.word)], state.rest

    def to_the_end(self) -> list[int]:
        """Their ids of everything, the bytes of an unfinished character included."""
        state = self._states[-1]
        return [*self._told, *self._ids_of(state.word), *self._ids_of_bytes(state.rest)]

    def _after(self, state: _State, token: int) -> _State:
        control = self._controls.get(token)
        if control is not None:
            self._tell(state.word + (_UNKNOWN if state.rest else ""))
            # A beginning that their tokenizer has put there itself is not told twice.
            if not (token == self._ours.begin_id and len(self._states) == 1 and self._told):
                self._told += control
            return _State(len(self._told), "", b"")
        text, rest = decoded(state.rest + self._ours.spelled[token])
        *words, word = _words(state.word + text)
        for whole in words:
            self._tell(whole)
        return _State(len(self._told), word, rest)

    def _tell(self, word: str) -> None:
        self._told += self._ids_of(word)

    def _ids_of(self, word: str) -> Sequence[int]:
        if not word:
            return ()
        if len(self._told) == self._states[0].told:
            return self._theirs.at_start(word)
        # What can't be spelled exactly is told as well as may be.
        return self._theirs.inside(word) or self._theirs.at_start(word)

    def _ids_of_bytes(self, rest: bytes) -> Sequence[int]:
        """The longest of their tokens that spell these bytes; none where they have none."""
        for length in range(len(rest), 0, -1):
            token = self._theirs.ids_by_word.get(rest[:length])
            if token is not None:
                return token, *self._ids_of_bytes(rest[length:])
        return ()


def tail_of(spelling: Spelling, ids: Sequence[int]) -> Sequence[int]:
    """The last ids, from where a word begins, or from the last whole character before that."""
    spelled, start = spelling.spelled, len(ids)
    while start > max(0, len(ids) - _LONGEST_TAIL) and spelled[ids[start - 1]]:
        start -= 1
        before = spelled[ids[start - 1]] if start else b""
        if spelled[ids[start]].startswith(b" ") and not before.endswith(b" "):
            break
    while start < len(ids) and _is_inside_a_character(spelled[ids[start]]):
        start += 1
    return ids[start:]


def continued(spelling: Spelling, tail: Sequence[int], text: bytes) -> Sequence[int]:
    """The ids that go on behind `tail` with as much of the text as has whole characters.

    Taken from how the tokenizer spells both together, if the text begins a token there; else from
    the text alone. Empty if there are none.
    """
    before = spelling.bytes_of(tail)
    whole = _whole_characters(before + text)
    if len(whole) > len(before):
        ids = spelling.inside(whole.decode())
        seam = None if ids is None else _place(spelling, ids, len(before))
        if ids is not None and seam is not None:
            return ids[seam:]
    alone = _whole_characters(text)
    return spelling.inside(alone.decode()) or ()


def decoded(data: bytes) -> tuple[str, bytes]:
    """The characters that are whole, and the bytes of one that is not finished."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(data)
    return text, decoder.getstate()[0]


def _words(text: str) -> list[str]:
    """A text in words, each with the spaces before it."""
    return [
        word[start : start + _LONGEST_WORD]
        for word in _WORD_BEGINS.split(text)
        for start in range(0, max(1, len(word)), _LONGEST_WORD)
    ]


def _whole_characters(data: bytes) -> bytes:
    """As much from the beginning as is text."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return data[: error.start]
    return data


def _place(spelling: Spelling, ids: Sequence[int], length: int) -> int | None:
    """How many ids spell the first `length` bytes; None where one of them goes over their end."""
    spelt = 0
    for place, token in enumerate(ids):
        if spelt >= length:
            return place if spelt == length else None
        spelt += len(spelling.spelled[token])
    return None


def _is_inside_a_character(spelt: bytes) -> bool:
    return bool(spelt) and spelt[0] & 0xC0 == 0x80
