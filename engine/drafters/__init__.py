"""The families of drafters in the order they are listed; a new one enters here."""

from engine.drafters import (
    auto,
    draft_model,
    eagle,
    layer_skip,
    lookahead,
    medusa,
    ngram,
    off,
    shared_words,
    suffix,
)
from engine.drafters.chained import chain
from engine.drafters.family import Family

FAMILIES: tuple[Family, ...] = (
    off.FAMILY,
    auto.FAMILY,
    ngram.FAMILY,
    draft_model.FAMILY,
    shared_words.FAMILY,
    layer_skip.FAMILY,
    suffix.FAMILY,
    lookahead.FAMILY,
    chain(suffix.FAMILY, draft_model.FAMILY),
    chain(suffix.FAMILY, shared_words.FAMILY),
    medusa.FAMILY,
    eagle.FAMILY,
    eagle.FAMILY_2,
    eagle.FAMILY_3,
)

__all__ = ["FAMILIES", "Family"]
