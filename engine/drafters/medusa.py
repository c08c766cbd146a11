"""Medusa: heads on the target's final state, each guessing one token further ahead.

Cai et al., arXiv 2401.10774; without its typical acceptance, which is not lossless.
"""

# torch's own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.draft import NO_DRAFT, NO_PASSENGERS, ROOT, Draft, Passengers
from engine.drafters.family import Family, Target, needs_rewind
from engine.drafters.head_files import find_folder
from engine.drafters.medusa_heads import load_medusa
from engine.drafters.shipped import chosen_or_shipped
from engine.drafters.tree_shape import best_shape, is_chain
from engine.models.causal_lm import FINAL
from engine.models.kv_memo import common_prefix

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from engine.drafters.drafter import Context, Observation
    from engine.drafters.medusa_heads import MedusaHeads
    from engine.params import SamplingParams
    from engine.planning import Budget
    from engine.sampling import Noise


class MedusaDrafter:
    """Drafts from the newest state that the target has told; where that is missing, not at all.

    It is missing in a reply's first round where the target read nothing, as when the drafter was
    changed. end_ids: nothing is drafted behind one.
    """

    taps: tuple[int, ...] = (FINAL,)

    def __init__(self, heads: MedusaHeads, *, end_ids: frozenset[int], name: str) -> None:
        self.name = name
        self.proposers: tuple[str, ...] = (name,)
        self._heads = heads
        self._end_ids = end_ids
        self._ids: list[int] = []
        self._first = 0
        self._states: Tensor | None = None

    def propose(
        self, context: Context, budget: Budget, params: SamplingParams, noise: Noise
    ) -> Draft:
        """A chain, or a tree whose shape follows from the budget alone."""
        state = self._state_before_root(context.ids)
        depth = min(budget.depth, len(self._heads))
        if state is None or not depth:
            return NO_DRAFT
        if is_chain(budget):
            return self._chain(state, context.ids, depth, params, noise)
        return self._tree(state, context.ids, depth, budget.nodes, params, noise)

    def passengers(self, context: Context) -> Passengers:
        """None."""
        del context
        return NO_PASSENGERS

    def observe(self, outcome: Observation) -> None:
        """Remember the newest states; older ones serve for nothing."""
        states = outcome.hidden.get(FINAL)
        if states is not None and len(states):
            self._ids, self._first, self._states = list(outcome.ids), outcome.first, states

    def _state_before_root(self, ids: Sequence[int]) -> Tensor | None:
        place = len(ids) - 2 - self._first
        if self._states is None or not 0 <= place < len(self._states):
            return None
        # Told of these very ids, not of another conversation's.
        return self._states[place] if common_prefix(self._ids, ids) >= len(ids) - 1 else None

    def _chain(
        self,
        state: Tensor,
        context_ids: Sequence[int],
        depth: int,
        params: SamplingParams,
        noise: Noise,
    ) -> Draft:
        vocabulary, ids = self._heads.vocabulary, list(context_ids)
        q_rows, q = list["Tensor | None"](), list[float]()
        for head in range(depth):
            log_q = vocabulary.log_q(self._heads.logits(state, head), [ids], params)
            pick = vocabulary.pick(log_q[0], len(ids), params, noise)
            ids.append(pick.token)
            q_rows.append(pick.row)
            q.append(pick.q)
            if pick.token in self._end_ids:
                break
        return Draft.chain(ids[len(context_ids) :], self.name, q_rows=q_rows, q=q)

    def _tree(
        self,
        state: Tensor,
        ids: Sequence[int],
        depth: int,
        nodes: int,
        params: SamplingParams,
        noise: Noise,
    ) -> Draft:
        """The best tokens of each head by rank, the same under every parent."""
        shape = best_shape(nodes, self._heads.accuracies[:depth])
        ranked = [
            self._ranked(state, head, ids, count, params, noise)
            for head, count in enumerate(_widths(shape.depths, shape.ranks))
        ]
        tokens, parents, q = list[int](), list[int](), list[float]()
        place: dict[int, int] = {ROOT: ROOT}
        for node, (above, rank, at) in enumerate(
            zip(shape.parents, shape.ranks, shape.depths, strict=True)
        ):
            if rank >= len(ranked[at - 1]) or above not in place:
                continue
            token, chance = ranked[at - 1][rank]
            tokens.append(token)
            parents.append(place[above])
            q.append(chance)
            if token not in self._end_ids:
                place[node] = len(tokens) - 1
        count = len(tokens)
        return Draft(tuple(tokens), tuple(parents), (self.name,) * count, (None,) * count, tuple(q))

    def _ranked(
        self,
        state: Tensor,
        head: int,
        ids: Sequence[int],
        count: int,
        params: SamplingParams,
        noise: Noise,
    ) -> list[tuple[int, float]]:
        """A head's best tokens that may come at all, with their probabilities."""
        vocabulary = self._heads.vocabulary
        log_q = vocabulary.log_q(self._heads.logits(state, head), [ids], params)[0]
        scores = vocabulary.scores(log_q, len(ids) + head, params, noise)
        places = scores.topk(min(count, len(scores))).indices
        chances = log_q[places].exp().tolist()
        return [
            (token, chance)
            for token, chance in zip(vocabulary.tokens(places), chances, strict=True)
            if chance > 0.0
        ]


def _widths(depths: Sequence[int], ranks: Sequence[int]) -> list[int]:
    """Per depth, how many ranks are in use."""
    widths = [0] * max(depths)
    for depth, rank in zip(depths, ranks, strict=True):
        widths[depth - 1] = max(widths[depth - 1], rank + 1)
    return widths


def _build(target: Target, choice: str | None) -> MedusaDrafter:
    wanted = "a folder with Medusa heads"
    folder = chosen_or_shipped(target, choice, FAMILY, wanted=wanted)
    heads = load_medusa(folder, target.lm, FAMILY.name)
    return MedusaDrafter(heads, end_ids=target.lm.end_ids, name=FAMILY.name)


FAMILY = Family(
    name="medusa",
    label="Medusa heads…",
    build=_build,
    reason=needs_rewind,
    needs="a folder",
    path=find_folder,
    grows_trees=True,
)
