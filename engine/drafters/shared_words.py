"""A draft model with another tokenizer, through the tokens that both vocabularies have.

Token-level intersection (TLI) in Timor et al., arXiv 2502.05202: the drafter's distribution cut to
the shared tokens and put in the target's ids, where it is processed, drawn from and judged as that
of any draft model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from engine.draft import NO_DRAFT, NO_PASSENGERS, Draft, Passengers
from engine.drafters.draft_model import find_draft_model, model_drafter
from engine.drafters.family import Family, Target, needs_rewind
from engine.drafters.head_vocabulary import HeadVocabulary
from engine.drafters.tokenizer_pair import TokenizerPair, shared_words
from engine.errors import DrafterMismatch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.drafters.drafter import Context, Drafter, Observation
    from engine.drafters.head_vocabulary import Pick
    from engine.models.causal_lm import CausalLM
    from engine.params import SamplingParams
    from engine.planning import Budget
    from engine.sampling import Noise


class SharedWordsDrafter:
    """Drafts with a language model of other tokens, as far as the target has them too.

    It keeps the conversation in its own tokens, and a memo of them. shared: per id of the target
    the drafter's; vocabulary: how many ids the target has.
    """

    taps: tuple[int, ...] = ()

    def __init__(
        self,
        lm: CausalLM,
        pair: TokenizerPair,
        shared: Mapping[int, int],
        *,
        vocabulary: int,
        name: str,
    ) -> None:
        self.name = name
        self.proposers = (name,)
        self._lm = lm
        self._memo = lm.new_memo()
        self._retelling = pair.retelling()
        self._end_ids = pair.our_ends
        self._theirs = {
            ours: theirs
            for ours, theirs in sorted(shared.items())
            if ours < vocabulary and theirs < lm.vocabulary
        }
        ours = list(self._theirs)
        self._vocabulary = HeadVocabulary(vocabulary, torch.tensor(ours))
        self._places = torch.tensor(list(self._theirs.values()))

    def propose(
        self, context: Context, budget: Budget, params: SamplingParams, noise: Noise
    ) -> Draft:
        """A chain of the drafter's own choices, with the target's processors and noise."""
        if not budget.depth:
            return NO_DRAFT
        self._retelling.follow(context.ids)
        theirs, ours = self._retelling.to_the_end(), list(context.ids)
        room = self._lm.context_length - len(theirs) if theirs else 0
        picks = list["Pick"]()
        for _ in range(min(budget.depth, room)):
            pick = self._pick(theirs, ours, params, noise)
            picks.append(pick)
            if pick.token in self._end_ids:
                break
            theirs.append(self._theirs[pick.token])
            ours.append(pick.token)
        return Draft.chain(
            [pick.token for pick in picks],
            self.name,
            q_rows=[pick.row for pick in picks],
            q=[pick.q for pick in picks],
        )

    def passengers(self, context: Context) -> Passengers:
        """None."""
        del context
        return NO_PASSENGERS

    def observe(self, outcome: Observation) -> None:
        """Nothing to learn: the conversation is followed when it is asked."""

    def _pick(
        self, theirs: list[int], ours: list[int], params: SamplingParams, noise: Noise
    ) -> Pick:
        scores = self._lm.score(self._memo, theirs)
        scores.keep()
        self._places = self._places.to(scores.logits.device)
        logits = scores.logits[:1, self._places]
        log_q = self._vocabulary.log_q(logits, [ours], params)[0]
        return self._vocabulary.pick(log_q, len(ours), params, noise)


def _build(target: Target, choice: str | None) -> Drafter:
    if choice is None:
        raise DrafterMismatch("Choose a draft model: a GGUF file or a safetensors folder.")
    if target.shares_ids(choice):
        return model_drafter(target.draft_lm(choice), target.lm, FAMILY.name)
    ours, theirs = target.spelling(), target.spelling(choice)
    words = shared_words(ours, theirs)
    lm = target.draft_lm(choice)
    pair = TokenizerPair.of(target.lm, ours, lm, theirs)
    return SharedWordsDrafter(
        lm,
        pair,
        pair.shared_controls() | words,
        vocabulary=target.lm.vocabulary,
        name=FAMILY.name,
    )


FAMILY = Family(
    name="shared-draft-model",
    label="Draft model, shared words…",
    build=_build,
    reason=needs_rewind,
    needs="a model",
    path=find_draft_model,
)
