"""What each id of a tokenizer spells, in bytes, and text back into its ids."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache

Encode = Callable[[str], Sequence[int]]
"""Ordinary text to ids, nothing added to it."""

_REMEMBERED_TEXTS = 1 << 14
_ANCHORS = ("\n", ".")
"""What a text is put behind, so that a tokenizer does not take it for the beginning."""

_BYTE_PIECE = re.compile(r"<0x([0-9A-F]{2})>")


class Spelling:
    """A tokenizer as drafters see it that bring two of them together.

    name: the model's, for people. spelled: per id its bytes; empty where it is no text.
    controls: the ids that steer a conversation, with their names. begin_id: what every text begins
    with, if anything; end_id: what ends a turn. stand_ins: ids that spell a byte which another id
    may spell too.
    """

    def __init__(
        self,
        name: str,
        spelled: Sequence[bytes],
        encode: Encode,
        *,
        controls: Mapping[int, str],
        begin_id: int | None = None,
        end_id: int | None = None,
        stand_ins: frozenset[int] = frozenset(),
    ) -> None:
        self.name = name
        self.spelled = tuple(b"" if at in controls else held for at, held in enumerate(spelled))
        self.controls = dict(controls)
        self.begin_id = begin_id
        self.end_id = end_id
        self._stand_ins = stand_ins
        self._encode = encode
        self._remembered = lru_cache(_REMEMBERED_TEXTS)(self._found_inside)

    def bytes_of(self, ids: Iterable[int]) -> bytes:
        """What ids spell together."""
        return b"".join(self.spelled[token] for token in ids)

    def at_start(self, text: str) -> Sequence[int]:
        """The ids of a text that begins here, as the tokenizer itself would have it."""
        return self._encode(text)

    def inside(self, text: str) -> Sequence[int] | None:
        """The ids of a text that something stands before; None if none spell exactly this."""
        return self._remembered(text)

    @cached_property
    def ids_by_word(self) -> dict[bytes | str, int]:
        """The id of each spelling, in bytes, and of each control, by its name."""
        found: dict[bytes | str, int] = {name: token for token, name in self.controls.items()}
        own = [token for token in range(len(self.spelled)) if token not in self._stand_ins]
        for token in (*own, *sorted(self._stand_ins)):
            if self.spelled[token]:
                found.setdefault(self.spelled[token], token)
        return found

    def _found_inside(self, text: str) -> tuple[int, ...] | None:
        wanted = text.encode()
        for ids in self._tries(text):
            if self.bytes_of(ids) == wanted:
                return tuple(ids)
        return None

    def _tries(self, text: str) -> Iterator[Sequence[int]]:
        """Ways around a space that many tokenizers put before a text."""
        plain = self._encode(text)
        yield plain
        if text.startswith(" "):
            yield self._encode(text[1:])
        if plain and self.spelled[plain[0]] == b" ":
            yield plain[1:]
        for anchor in _ANCHORS:
            before, whole = self._encode(anchor), self._encode(anchor + text)
            if whole[: len(before)] == before:
                yield whole[len(before) :]


def read_pieces(
    pieces: Mapping[int, str], probe: Sequence[int], text: str
) -> tuple[list[bytes], frozenset[int]] | None:
    """What each id spells, and which are stand-ins; None in a kind of writing that nobody knows.

    probe: the ids of `text`, by which the kind is told.
    """
    for read in (_byte_level, _sentence_piece):
        spelled = b"".join(read(pieces[token]) for token in probe)
        # Many put a space before every text.
        if spelled.removeprefix(b" ") == text.encode().removeprefix(b" "):
            holes = [b""] * (max(pieces) + 1)
            for token, piece in pieces.items():
                holes[token] = read(piece)
            bytes_alone = (token for token, piece in pieces.items() if _BYTE_PIECE.fullmatch(piece))
            stand_ins = frozenset(bytes_alone) if read is _sentence_piece else frozenset[int]()
            return holes, stand_ins
    return None


def _byte_level(piece: str) -> bytes:
    """GPT-2's writing: a letter for each byte; what holds any other letter stands as it is."""
    try:
        return bytes(_BYTE_OF_LETTER[letter] for letter in piece)
    except KeyError:
        return piece.encode()


def _sentence_piece(piece: str) -> bytes:
    """SentencePiece's writing: a block for a space, and single bytes in hexadecimal."""
    found = _BYTE_PIECE.fullmatch(piece)
    if found is not None:
        return bytes([int(found[1], 16)])
    return piece.replace("\u2581", " ").encode()


def _byte_letters() -> dict[str, int]:
    plain = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(0x100) if byte not in plain]
    letters = {chr(byte): byte for byte in plain}
    return letters | {chr(0x100 + place): byte for place, byte in enumerate(others)}


_BYTE_OF_LETTER = _byte_letters()
