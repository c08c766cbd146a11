"""N-gram lookup: what followed the last tokens when they stood in the conversation before.

Prompt lookup decoding (Saxena 2023); the longest match wins, and among its places the newest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.draft import NO_PASSENGERS, Draft, Passengers
from engine.drafters.family import Family, Target, needs_rewind, refuse_choice
from engine.models.kv_memo import common_prefix

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.drafters.drafter import Context, Observation
    from engine.params import SamplingParams
    from engine.planning import Budget
    from engine.sampling import Noise


class NgramDrafter:
    """Looks up the last tokens, from `longest` of them down to `shortest`.

    end_ids: a draft stops after one of these; beyond it begins another turn.
    """

    name = "ngram"
    proposers: tuple[str, ...] = (name,)
    taps: tuple[int, ...] = ()

    def __init__(
        self, *, longest: int = 6, shortest: int = 2, end_ids: frozenset[int] = frozenset()
    ) -> None:
        self._lengths = range(longest, shortest - 1, -1)
        self._end_ids = end_ids
        self._seen: list[int] = []
        self._followed_at: dict[tuple[int, ...], int] = {}

    def propose(
        self, context: Context, budget: Budget, params: SamplingParams, noise: Noise
    ) -> Draft:
        """A chain copied from behind the newest earlier place of the longest match, its grade."""
        del params, noise
        if not budget.depth:
            return Draft()
        self._index(context.ids)
        ids = context.ids
        for length in self._lengths:
            start = self._followed_at.get(tuple(ids[-length:])) if length < len(ids) else None
            if start is not None:
                copied = self._copied(ids, start, budget.depth)
                return Draft.chain(copied, self.name, grade=length)
        return Draft()

    def passengers(self, context: Context) -> Passengers:
        """None."""
        del context
        return NO_PASSENGERS

    def observe(self, outcome: Observation) -> None:
        """Nothing to learn: the index catches up with the ids when it is asked."""

    def _index(self, ids: Sequence[int]) -> None:
        """Bring the index to hold every n-gram that something follows."""
        known = common_prefix(self._seen, ids)
        if known < len(self._seen):
            self._seen, self._followed_at, known = [], {}, 0
        for end in range(max(known, 1), len(ids)):
            for length in self._lengths:
                if length <= end:
                    self._followed_at[tuple(ids[end - length : end])] = end
        self._seen.extend(ids[known:])

    def _copied(self, ids: Sequence[int], start: int, count: int) -> list[int]:
        """Up to `count` ids from `start`; past the end it reads its own copy, as repetitions go."""
        copied: list[int] = []
        for at in range(start, start + count):
            copied.append(ids[at] if at < len(ids) else copied[at - len(ids)])
            if copied[-1] in self._end_ids:
                break
        return copied


def _build(target: Target, choice: str | None) -> NgramDrafter:
    refuse_choice(FAMILY.name, choice)
    return NgramDrafter(end_ids=target.lm.end_ids)


FAMILY = Family(name="ngram", label="N-gram", build=_build, reason=needs_rewind)
