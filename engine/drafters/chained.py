"""A chain of drafters: where the first is sure it drafts, and else another does.

The hybrid of SuffixDecoding (arXiv 2411.04975) and SAM Decoding (2411.10666).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.drafters.family import Family, Target

if TYPE_CHECKING:
    from engine.draft import Draft, Passengers
    from engine.drafters.drafter import Context, Drafter, Observation
    from engine.params import SamplingParams
    from engine.planning import Budget
    from engine.sampling import Noise

LONG_MATCH = 5
"""Tokens that must match for the first to be sure."""


class Chained:
    """Two drafters, and a node says which of them proposed it.

    first: one that proposes without drawing, whose drafts' grade is the length of their match.
    other: whoever drafts where that is below `long_match`.
    """

    def __init__(
        self, name: str, first: Drafter, other: Drafter, *, long_match: int = LONG_MATCH
    ) -> None:
        self.name = name
        self.proposers = (*first.proposers, *other.proposers)
        self.taps = tuple(dict.fromkeys((*first.taps, *other.taps)))
        self._first = first
        self._other = other
        self._long_match = long_match

    def propose(
        self, context: Context, budget: Budget, params: SamplingParams, noise: Noise
    ) -> Draft:
        """The first one's draft after a long match; else the other's, if it has one."""
        share = budget.share(self._first.name)
        draft, _ = budget.judge(self._first.propose(context, share, params, noise))
        if len(draft) and draft.grades[0] >= self._long_match:
            return draft
        other = self._other.propose(context, budget.share(self._other.name), params, noise)
        # Once drawn, a draft is taken: left out for what was drawn, it would bias the text.
        return other if len(other) else draft

    def passengers(self, context: Context) -> Passengers:
        """The other's; the first one has none."""
        return self._other.passengers(context)

    def observe(self, outcome: Observation) -> None:
        """Both learn from every round."""
        self._first.observe(outcome)
        self._other.observe(outcome)


def chain(first: Family, other: Family) -> Family:
    """The family of both, which takes what the other takes: "suffix+draft-model:PATH"."""
    name = f"{first.name}+{other.name}"

    def build(target: Target, choice: str | None) -> Chained:
        return Chained(name, first.build(target, None), other.build(target, choice))

    def reason(target: Target) -> str | None:
        return first.reason(target) or other.reason(target)

    return Family(
        name=name,
        label=f"{first.label} + {other.label[:1].lower()}{other.label[1:]}",
        build=build,
        reason=reason,
        needs=other.needs,
        shares_with=other.name,
        path=other.path,
        grows_trees=first.grows_trees or other.grows_trees,
    )
