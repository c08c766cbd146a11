"""The processors once more, by their definitions and in plain Python."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.params import SamplingParams

Scores = list[float]


def reference_log_probabilities(
    logits: Sequence[float], prefix: Sequence[int], params: SamplingParams
) -> Scores:
    """One row of log-probabilities after every processor."""
    scores = [
        score if token not in prefix else _penalised(score, params.repetition_penalty)
        for token, score in enumerate(logits)
    ]
    if params.temperature:
        scores = [score / params.temperature for score in scores]
        scores = _top_k(scores, params.top_k)
        scores = _top_p(scores, params.top_p)
        scores = _min_p(scores, params.min_p)
    total = max(scores) + math.log(math.fsum(math.exp(score - max(scores)) for score in scores))
    return [score - total for score in scores]


def _penalised(score: float, penalty: float) -> float:
    return score * penalty if score < 0 else score / penalty


def _softmax(scores: Scores) -> Scores:
    weights = [math.exp(score - max(scores)) for score in scores]
    return [weight / math.fsum(weights) for weight in weights]


def _without(scores: Scores, dropped: set[int]) -> Scores:
    return [-math.inf if token in dropped else score for token, score in enumerate(scores)]


def _top_k(scores: Scores, count: int) -> Scores:
    if not count:
        return scores
    least = sorted(scores, reverse=True)[:count][-1]
    return _without(scores, {token for token, score in enumerate(scores) if score < least})


def _top_p(scores: Scores, mass: float) -> Scores:
    if mass == 1.0:
        return scores
    chances = _softmax(scores)
    kept, total = set(), 0.0
    for token in sorted(range(len(scores)), key=lambda token: -chances[token]):
        if total >= mass:
            break
        kept.add(token)
        total += chances[token]
    return _without(scores, set(range(len(scores))) - kept)


def _min_p(scores: Scores, share: float) -> Scores:
    chances = _softmax(scores)
    least = share * max(chances)
    return _without(scores, {token for token, chance in enumerate(chances) if chance < least})
