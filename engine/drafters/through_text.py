"""A draft model with another tokenizer, through text: what it writes, in the target's tokens.

String-level exact match (SLEM) in Timor et al., arXiv 2502.05202. The text is the drafter's
likeliest, so each token is a proposal that nobody drew, and every rule judges it exactly.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

from engine.draft import NO_DRAFT, NO_PASSENGERS, Draft, Passengers
from engine.drafters.retelling import continued, tail_of
from engine.drafters.tokenizer_pair import TokenizerPair
from engine.params import SamplingParams
from engine.sampling import needs_prefixes, processed_log_probabilities

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.drafters.drafter import Context, Observation
    from engine.drafters.family import Target
    from engine.models.causal_lm import CausalLM
    from engine.planning import Budget
    from engine.sampling import Noise

_STEPS_PER_TOKEN = 3
"""How many of its own tokens a drafter may write for each of the target's."""


class TextDrafter:
    """Writes with a language model of other tokens, and spells that as the target would.

    It keeps the conversation in its own tokens, and a memo of them. A draft stops at a control.
    """

    taps: tuple[int, ...] = ()

    def __init__(self, lm: CausalLM, pair: TokenizerPair, name: str) -> None:
        self.name = name
        self.proposers = (name,)
        self._lm = lm
        self._memo = lm.new_memo()
        self._retelling = pair.retelling()
        self._ours = pair.ours
        self._theirs = pair.theirs
        self._controls = pair.controls_told_back()

    def propose(
        self, context: Context, budget: Budget, params: SamplingParams, noise: Noise
    ) -> Draft:
        """A chain of the tokens that the drafter's text has, up to its end of turn."""
        del noise
        if not budget.depth:
            return NO_DRAFT
        self._retelling.follow(context.ids)
        ids, held = self._retelling.to_go_on()
        tail = tail_of(self._ours, context.ids)
        return Draft.chain(self._written(ids, held, tail, budget.depth, params), self.name)

    def passengers(self, context: Context) -> Passengers:
        """None."""
        del context
        return NO_PASSENGERS

    def observe(self, outcome: Observation) -> None:
        """Nothing to learn: the conversation is followed when it is asked."""

    def _written(
        self, ids: list[int], held: bytes, tail: Sequence[int], depth: int, params: SamplingParams
    ) -> Sequence[int]:
        """At most `depth` of the target's ids.

        held: what the conversation already has of the text; a text that begins otherwise is none.
        """
        room = self._lm.context_length - len(ids) if ids else 0
        text, ends, found = b"", list[int](), list[int]()
        for _ in range(min(room, _STEPS_PER_TOKEN * depth + 1)):
            token = self._next(ids, params)
            last = self._spelled(token)
            if not last:
                control = self._controls.get(token)
                is_whole = self._ours.bytes_of(found) == text[len(held) :]
                found += [control] if control is not None and is_whole else []
                break
            ids.append(token)
            text += last
            if not text.startswith(held[: len(text)]):
                return ()
            ends.append(len(text) - len(held))
            # What can't be spelled, as half a character, changes nothing yet.
            found = [*continued(self._ours, tail, text[len(held) :])] or found
            if self._settled(found, ends, last) >= depth:
                break
        return found[:depth]

    def _next(self, ids: Sequence[int], params: SamplingParams) -> int:
        """The drafter's likeliest token, by the target's penalty."""
        scores = self._lm.score(self._memo, ids)
        scores.keep()
        likeliest = SamplingParams(repetition_penalty=params.repetition_penalty)
        prefixes = [ids] if needs_prefixes(likeliest) else None
        return int(processed_log_probabilities(scores.logits[:1], prefixes, likeliest).argmax())

    def _spelled(self, token: int) -> bytes:
        """Its text; none for a control, an end of turn, and an id that no text has."""
        if token in self._controls or token >= len(self._theirs.spelled):
            return b""
        return self._theirs.spelled[token]

    def _settled(self, found: Sequence[int], ends: Sequence[int], last: bytes) -> int:
        """How many of the target's ids will hardly change with what is written next.

        Those up to a place where both have ended a token, and more has been written since; or all
        if the last is a token of both.

        ends: where each of the drafter's tokens ends; last: what its last one spells.
        """
        if found and self._ours.spelled[found[-1]] == last:
            return len(found)
        places = accumulate(len(self._ours.spelled[token]) for token in found)
        return max((count for count, at in enumerate(places, 1) if at in ends[:-1]), default=0)


def text_drafter(target: Target, path: str, name: str) -> TextDrafter:
    """A drafter that writes with the model at `path`.

    Raises:
        EngineError: it can't be loaded, or one of the tokenizers can't be followed.
    """
    ours, theirs = target.spelling(), target.spelling(path)
    lm = target.draft_lm(path)
    return TextDrafter(lm, TokenizerPair.of(target.lm, ours, lm, theirs), name)
