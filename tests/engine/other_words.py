"""Other tokenizers for the tiny models: one as SentencePiece makes them, and toys of letters."""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import TYPE_CHECKING

from tokenizers import AddedToken, Tokenizer, decoders, normalizers
from tokenizers.models import BPE
from transformers import PreTrainedTokenizerFast

from engine.models.spelling import Spelling
from engine.models.tokenizer import spelling_of
from tests.engine import models_for_tests as tiny

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.models.causal_lm import CausalLM

OTHER_WORDS = "other words"
"""The path of a draft model whose tokenizer is not the target's."""

BLOCK = "\u2581"
BEGIN, END = "<s>", "</s>"
_FREQUENT = "etaoinshrdlu"


def tokenizer(*, with_bytes: bool = True) -> PreTrainedTokenizerFast:
    """Blocks for spaces, one put before every text, pairs of frequent letters, other controls."""
    letters = ["\n", BLOCK, *map(chr, range(0x21, 0x7F)), *"äß你"]
    merges = [*product(_FREQUENT, _FREQUENT), *((BLOCK, letter) for letter in _FREQUENT)]
    merges += [(BLOCK + "t", "he"), ("an", "d")]
    singles = [f"<0x{byte:02X}>" for byte in range(256)] if with_bytes else []
    pieces = ["<unk>", BEGIN, END, *singles, *letters, *map("".join, merges)]
    vocabulary = {piece: at for at, piece in enumerate(pieces)}
    core = Tokenizer(BPE(vocabulary, merges, unk_token="<unk>", byte_fallback=with_bytes))
    core.normalizer = normalizers.Sequence(
        [normalizers.Prepend(BLOCK), normalizers.Replace(" ", BLOCK)]
    )
    core.decoder = decoders.Sequence(
        [decoders.Replace(BLOCK, " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    core.add_special_tokens([AddedToken(text, special=True) for text in ("<unk>", BEGIN, END)])
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        bos_token=BEGIN,
        eos_token=END,
        unk_token="<unk>",
        clean_up_tokenization_spaces=False,
    )


def toy(words: Sequence[str], *, ends: Sequence[int] = (), end: str = "<end>") -> Spelling:
    """A spelling of a few words, the longest first, around ids that end a turn."""
    rest = iter(words)
    held = ["" if at in ends else next(rest) for at in range(len(words) + len(ends))]
    longest_first = sorted(filter(None, held), key=len, reverse=True)

    def encode(text: str) -> list[int]:
        ids: list[int] = []
        while text:
            word = next(filter(text.startswith, longest_first), "")
            ids += [held.index(word)] if word else []
            text = text[max(1, len(word)) :]
        return ids

    return Spelling(
        "toy",
        [word.encode() for word in held],
        encode,
        controls={token: f"{end}{place}" for place, token in enumerate(ends)},
        end_id=min(ends, default=None),
    )


def ids_inside(spelling: Spelling, text: str) -> tuple[int, ...]:
    """The ids of a text that something stands before."""
    ids = spelling.inside(text)
    assert ids is not None
    return tuple(ids)


def spelling_for(lm: CausalLM, *, other: bool = False) -> Spelling:
    """A tokenizer for a model of any size: the tiny ones' own, or a toy; or quite another one.

    The toys have the same letters in another order, and other pairs of them.
    """
    if lm.vocabulary >= tiny.VOCABULARY:
        return _real(other)
    ends = sorted(lm.end_ids)
    count = lm.vocabulary - len(ends)
    pairs = ["ba", " b", "cd", "a "] if other else ["ab", " a", "cd", "b "]
    few = pairs[: count // 4]
    letters = ["a", "b", " ", *map(chr, range(ord("c"), 0x17F))][: count - len(few)]
    if other:
        return toy([*letters[::-1], *few], ends=ends, end="</end>")
    return toy([*letters, *few], ends=ends)


@cache
def _real(other: bool) -> Spelling:
    if other:
        return spelling_of(tokenizer(with_bytes=False), "other")
    return spelling_of(tiny.tokenizer(), "tiny")
