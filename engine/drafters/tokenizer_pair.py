"""A target's tokenizer beside a drafter's: which of their ids mean the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from engine.drafters.retelling import Retelling
from engine.errors import DrafterMismatch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.models.causal_lm import CausalLM
    from engine.models.spelling import Spelling


@dataclass(frozen=True, slots=True)
class TokenizerPair:
    """ours: the target's; theirs: the drafter's. ends: the ids that end a turn with each."""

    ours: Spelling
    theirs: Spelling
    our_ends: frozenset[int]
    their_ends: frozenset[int]

    @classmethod
    def of(cls, target: CausalLM, ours: Spelling, lm: CausalLM, theirs: Spelling) -> Self:
        """The pair of two models; what ends a text for a tokenizer ends it for a drafter too."""
        own = frozenset[int]() if theirs.end_id is None else frozenset([theirs.end_id])
        return cls(ours, theirs, target.end_ids, lm.end_ids | own)

    def retelling(self) -> Retelling:
        """A new conversation, told in the drafter's tokens."""
        controls = {token: self._told(name) for token, name in self.ours.controls.items()}
        end = _main_end(self.theirs, self.their_ends)
        for token in self.our_ends:
            name = self.ours.controls.get(token, "")
            if end is not None and name not in self.theirs.ids_by_word:
                controls[token] = (end,)
        return Retelling(self.ours, self.theirs, controls)

    def controls_told_back(self) -> dict[int, int | None]:
        """The drafter's controls, with the target's ids of the same meaning; None: there is none.

        Another name for the end of a turn is no other meaning.
        """
        known = self.ours.ids_by_word
        told = {token: known.get(name) for token, name in self.theirs.controls.items()}
        end = _main_end(self.ours, self.our_ends)
        unnamed = {token: end for token in self.their_ends if told.get(token) is None}
        return told | unnamed

    def shared_controls(self) -> dict[int, int]:
        """Per id of the target the drafter's control of the same meaning."""
        told_back = self.controls_told_back()
        shared = {ours: theirs for theirs, ours in told_back.items() if ours is not None}
        # Where several of theirs mean one of ours, the usual end of a turn is the likeliest.
        end = _main_end(self.theirs, self.their_ends)
        usual = None if end is None else told_back[end]
        return shared if usual is None or end is None else shared | {usual: end}

    def _told(self, name: str) -> Sequence[int]:
        """The drafter's control of the same name, or else the name as text."""
        token = self.theirs.ids_by_word.get(name)
        return (token,) if token is not None else self.theirs.inside(name) or ()


def shared_words(ours: Spelling, theirs: Spelling) -> dict[int, int]:
    """Per id of ours theirs of the same spelling, controls left out.

    Raises:
        DrafterMismatch: they have none in common.
    """
    known = theirs.ids_by_word
    words = {
        token: known[word]
        for word, token in ours.ids_by_word.items()
        if isinstance(word, bytes) and word in known
    }
    if not words:
        raise DrafterMismatch(
            f"{theirs.name} and {ours.name} have no token in common, so there are no shared words "
            "to draft with. Choose it as a draft model, which goes through text."
        )
    return words


def _main_end(spelling: Spelling, ends: frozenset[int]) -> int | None:
    """The id that stands for all that end a turn."""
    return spelling.end_id if spelling.end_id in ends else min(ends, default=None)
