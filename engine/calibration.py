"""Timed rounds of a loaded target: plain ones, ones of k rows, and a trial of a drafter."""

from __future__ import annotations

import random
import time
from itertools import islice
from statistics import median
from typing import TYPE_CHECKING

from engine.costs import EDGES_FIRST, LENGTHS, MOST_ROWS
from engine.draft import NO_PASSENGERS, Draft, Passengers
from engine.drafters.family import Sample
from engine.drafters.off import Off
from engine.errors import OutOfMemory
from engine.kept_costs import Trial
from engine.params import SamplingParams
from engine.planning import Planner
from engine.speculation import Committed, Drafting, speculate
from engine.text import ReplyText

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator, Sequence

    from engine.costs import CostModel
    from engine.drafters.drafter import Context, Drafter, Observation
    from engine.drafters.family import Family, Target
    from engine.models.causal_lm import CausalLM
    from engine.models.kv_memo import KVMemo
    from engine.planning import Budget
    from engine.sampling import Noise

COSTS_SECONDS = 1.6
WRITING_SECONDS, SEARCH_SECONDS, TRIAL_SECONDS = 0.4, 0.6, 0.4
"""Three seconds in all, whatever is measured in them, and what was begun in time."""

_PLAIN_ROUNDS, _FEWEST_PLAIN_ROUNDS, _PLAIN_SECONDS = 16, 3, 2.0
_TRIAL_ROUNDS, _TRIAL_LENGTH = 12, 2
_WRITTEN, _FEWEST_WRITTEN = 32, 8
_LENGTHS, _EDGES, _TIMES = LENGTHS[:3], 7, 2
_REFRESHED = EDGES_FIRST[:5] * 2
_READING_SHARE = 0.6
"""Of the time that is left, what reading a longer prompt may take to time rounds behind it."""


class Calibration:
    """Runs a target to time it. prompt: a short one; decode: ids to text; stop: ends it early."""

    def __init__(
        self,
        lm: CausalLM,
        prompt: Sequence[int],
        decode: Callable[[Sequence[int]], str],
        stop: threading.Event,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._lm = lm
        self._prompt = prompt
        self._decode = decode
        self._stop = stop
        self._clock = clock
        self._written: list[int] = []

    def plain_seconds(self) -> float | None:
        """What a token takes in plain decoding; None where not even one came."""
        seconds: list[float] = []
        self._written.clear()
        for done in islice(self._rounds(self._prompt, Drafting(Off(), 0)), _PLAIN_ROUNDS):
            self._written += done.ids
            seconds.append(done.seconds)
            if len(seconds) >= _FEWEST_PLAIN_ROUNDS and sum(seconds) > _PLAIN_SECONDS:
                break
        return median(seconds) if seconds else None

    def measure(self, costs: CostModel) -> None:
        """Time what `costs` lacks, the edges of steps first; where it lacks nothing, refresh it."""
        until = self._clock() + COSTS_SECONDS
        generator, memo = random.Random(0), self._lm.new_memo()
        ids = [generator.randrange(self._lm.vocabulary) for _ in range(_LENGTHS[-1])]
        row_seconds, measured = 0.0, False
        try:
            for length in _LENGTHS:
                wanted = _missing(costs, length)[:_EDGES]
                room = self._lm.context_length - length - MOST_ROWS - _EDGES * _TIMES
                reading = row_seconds * length
                if wanted and room > 0 and reading < _READING_SHARE * (until - self._clock()):
                    row_seconds = self._time(costs, memo, ids[:length], wanted, until)
                    measured = True
            wanted = _missing(costs, _LENGTHS[0])
            if self._clock() < until and (wanted or not measured):
                self._time(costs, memo, ids[: _LENGTHS[0]], wanted, until)
        except OutOfMemory:
            pass  # What was measured serves; a reply may never need as much.

    def trial(self, family: Family, target: Target, costs: CostModel) -> Trial | None:
        """What a family's best choice gains; None where there is no time to find out."""
        if family.search is None or costs.is_empty:
            return None
        self._write_on()
        if len(self._written) < _FEWEST_WRITTEN:
            return None
        ids = [*self._prompt, *self._written]
        until = self._clock() + SEARCH_SECONDS
        found = family.search(target, Sample(ids, len(self._prompt), costs, self._clock, until))
        if found is None or found.choice is None:
            return found
        return found if self.pays(family.build(target, found.choice), costs) else Trial()

    def pays(self, drafter: Drafter, costs: CostModel) -> bool:
        """Whether a drafter gains anything in a short trial."""
        until = self._clock() + TRIAL_SECONDS
        planner = Planner(costs)
        drafting = Drafting(drafter, _TRIAL_LENGTH, planner=planner)
        for _ in islice(self._rounds(self._prompt, drafting), _TRIAL_ROUNDS):
            if self._clock() > until:
                break
        return any(planner.gain(proposer) > 0.0 for proposer in drafter.proposers)

    def _write_on(self) -> None:
        """Go on with what plain rounds have written, as far as the time suffices."""
        until = self._clock() + WRITING_SECONDS
        prompt = [*self._prompt, *self._written]
        room = min(_WRITTEN - len(self._written), self._lm.context_length - len(prompt))
        for done in islice(self._rounds(prompt, Drafting(Off(), 0)), max(0, room)):
            self._written += done.ids
            if self._clock() > until:
                break

    def _time(
        self,
        costs: CostModel,
        memo: KVMemo,
        prompt: Sequence[int],
        counts: Sequence[int],
        until: float,
    ) -> float:
        """Time each of these counts a few times, or a few known ones; the seconds to read a row.

        The first round does not count: memory is being set aside in it.
        """
        began, filler = self._clock(), _Filler(self._lm.vocabulary)
        left = iter([*counts] * _TIMES if counts else _REFRESHED)
        take_in = costs.measure if counts else costs.observe
        row_seconds = 0.0
        for done in self._rounds(prompt, Drafting(filler, MOST_ROWS - 1), memo):
            if filler.rows:
                take_in(done.rows, len(prompt), done.seconds - done.draft_seconds)
            else:
                row_seconds = (self._clock() - began - done.seconds) / len(prompt)
            filler.rows = next(left, 0)
            if not filler.rows or self._clock() > until:
                break
        return row_seconds

    def _rounds(
        self, prompt: Sequence[int], drafting: Drafting, memo: KVMemo | None = None
    ) -> Iterator[Committed]:
        room = max(1, self._lm.context_length - len(prompt))
        ending = ReplyText(
            self._decode,
            end_ids=frozenset(),
            stop_texts=(),
            max_new_tokens=room,
            context_room=room,
        )
        steps = speculate(
            self._lm,
            memo or self._lm.new_memo(),
            prompt,
            drafting,
            params=SamplingParams(),
            ending=ending,
            stop=self._stop,
        )
        return (step for step in steps if isinstance(step, Committed))


def _missing(costs: CostModel, length: int) -> list[int]:
    return [rows for rows in EDGES_FIRST if not costs.is_measured(rows, length)]


class _Filler:
    """Fills a pass to `rows` rows with ids that mean nothing."""

    name = "filler"
    proposers: tuple[str, ...] = (name,)
    taps: tuple[int, ...] = ()

    def __init__(self, vocabulary: int) -> None:
        self.rows = 0
        self._vocabulary = vocabulary

    def propose(
        self, context: Context, budget: Budget, params: SamplingParams, noise: Noise
    ) -> Draft:
        """As many ids as are missing, whatever they are."""
        del params, noise
        first, count = len(context.ids), max(0, min(self.rows - 1, budget.depth))
        return Draft.chain([at % self._vocabulary for at in range(first, first + count)], self.name)

    def passengers(self, context: Context) -> Passengers:
        """None."""
        del context
        return NO_PASSENGERS

    def observe(self, outcome: Observation) -> None:
        """Nothing to learn."""
