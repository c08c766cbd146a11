"""What the suites run over. A new drafter enters by being listed in `engine.drafters.FAMILIES`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.drafters import FAMILIES, Family
from engine.params import Rule
from tests.engine.other_words import OTHER_WORDS

LONG_PROMPT = [*range(40, 60), *range(45, 60), 7, 7, *range(40, 50)]


def _given_other_words(family: Family) -> Family:
    """The same, given a draft model with another tokenizer than the target's."""
    return replace(family, build=lambda target, _: family.build(target, OTHER_WORDS))


LISTED = {family.name: family for family in FAMILIES} | {
    f"{name}, other words": _given_other_words(family)
    for family in FAMILIES
    if (name := family.name) in ("draft-model", "suffix+draft-model")
}

families = pytest.mark.parametrize("family", LISTED.values(), ids=LISTED.keys())
drafting_families = pytest.mark.parametrize(
    "family",
    [pytest.param(family, id=name) for name, family in LISTED.items() if name != "off"],
)
targets = pytest.mark.parametrize("target", ["llama", "mistral", "gemma"])
rules = pytest.mark.parametrize("rule", Rule, ids=str)

PROCESSORS = {
    "temperature": {"temperature": 0.8},
    "filters": {"temperature": 1.2, "top_k": 4, "top_p": 0.9, "min_p": 0.05},
    "penalty": {"temperature": 1.0, "repetition_penalty": 1.6},
}
processors = pytest.mark.parametrize("chosen", PROCESSORS.values(), ids=PROCESSORS.keys())
