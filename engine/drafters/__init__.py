"""The families of drafters in the order they are listed; a new one enters here."""

from engine.drafters import draft_model, layer_skip, ngram, off
from engine.drafters.family import Family

FAMILIES: tuple[Family, ...] = (off.FAMILY, ngram.FAMILY, draft_model.FAMILY, layer_skip.FAMILY)

__all__ = ["FAMILIES", "Family"]
