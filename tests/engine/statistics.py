"""Whole replies against their exact law."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from tests.engine.processors import reference_log_probabilities

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from engine.params import SamplingParams

Ids = tuple[int, ...]


def reply_law(
    logits: Callable[[Sequence[int]], Sequence[float]],
    prompt: Sequence[int],
    params: SamplingParams,
    *,
    length: int,
    end_ids: frozenset[int],
) -> dict[Ids, float]:
    """Every reply of plain sampling with its probability; an end of turn makes it a shorter one."""
    growing: dict[Ids, float] = {(): 1.0}
    finished: dict[Ids, float] = {}
    for _ in range(length):
        longer: dict[Ids, float] = {}
        for reply, weight in growing.items():
            prefix = [*prompt, *reply]
            row = reference_log_probabilities(logits(prefix), prefix, params)
            for token, score in enumerate(row):
                if score > -math.inf:
                    where = finished if token in end_ids else longer
                    where[(*reply, token)] = weight * math.exp(score)
        growing = longer
    return finished | growing


def misfit(replies: Iterable[Ids], law: Mapping[Ids, float]) -> float:
    """Chi-square in standard deviations of its own law (Wilson and Hilferty), rare replies pooled.

    Infinite if a reply came that the law does not know.
    """
    tally = Counter(replies)
    if not tally.keys() <= law.keys():
        return math.inf
    count = tally.total()
    common = [reply for reply, weight in law.items() if weight * count >= 5]
    cells = [(tally[reply], law[reply] * count) for reply in common]
    rare = count - sum(expected for _, expected in cells)
    if rare >= 1:
        cells.append((count - sum(seen for seen, _ in cells), rare))
    freedom = len(cells) - 1
    chi_square = sum((seen - expected) ** 2 / expected for seen, expected in cells)
    cube = (chi_square / freedom) ** (1 / 3)
    return (cube - (1 - 2 / (9 * freedom))) / math.sqrt(2 / (9 * freedom))
