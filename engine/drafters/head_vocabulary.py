"""The ids that a head knows: its logits as log q, ranked and drawn in the target's ids."""

# torch's own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from engine.params import Rule
from engine.sampling import (
    draw,
    needs_prefixes,
    probabilities,
    processed_log_probabilities,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from engine.params import SamplingParams
    from engine.sampling import Noise


@dataclass(frozen=True, slots=True)
class Pick:
    """A chosen token. q: the head's probability of it; row: what it was drawn from, if it was."""

    token: int
    q: float
    row: Tensor | None


@dataclass(frozen=True, slots=True)
class HeadVocabulary:
    """Ids that a head has logits for.

    size: how many ids the target has. ids: the target's id of each logit; None: all in order.
    sharpness: what log q is multiplied by where the best are taken. A head that is unsure of p
    spreads q wider than p: noise that the target shares would then speak louder than it will for
    the target, and a tree would trust the best path less than it should.
    """

    size: int
    ids: Tensor | None = None
    sharpness: float = 1.0

    def log_q(
        self, logits: Tensor, prefixes: Sequence[Sequence[int]], params: SamplingParams
    ) -> Tensor:
        """(rows, known ids) after all processors, each row by its own prefix."""
        if self.ids is None:
            missing = self.size - logits.shape[-1]
            if missing > 0:
                logits = functional.pad(logits, (0, missing), value=-torch.inf)
            return processed_log_probabilities(logits[:, : self.size], prefixes, params)
        if not needs_prefixes(params):
            return processed_log_probabilities(logits, None, params)
        spread = processed_log_probabilities(self._spread(logits, -torch.inf), prefixes, params)
        return spread[:, self.ids]

    def scores(self, log_q: Tensor, position: int, params: SamplingParams, noise: Noise) -> Tensor:
        """What the best are taken by: sharpened log q, with the noise that the target will add.

        Under REJECTION nothing is shared, and the most probable are the best.
        """
        sharp = self.sharpness * log_q
        if params.is_greedy or params.rule is Rule.REJECTION:
            return sharp
        return sharp + noise.gumbel(position, self.ids, vocabulary=self.size).to(log_q.device)

    def pick(self, log_q: Tensor, position: int, params: SamplingParams, noise: Noise) -> Pick:
        """The token of a chain from one row of log q, by the rule in force."""
        row = None
        if params.rule is Rule.REJECTION and not params.is_greedy:
            # Drawn from the very numbers that are handed on.
            weights = probabilities(log_q)
            place = draw(weights, noise)
            row = weights if self.ids is None else self._spread(weights[None], 0.0)[0]
            return Pick(self.token(place), float(weights[place]), row)
        place = int(self.scores(log_q, position, params, noise).argmax())
        return Pick(self.token(place), float(log_q[place].exp()), row)

    def token(self, place: int) -> int:
        """The target's id of a logit."""
        return place if self.ids is None else int(self.ids[place])

    def tokens(self, places: Tensor) -> list[int]:
        """The target's ids of some logits."""
        return (places if self.ids is None else self.ids[places]).tolist()

    def _spread(self, rows: Tensor, elsewhere: float) -> Tensor:
        """(rows, size): each number at its id."""
        assert self.ids is not None
        whole = rows.new_full((len(rows), self.size), elsewhere)
        whole[:, self.ids] = rows
        return whole
