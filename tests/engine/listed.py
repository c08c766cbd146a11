"""What the suites run over. A new drafter enters by being listed in `engine.drafters.FAMILIES`."""

from __future__ import annotations

import pytest

from engine.drafters import FAMILIES
from engine.params import Rule

LONG_PROMPT = [*range(40, 60), *range(45, 60), 7, 7, *range(40, 50)]

families = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
drafting_families = pytest.mark.parametrize(
    "family", [f for f in FAMILIES if f.name != "off"], ids=lambda family: family.name
)
targets = pytest.mark.parametrize("target", ["llama", "mistral", "gemma"])
rules = pytest.mark.parametrize("rule", Rule, ids=str)

PROCESSORS = {
    "temperature": {"temperature": 0.8},
    "filters": {"temperature": 1.2, "top_k": 4, "top_p": 0.9, "min_p": 0.05},
    "penalty": {"temperature": 1.0, "repetition_penalty": 1.6},
}
processors = pytest.mark.parametrize("chosen", PROCESSORS.values(), ids=PROCESSORS.keys())
