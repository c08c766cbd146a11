"""A separate draft model: a smaller model writes the draft token by token, in the target's ids.

Leviathan, Kalman and Matias, arXiv 2211.17192; Chen et al., arXiv 2302.01318. One with another
tokenizer drafts through text instead: `through_text`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from engine.draft import NO_DRAFT, NO_PASSENGERS, Draft, Passengers
from engine.drafters.family import Family, Target, needs_rewind
from engine.drafters.shipped import chosen_or_shipped
from engine.drafters.through_text import text_drafter
from engine.models.catalog import borrowing_folder, find_model
from engine.params import Rule
from engine.sampling import (
    choose,
    needs_prefixes,
    probabilities,
    processed_log_probabilities,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from engine.drafters.drafter import Context, Drafter, Observation
    from engine.models.causal_lm import CausalLM
    from engine.params import SamplingParams
    from engine.planning import Budget
    from engine.sampling import Noise


class ModelDrafter:
    """Drafts with a language model that shares the target's ids.

    It keeps a memo of its own, so catching up, taking back and following another conversation are
    one thing; where it is a cut of the target that can share rows, it drafts behind the target's.
    vocabulary: the target's; ids beyond the drafter's own are never proposed. end_ids: a draft
    stops after one.
    """

    taps: tuple[int, ...] = ()

    def __init__(
        self, lm: CausalLM, *, vocabulary: int, end_ids: frozenset[int], name: str
    ) -> None:
        self.name = name
        self.proposers = (name,)
        self._lm = lm
        self._memo = lm.new_memo()
        self._vocabulary = vocabulary
        self._end_ids = end_ids

    def propose(
        self, context: Context, budget: Budget, params: SamplingParams, noise: Noise
    ) -> Draft:
        """A chain of the drafter's own choices, with the target's processors and noise."""
        room = self._lm.context_length - len(context.ids)
        depth = min(budget.depth, max(0, room))
        if not depth:
            return NO_DRAFT
        drawn_with_own_noise = params.rule is Rule.REJECTION and not params.is_greedy
        ids, q_rows, q = self._known(context.ids), list["Tensor | None"](), list[float]()
        shared = None if context.memo is None else self._lm.memo_behind(context.memo)
        memo = shared or self._memo
        for _ in range(depth):
            scores = self._lm.score(memo, ids)
            scores.keep()
            log_q = self._distribution(scores.logits[:1], ids, params)
            token = choose(log_q, len(ids), params, noise)
            q.append(float(log_q[token].exp()))
            # Only what was really drawn from q carries its row; a coupled choice is determined.
            q_rows.append(probabilities(log_q) if drawn_with_own_noise else None)
            ids.append(token)
            if token in self._end_ids:
                break
        drafted = ids[len(context.ids) :]
        return Draft.chain(drafted, self.name, q_rows=q_rows, q=q)

    def passengers(self, context: Context) -> Passengers:
        """None."""
        del context
        return NO_PASSENGERS

    def observe(self, outcome: Observation) -> None:
        """Nothing to learn: the memo catches up with the ids at the next draft."""

    def _known(self, ids: Sequence[int]) -> list[int]:
        """The ids, another in place of what the drafter has no row for, as of an added control."""
        last = self._lm.vocabulary - 1
        return [min(token, last) for token in ids] if max(ids) > last else list(ids)

    def _distribution(self, logits: Tensor, ids: list[int], params: SamplingParams) -> Tensor:
        """(vocabulary,) log q over the target's ids."""
        missing = self._vocabulary - logits.shape[-1]
        if missing > 0:
            logits = torch.nn.functional.pad(logits, (0, missing), value=-torch.inf)
        prefixes = [ids] if needs_prefixes(params) else None
        return processed_log_probabilities(logits[:, : self._vocabulary], prefixes, params)[0]


def model_drafter(lm: CausalLM, target: CausalLM, name: str) -> ModelDrafter:
    """A drafter that fits the target's ids and ends."""
    return ModelDrafter(lm, vocabulary=target.vocabulary, end_ids=target.end_ids, name=name)


def find_draft_model(path: str) -> None:
    """See that there is one.

    Raises:
        ModelError: there is none.
    """
    if borrowing_folder(path) is None:
        find_model(path)


def _build(target: Target, choice: str | None) -> Drafter:
    wanted = "a draft model, a GGUF file or a safetensors folder,"
    path = chosen_or_shipped(target, choice, FAMILY, wanted=wanted)
    if not target.shares_ids(path):
        return text_drafter(target, path, FAMILY.name)
    return model_drafter(target.draft_lm(path), target.lm, FAMILY.name)


FAMILY = Family(
    name="draft-model",
    label="Draft model…",
    build=_build,
    reason=needs_rewind,
    needs="a model",
    path=find_draft_model,
)
