"""From logits to the next token: processors, probabilities, and noise keyed by position."""

# transformers' and torch's own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from transformers import (
    LogitsProcessorList,
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from engine.params import Rule, SamplingParams

if TYPE_CHECKING:
    from collections.abc import Sequence

_WORD = 1 << 64
_GOLDEN = 0x9E3779B97F4A7C15


class Noise:
    """A reply's randomness: shared Gumbel noise for COUPLED, its own generator for REJECTION.

    The Gumbel value of a (seed, position, token id) is the SplitMix64 finaliser of the three
    (Steele, Lea and Flood, OOPSLA 2014), turned into a Gumbel value in float64 and rounded to
    float32. It can be had for any subset of the vocabulary, and is computed on the CPU so that it
    is the same for every device.
    """

    def __init__(self, seed: int) -> None:
        self._key = _mix(seed)
        self._generator = random.Random(seed)

    def gumbel(self, position: int, ids: Tensor | None, *, vocabulary: int) -> Tensor:
        """Noise for `ids`, or for all of `range(vocabulary)`: float32, on the CPU."""
        wanted = torch.arange(vocabulary) if ids is None else ids.to("cpu", torch.int64)
        key = _mix(self._key ^ _mix(position + _GOLDEN))
        # 52 bits and a half keep the uniform strictly between 0 and 1 in float64.
        bits = _shifted(_mixed_(wanted * _signed(_GOLDEN) + _signed(key)), 12)
        uniform = (bits.to(torch.float64) + 0.5) * 2.0**-52
        return uniform.log_().neg_().log_().neg_().to(torch.float32)

    def uniform(self) -> float:
        """The next draw of the reply's own generator, in [0, 1)."""
        return self._generator.random()


def processed_log_probabilities(
    logits: Tensor, prefixes: Sequence[Sequence[int]] | None, params: SamplingParams
) -> Tensor:
    """Log-probabilities after every processor, each row by its own prefix.

    logits: (rows, vocabulary). prefixes: per row all ids before the token in question; None is
    enough where `needs_prefixes(params)` is false. At temperature 0: the unscaled softmax after the
    repetition penalty. Returns (rows, vocabulary), float64 for float64 logits, else float32.
    """
    scores = logits if logits.dtype == torch.float64 else logits.to(torch.float32)
    if needs_prefixes(params):
        assert prefixes is not None
        scores = _penalised(scores, prefixes, params.repetition_penalty)
    if not params.is_greedy:
        # The filters look at scores alone; transformers' signature wants ids all the same.
        no_ids = torch.zeros(len(scores), 0, dtype=torch.int64, device=scores.device)
        scores = _filters(params)(no_ids, scores)  # pyright: ignore[reportArgumentType]
    return scores.log_softmax(-1)


def needs_prefixes(params: SamplingParams) -> bool:
    """Whether a processor looks at the ids before the token."""
    return params.repetition_penalty != 1.0


def choose(log_p: Tensor, position: int, params: SamplingParams, noise: Noise) -> int:
    """The token at `position` from one row of log-probabilities, by the rule in force.

    Greedy and COUPLED take the best score, ties the lowest id; REJECTION draws by inverse CDF.
    """
    if params.is_greedy or params.rule is Rule.COUPLED:
        return int(coupled_scores(log_p, position, params, noise).argmax())
    return draw(probabilities(log_p), noise)


def coupled_scores(log_p: Tensor, position: int, params: SamplingParams, noise: Noise) -> Tensor:
    """What the argmax is taken of: log p, with the position's noise added above temperature 0."""
    if params.is_greedy:
        return log_p
    gumbel = noise.gumbel(position, None, vocabulary=log_p.shape[-1])
    return log_p + gumbel.to(log_p.device)


def probabilities(log_p: Tensor) -> Tensor:
    """Log-probabilities to float64 probabilities that sum to 1 along the last axis."""
    weights = log_p.to(torch.float64).exp()
    return weights / weights.sum(-1, keepdim=True)


def draw(weights: Tensor, noise: Noise) -> int:
    """An id drawn in proportion to non-negative float64 weights (vocabulary,), by one uniform."""
    cumulative = weights.cumsum(0)
    threshold = noise.uniform() * float(cumulative[-1])
    drawn = int(torch.searchsorted(cumulative, threshold, right=True))
    # Rounding may carry the threshold up to the total; the last id with any weight is meant then.
    return min(drawn, int(weights.nonzero()[-1]))


def _filters(params: SamplingParams) -> LogitsProcessorList:
    """The filters in transformers' own order."""
    filters = LogitsProcessorList([TemperatureLogitsWarper(float(params.temperature))])
    if params.top_k:
        filters.append(TopKLogitsWarper(params.top_k))
    if params.top_p < 1.0:
        filters.append(TopPLogitsWarper(params.top_p))
    if params.min_p:
        filters.append(MinPLogitsWarper(params.min_p))
    return filters


def _penalised(scores: Tensor, prefixes: Sequence[Sequence[int]], penalty: float) -> Tensor:
    longest = max(map(len, prefixes))
    # Repeating an id changes nothing for the penalty, so it serves as padding.
    padded = [[*prefix, *[prefix[-1]] * (longest - len(prefix))] for prefix in prefixes]
    ids = torch.tensor(padded, device=scores.device)
    return RepetitionPenaltyLogitsProcessor(float(penalty))(ids, scores)  # pyright: ignore[reportArgumentType]


def _mix(word: int) -> int:
    """SplitMix64's finaliser on one unsigned 64-bit word."""
    word %= _WORD
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 % _WORD
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB % _WORD
    return word ^ (word >> 31)


def _mixed_(words: Tensor) -> Tensor:
    """The same on a tensor of 64-bit words, in place; int64 products wrap as unsigned ones do."""
    words ^= _shifted(words, 30)
    words *= _signed(0xBF58476D1CE4E5B9)
    words ^= _shifted(words, 27)
    words *= _signed(0x94D049BB133111EB)
    words ^= _shifted(words, 31)
    return words


def _shifted(words: Tensor, count: int) -> Tensor:
    """A logical shift to the right; int64's own would drag the sign along."""
    return (words >> count) & ((1 << (64 - count)) - 1)


def _signed(word: int) -> int:
    return word - _WORD if word >= _WORD // 2 else word
