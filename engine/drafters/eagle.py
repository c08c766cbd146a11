"""EAGLE, EAGLE-2 and EAGLE-3: one layer guesses the target's next states, and tokens from them.

Li et al., arXiv 2401.15077, 2406.16858 and 2503.01840. EAGLE-2 is EAGLE's head with trees that
grow by confidence; EAGLE-3 has a head of its own and the same trees.
"""

# torch's own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.draft import NO_DRAFT, NO_PASSENGERS, Draft, Passengers
from engine.drafters.eagle_loading import load_eagle, load_eagle3
from engine.drafters.eagle_memory import EagleMemory
from engine.drafters.eagle_tree import ConfidentPlan, FixedPlan, Growth, Plan, grow
from engine.drafters.family import Family, Target, needs_rewind
from engine.drafters.head_files import find_folder
from engine.drafters.shipped import chosen_or_shipped
from engine.drafters.tree_shape import is_chain

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from engine.drafters.drafter import Context, Observation
    from engine.drafters.eagle_head import EagleHead
    from engine.models.causal_lm import CausalLM
    from engine.params import SamplingParams
    from engine.planning import Budget
    from engine.sampling import Noise


class EagleDrafter:
    """Drafts with a head over the target's states; see EagleMemory for how it stays in step.

    plan: from nodes and depth to the tree to grow, where a budget has room for one.
    """

    def __init__(
        self, head: EagleHead, lm: CausalLM, plan: Callable[[int, int], Plan], *, name: str
    ) -> None:
        self.name = name
        self.proposers: tuple[str, ...] = (name,)
        self.taps = head.taps
        self._head = head
        self._plan = plan
        self._end_ids = lm.end_ids
        self._memory = EagleMemory(head, lm)

    def propose(
        self, context: Context, budget: Budget, params: SamplingParams, noise: Noise
    ) -> Draft:
        """A chain of the head's own choices, or a tree of its best ones."""
        # The first row takes a second token.
        if not budget.depth or len(context.ids) < 2:
            return NO_DRAFT
        guess = self._memory.catch_up(context.ids)
        if is_chain(budget):
            return self._chain(guess, context.ids, budget.depth, params, noise)
        growth = Growth(self._head, self._memory, context.ids, self._end_ids, params, noise)
        return grow(growth, guess, self._plan(budget.nodes, budget.depth), self.name)

    def passengers(self, context: Context) -> Passengers:
        """None."""
        del context
        return NO_PASSENGERS

    def observe(self, outcome: Observation) -> None:
        """Take in the true states of the accepted rows, which replace the guessed ones."""
        self._memory.observe(outcome.ids, outcome.first, outcome.hidden)

    def _chain(
        self,
        guess: Tensor,
        context_ids: Sequence[int],
        depth: int,
        params: SamplingParams,
        noise: Noise,
    ) -> Draft:
        vocabulary, ids = self._head.vocabulary, list(context_ids)
        q_rows, q = list["Tensor | None"](), list[float]()
        for place in range(depth):
            if place:
                row = len(ids) - 2
                guess = self._head.step(guess, ids[-1:], [row], self._memory.cache, row)
            log_q = vocabulary.log_q(self._head.logits(guess), [ids], params)
            pick = vocabulary.pick(log_q[0], len(ids), params, noise)
            ids.append(pick.token)
            q_rows.append(pick.row)
            q.append(pick.q)
            if pick.token in self._end_ids:
                break
        return Draft.chain(ids[len(context_ids) :], self.name, q_rows=q_rows, q=q)


def _build_eagle(target: Target, choice: str | None) -> EagleDrafter:
    head = load_eagle(_folder(target, choice, FAMILY), target.lm, FAMILY.name)
    return EagleDrafter(head, target.lm, FixedPlan, name=FAMILY.name)


def _build_eagle2(target: Target, choice: str | None) -> EagleDrafter:
    head = load_eagle(_folder(target, choice, FAMILY_2), target.lm, FAMILY_2.name)
    return EagleDrafter(head, target.lm, ConfidentPlan, name=FAMILY_2.name)


def _build_eagle3(target: Target, choice: str | None) -> EagleDrafter:
    head = load_eagle3(_folder(target, choice, FAMILY_3), target.lm, FAMILY_3.name)
    return EagleDrafter(head, target.lm, ConfidentPlan, name=FAMILY_3.name)


def _folder(target: Target, choice: str | None, family: Family) -> str:
    return chosen_or_shipped(target, choice, family, wanted="a folder with an EAGLE head")


FAMILY = Family(
    name="eagle",
    label="EAGLE…",
    build=_build_eagle,
    reason=needs_rewind,
    needs="a folder",
    path=find_folder,
    grows_trees=True,
)
FAMILY_2 = Family(
    name="eagle2",
    label="EAGLE-2…",
    build=_build_eagle2,
    reason=needs_rewind,
    needs="a folder",
    shares_with=FAMILY.name,
    path=find_folder,
    grows_trees=True,
)
FAMILY_3 = Family(
    name="eagle3",
    label="EAGLE-3…",
    build=_build_eagle3,
    reason=needs_rewind,
    needs="a folder",
    path=find_folder,
    grows_trees=True,
)
