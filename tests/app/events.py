"""Events of replies, made by hand for the views."""

from __future__ import annotations

from typing import Any

from engine.events import Finished, FinishReason, Node, Origin, Outcome, Round, Token
from engine.params import ReplyParams, SamplingParams
from engine.stats import BaselineReading, ReplyStats

ACCEPTED, RESAMPLED, TARGET_ONLY = Origin.DRAFT_ACCEPTED, Origin.RESAMPLED, Origin.TARGET_ONLY
LETTERS = {origin.letter: origin for origin in Origin}


def spoken(*words: str, origins: str | None = None, index: int = 0) -> Round:
    """A round that commits these words; origins: a letter for each, "t" where none is given."""
    letters = origins or "t" * len(words)
    tokens = tuple(
        Token(100 + place, word, LETTERS[letter], place, place + 1, 0.8, None, 1.5)
        for place, (word, letter) in enumerate(zip(words, letters, strict=True))
    )
    nodes = tuple(
        Node(token.id, token.depth - 2, token.depth, "ngram", 0.8, None, Outcome.KEPT)
        for token in tokens
        if token.origin is ACCEPTED
    )
    return Round(index, tokens, nodes, "ngram", 1 + len(nodes), 0.001, 0.008, 0.001)


def judged(*, drafted: int, accepted: int, seconds: float = 0.05) -> Round:
    """A round that drafts so many tokens and commits the accepted ones and one more."""
    outcomes = [Outcome.KEPT] * accepted + [Outcome.TURNED_DOWN] * (drafted - accepted)
    nodes = tuple(
        Node(place, place - 1, place + 1, "ngram", 0.5, None, outcome)
        for place, outcome in enumerate(outcomes)
    )
    last = RESAMPLED if accepted < drafted else TARGET_ONLY
    origins = [ACCEPTED] * accepted + [last]
    tokens = tuple(
        Token(place, "x", origin, place, place + 1, 0.5, None, None)
        for place, origin in enumerate(origins)
    )
    return Round(0, tokens, nodes, "ngram", 1 + drafted, 0.0, seconds, 0.0)


def ended(reason: FinishReason = FinishReason.END_OF_TURN, *, text: str = "", **facts: Any):
    """The end of a reply; facts: fields of its stats that matter to the test."""
    known: dict[str, Any] = {
        "target": "Fake 1M",
        "drafters": ("ngram",),
        "params": ReplyParams(SamplingParams(temperature=0.7, seed=42)),
        "tokens": 118,
        "rounds": 51,
        "drafted": 110,
        "accepted": 67,
        "resampled": 20,
        "survival_by_depth": (0.7,),
        "prompt_tokens": 12,
        "prefill_seconds": 0.1,
        "decode_seconds": 1.0,
        "first_token_seconds": 0.2,
        "baseline": BaselineReading(74.0, "calibration", 40.0),
    }
    return Finished(reason, ReplyStats(**{**known, **facts}), text)
