"""Auto: the drafters that fit this target take turns; whoever promises most drafts the round.

They are asked the cheapest first, and one that costs more only where it promises more than what
is there already.
"""

from __future__ import annotations

from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING

from engine.draft import NO_DRAFT, NO_PASSENGERS, Draft, Passengers
from engine.drafters import draft_model, eagle, layer_skip, medusa, ngram
from engine.drafters.family import Family, Target, needs_rewind
from engine.drafters.shipped import shipped_for
from engine.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.drafters.drafter import Context, Drafter, Observation
    from engine.params import SamplingParams
    from engine.planning import Budget
    from engine.sampling import Noise

_SHIPPED = (eagle.FAMILY_3, eagle.FAMILY, medusa.FAMILY, draft_model.FAMILY)
"""In the order of what is published about them, the best first: one is enough."""


class Auto:
    """Chooses among drafters of different names, the cheapest first."""

    name = "auto"

    def __init__(self, drafters: Sequence[Drafter]) -> None:
        self._drafters = tuple(drafters)
        self.proposers = tuple(name for drafter in drafters for name in drafter.proposers)
        self.taps = tuple(dict.fromkeys(tap for drafter in drafters for tap in drafter.taps))

    def propose(
        self, context: Context, budget: Budget, params: SamplingParams, noise: Noise
    ) -> Draft:
        """The draft that is worth most; its nodes carry the name of whoever proposed them."""
        best, worth = NO_DRAFT, 0.0
        for drafter in self._drafters:
            share = budget.share(drafter.name)
            if len(best) and share.worth <= worth:
                continue
            draft, its_worth = budget.judge(drafter.propose(context, share, params, noise))
            if not len(draft):
                continue
            if not draft.is_deterministic:
                # Once drawn it is taken: left out for what was drawn, it would bias the text.
                return draft
            # What was asked at a price has been compared before; only what was free is now.
            best, worth = draft, its_worth if share.worth == inf else share.worth
        return best

    def passengers(self, context: Context) -> Passengers:
        """None."""
        del context
        return NO_PASSENGERS

    def observe(self, outcome: Observation) -> None:
        """All of them learn from every round."""
        for drafter in self._drafters:
            drafter.observe(outcome)


def _build(target: Target, choice: str | None) -> Auto:
    """choice: a draft model to take in. Only the spec decides: what else was loaded does not."""
    drafters: list[Drafter] = [ngram.FAMILY.build(target, None)]
    if choice is not None:
        drafters.append(draft_model.FAMILY.build(target, choice))
    else:
        drafters.extend(_best_shipped(target))
    skip = layer_skip.FAMILY
    if skip.reason(target) is None and target.pays(skip.name):
        drafters.append(skip.build(target, None))
    return Auto(drafters)


def _best_shipped(target: Target) -> list[Drafter]:
    """The first that ships for this target and can be loaded: a damaged one stops nobody."""
    for family in _SHIPPED:
        if shipped_for(target, family) is not None and family.reason(target) is None:
            with suppress(EngineError):
                return [family.build(target, None)]
    return []


FAMILY = Family(
    name="auto",
    label="Auto",
    build=_build,
    reason=needs_rewind,
    path=draft_model.find_draft_model,
)
