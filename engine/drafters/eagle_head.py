"""EAGLE heads: a layer that guesses the target's next state, and what makes tokens of it.

EAGLE and EAGLE-2 have one head (arXiv 2401.15077, 2406.16858), over the target's final states;
EAGLE-3 (arXiv 2503.01840) fuses states from low, middle and high layers.
"""

# torch's own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from torch import Tensor

    from engine.drafters.eagle_layer import EagleLayer, RmsNorm, RowCache
    from engine.drafters.head_vocabulary import HeadVocabulary
    from engine.drafters.projection import Projection


@dataclass(frozen=True)
class Fusion:
    """EAGLE-3's one state of several: norms, then a projection, as far as a head has them."""

    fc: Projection
    norm: RmsNorm | None
    norms: Sequence[RmsNorm]

    def __call__(self, states: Sequence[Tensor]) -> Tensor:
        """Per tap (rows, hidden) to (rows, width)."""
        if self.norms:
            states = [norm(each) for norm, each in zip(self.norms, states, strict=True)]
        joined = torch.cat(list(states), dim=-1)
        return self.fc(joined if self.norm is None else self.norm(joined))


@dataclass(frozen=True)
class Entrance:
    """EAGLE-3's way into the layer: both halves normed side by side."""

    embedding_norm: RmsNorm
    state_norm: RmsNorm
    norm_before_residual: bool


@dataclass(frozen=True)
class EagleHead:
    """What a row takes: the target's state at a position, and the token at the next.

    embed: ids (n,) to (n, width). output: states to logits over the vocabulary.
    entrance: a projection of token and state in EAGLE, EAGLE-3's norms, see there.
    fusion: None where the final state is taken as it is.
    norm: before the output, and with `norm_output` before a state is fed back.
    like: an empty tensor where and in which numbers all is computed.
    """

    taps: tuple[int, ...]
    embed: Callable[[Tensor], Tensor]
    layer: EagleLayer
    output: Callable[[Tensor], Tensor]
    vocabulary: HeadVocabulary
    entrance: Projection | Entrance
    like: Tensor
    fusion: Fusion | None = None
    norm: RmsNorm | None = None
    norm_output: bool = False

    @torch.inference_mode()
    def features(self, hidden: Mapping[int, Tensor]) -> Tensor:
        """What the head takes of the target's rows, (rows, width)."""
        return self.fused(hidden)

    @torch.inference_mode()
    def step(
        self,
        features: Tensor,
        ids: Sequence[int],
        positions: Sequence[int],
        cache: RowCache,
        first: int,
        sees: Tensor | None = None,
    ) -> Tensor:
        """The guessed features of the positions after, (rows, width).

        ids: per row the token after its feature's. sees: as in EagleLayer.
        """
        tokens = self.embed(torch.tensor(list(ids), device=self.like.device)).to(self.like)
        inputs, residual = self.enter(features, tokens)
        return self.leave(self.layer(inputs, residual, positions, cache, first, sees))

    @torch.inference_mode()
    def logits(self, features: Tensor) -> Tensor:
        """(rows, ids of the vocabulary) for the token after each guessed feature's."""
        return self.output(self.before_output(features))

    # What a row goes through, from the target's states to logits; learning goes the same way.

    def fused(self, hidden: Mapping[int, Tensor]) -> Tensor:
        """The target's states as one, (rows, width)."""
        states = [hidden[tap].to(self.like) for tap in self.taps]
        return states[0] if self.fusion is None else self.fusion(states)

    def enter(self, features: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """What the layer's attention takes, and the residual; tokens: embedded, (rows, width)."""
        if isinstance(self.entrance, Entrance):
            normed = self.entrance.state_norm(features)
            inputs = torch.cat([self.entrance.embedding_norm(tokens), normed], dim=-1)
            return inputs, normed if self.entrance.norm_before_residual else features
        inputs = self.entrance(torch.cat([tokens, features], dim=-1))
        return inputs, inputs

    def leave(self, out: Tensor) -> Tensor:
        """What the layer gives as it is fed back."""
        return self.norm(out) if self.norm is not None and self.norm_output else out

    def before_output(self, features: Tensor) -> Tensor:
        """What the output takes of guessed features."""
        return features if self.norm is None or self.norm_output else self.norm(features)
