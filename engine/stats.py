"""What a reply cost and gained: counts, lengths, speeds, and the measured plain speed."""

from __future__ import annotations

import time
from collections import Counter, deque
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from engine.events import Origin, Outcome, Round
from engine.params import Rule

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.params import ReplyParams


@dataclass(frozen=True, slots=True)
class BaselineReading:
    """Tokens per second of plain decoding, as measured. source: "plain rounds" or "calibration"."""

    tokens_per_second: float
    source: str
    age_seconds: float


class Baseline:
    """Plain decoding on this machine, measured and never estimated.

    A round without a draft is a measurement, kept by context length; before there are enough of
    them near the length asked for, the calibration stands in. `clock` is for tests.
    """

    _SPAN_TOKENS = 256
    _ENOUGH_ROUNDS = 5
    _KEPT_ROUNDS = 64

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._calibration: tuple[float, float] | None = None  # seconds a token, when
        self._rounds: dict[int, deque[tuple[float, float]]] = {}

    def calibrate(self, seconds_per_token: float) -> None:
        """Take a measured pass of one row as the stand-in."""
        self._calibration = (seconds_per_token, self._clock())

    def observe(self, seconds: float, *, context_tokens: int) -> None:
        """Take the seconds of a round that committed one token without a draft."""
        span = context_tokens // self._SPAN_TOKENS
        kept = self._rounds.setdefault(span, deque(maxlen=self._KEPT_ROUNDS))
        kept.append((seconds, self._clock()))

    def reading(self, context_tokens: int) -> BaselineReading | None:
        """The measured plain speed at this context length; None before anything was measured."""
        kept = self._rounds.get(context_tokens // self._SPAN_TOKENS, deque[tuple[float, float]]())
        if len(kept) >= self._ENOUGH_ROUNDS:
            seconds = median(seconds for seconds, _ in kept)
            return BaselineReading(1 / seconds, "plain rounds", self._clock() - kept[-1][1])
        if self._calibration is None:
            return None
        seconds, measured_at = self._calibration
        return BaselineReading(1 / seconds, "calibration", self._clock() - measured_at)


@dataclass(frozen=True, slots=True)
class ReplyStats:
    """One reply's account, with what is needed to write it again.

    drafted, accepted: nodes in the passes; those behind an accepted end are in neither.
    survival_by_depth: per depth 1, 2, ... the share kept of the nodes whose parent was kept (a node
    under the
        root always counts): the papers' alpha.
    decode_seconds: all rounds together; first_token_seconds: from the request to the first
    committed token. planned: whether the planner decided how far to draft, by what rounds took.
    """

    target: str
    drafters: tuple[str, ...]
    params: ReplyParams
    tokens: int
    rounds: int
    drafted: int
    accepted: int
    resampled: int
    survival_by_depth: tuple[float, ...]
    prompt_tokens: int
    prefill_seconds: float
    decode_seconds: float
    first_token_seconds: float
    baseline: BaselineReading | None
    planned: bool = False

    @property
    def may_depend_on_timing(self) -> bool:
        """Whether the same seed may give another text when rounds take another time."""
        sampling = self.params.sampling
        return self.planned and sampling.rule is Rule.REJECTION and not sampling.is_greedy

    @property
    def tokens_per_second(self) -> float:
        """Committed tokens a second of decoding; 0 before there are any."""
        return self.tokens / self.decode_seconds if self.decode_seconds else 0.0

    @property
    def mean_accepted_length(self) -> float:
        """Committed tokens a target pass; plain decoding has 1.0."""
        return self.tokens / self.rounds if self.rounds else 0.0

    @property
    def acceptance_rate(self) -> float | None:
        """Accepted tokens of those drafted; None where nothing was drafted."""
        return self.accepted / self.drafted if self.drafted else None

    @property
    def speedup(self) -> float | None:
        """Times the measured plain speed; None while that is unknown."""
        return self.tokens_per_second / self.baseline.tokens_per_second if self.baseline else None


class RoundCounter:
    """Adds up a reply's rounds."""

    def __init__(self) -> None:
        self.tokens = 0
        self.rounds = 0
        self.drafted = 0
        self.resampled = 0
        self.accepted = 0
        self.decode_seconds = 0.0
        self.drafters: list[str] = []
        self._judged: Counter[int] = Counter()
        self._kept: Counter[int] = Counter()

    def add(self, done: Round) -> None:
        """Count one round."""
        self.tokens += len(done.tokens)
        self.rounds += 1
        self.drafted += len(done.nodes)
        self.accepted += done.accepted
        self.resampled += sum(token.origin is Origin.RESAMPLED for token in done.tokens)
        self.decode_seconds += done.seconds
        if done.drafter not in self.drafters:
            self.drafters.append(done.drafter)
        # Siblings share one chance: a place survives when any node proposed there is kept.
        places = {
            (node.parent, node.depth)
            for node in done.nodes
            if node.outcome is not Outcome.NOT_REACHED
        }
        self._judged.update(depth for _, depth in places)
        self._kept.update(node.depth for node in done.nodes if node.outcome is Outcome.KEPT)

    @property
    def survival_by_depth(self) -> tuple[float, ...]:
        """Per depth the share of places judged there at which a proposal was kept."""
        return tuple(self._kept[depth] / self._judged[depth] for depth in sorted(self._judged))
