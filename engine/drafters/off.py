"""No drafter: every draft is empty, and what is left is plain decoding."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.draft import NO_DRAFT, NO_PASSENGERS, Draft, Passengers
from engine.drafters.family import Family, Target, refuse_choice

if TYPE_CHECKING:
    from engine.drafters.drafter import Context, Observation
    from engine.params import SamplingParams
    from engine.planning import Budget
    from engine.sampling import Noise


class Off:
    """Proposes nothing."""

    name = "off"
    proposers: tuple[str, ...] = ()
    taps: tuple[int, ...] = ()

    def propose(
        self, context: Context, budget: Budget, params: SamplingParams, noise: Noise
    ) -> Draft:
        """An empty draft."""
        del context, budget, params, noise
        return NO_DRAFT

    def passengers(self, context: Context) -> Passengers:
        """None."""
        del context
        return NO_PASSENGERS

    def observe(self, outcome: Observation) -> None:
        """Nothing to learn."""


def _build(target: Target, choice: str | None) -> Off:
    del target
    refuse_choice(FAMILY.name, choice)
    return Off()


def _reason(target: Target) -> str | None:
    del target
    return None


FAMILY = Family(name="off", label="Off", build=_build, reason=_reason)
