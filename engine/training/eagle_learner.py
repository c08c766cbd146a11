"""Learns an EAGLE head: to guess the target's next state from this one and the token between.

Li et al., arXiv 2401.15077: a distance between states and cross-entropy, with noise on what is
given. Unlike there, chains are trained as they are drafted, on the head's own guesses (EAGLE-3's
training-time test, arXiv 2503.01840), and what is said is compared with the target's distribution.
"""

# torch's own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from engine.drafters.eagle_loading import eagle_of
from engine.models.causal_lm import FINAL
from engine.training.chain_lessons import ChainLessons, ranks
from engine.training.learner import Export
from engine.training.sharpness import said_of_sharpness
from engine.training.starts import Draw, linear_fit
from engine.training.target_layers import layer_sizes
from engine.training.unrolling import unroll
from engine.training.weights import Weights, sizes_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from torch import Tensor

    from engine.drafters.eagle_head import EagleHead
    from engine.drafters.head_files import Config
    from engine.drafters.head_fit import FittedHeads
    from engine.training.batches import Batch
    from engine.training.starts import Beginning
    from engine.training.teacher import Taught

LAYER = "layers.0."
_QUIET = 0.1
"""What a new layer's outputs are scaled by, so that the residual comes through at first."""


@dataclass(frozen=True, eq=False)
class EagleStart:
    """A head before it has learnt anything.

    taps: the target's layers that it looks into. make: the head from tensors of these names.
    """

    config: Config
    weights: Weights
    taps: tuple[int, ...]
    make: Callable[[FittedHeads], EagleHead]


class EagleLearner:
    """Heads of one layer, over whatever states they take."""

    def __init__(self, beginning: Beginning, start: EagleStart) -> None:
        self.taps: tuple[int, ...] = tuple(dict.fromkeys((*start.taps, FINAL)))
        self.weights = start.weights
        self._with = beginning
        self.drafted = beginning.drafted
        self._start = start
        self._sizes = sizes_of(beginning.sample.hidden[FINAL])

    def head(self) -> EagleHead:
        """The head as its drafter would have it, but that gradients flow through."""
        tensors = self.weights.tensors()
        return self._start.make(self._with.fitted(self._start.config, tensors))

    def loss(
        self, batch: Batch, taught: Taught, noise: torch.Generator, depths: int
    ) -> tuple[Tensor, dict[str, float]]:
        """Per depth the cross-entropy, and the distance to the target's next state if it counts."""
        recipe, lessons = self._with.recipe, ChainLessons(batch, taught)
        head = self.head()
        features = self._noisy(head.fused(batch.hidden), noise)
        total, parts = features.new_zeros(()), dict[str, float]()
        for depth, guess in enumerate(self._unrolled(head, batch, features, depths)):
            loss = lessons.loss(depth, head.before_output(guess))
            parts[f"cross-entropy {depth + 1}"] = float(loss.detach())
            if recipe.feature_weight:
                distance = self._distance(batch, depth, guess)
                parts[f"distance {depth + 1}"] = float(distance.detach())
                loss = loss + recipe.feature_weight * distance
            total = total + recipe.fading**depth * loss
        return total, parts

    @torch.no_grad()
    def hits(self, batch: Batch) -> list[Tensor]:
        """Per example (places of the reply, depths) bool: whether a greedy chain is right there."""
        return [each == 0 for each in ranks(batch, self.drafted, self._guesses(batch), 1)]

    @torch.no_grad()
    def export(self, held_out: Sequence[Batch], drawn: Sequence[Batch]) -> Export:
        """The folder that the families of EAGLE read, with how much log q should count."""
        del held_out
        guesses = ((batch, self._guesses(batch)) for batch in drawn)
        config = self._start.config | said_of_sharpness(guesses, self.drafted)
        return Export(config, self._with.stored(self.weights.tensors()))

    def _guesses(self, batch: Batch) -> list[Tensor]:
        """Per depth what the output takes of all chains."""
        head, depths = self.head(), self._with.recipe.depths
        unrolled = self._unrolled(head, batch, head.fused(batch.hidden), depths)
        return [head.before_output(guess) for guess in unrolled]

    def _unrolled(
        self, head: EagleHead, batch: Batch, features: Tensor, depths: int
    ) -> Iterator[Tensor]:
        tokens = self._with.embedded(batch.next_ids)
        return unroll(head, batch, features, tokens, depths)

    def _noisy(self, features: Tensor, noise: torch.Generator) -> Tensor:
        most = self._with.recipe.noise
        if not most:
            return features
        drawn = torch.rand(features.shape, generator=noise).to(features.device)
        return features + most * self._sizes * (2.0 * drawn - 1.0)

    def _distance(self, batch: Batch, depth: int, guess: Tensor) -> Tensor:
        """Between guesses and the target's states, in sizes of their elements."""
        rows = batch.index(batch.chains(depth))
        true = batch.hidden[FINAL][rows + depth + 1].to(guess.dtype)
        return functional.smooth_l1_loss(guess / self._sizes, true / self._sizes)


def eagle_start(beginning: Beginning) -> EagleStart:
    """A new EAGLE head, which guesses the next state as well as a linear function can."""
    sizes, sample = layer_sizes(beginning.lm), beginning.sample
    hidden, draw = sizes.hidden, Draw(beginning.recipe.seed)
    states = sizes_of(sample.hidden[FINAL])
    embedded = beginning.embedded(sample.next_ids)
    tokens = sizes_of(embedded)
    # All that is learnt is learnt as if every element of the target's states were of size 1.
    rows = sample.index(sample.chains(0))
    seen = torch.cat([embedded / tokens, sample.hidden[FINAL].float() / states], dim=1)
    weight, bias = linear_fit(seen[rows], sample.hidden[FINAL][rows + 1].float() / states)
    start = new_layer(sizes.shapes(hidden), draw) | {
        "fc.weight": weight,
        "fc.bias": bias,
        f"{LAYER}post_attention_layernorm.weight": torch.ones(hidden),
    }
    given, inside = torch.cat([tokens, states]), states.square().mean().sqrt() / states
    scales = {
        "fc.weight": states[:, None] / given,
        "fc.bias": states,
        f"{LAYER}post_attention_layernorm.weight": inside,
        **{f"{LAYER}self_attn.{each}_proj.weight": 1 / states[None] for each in "qkv"},
        f"{LAYER}self_attn.o_proj.weight": states[:, None],
        f"{LAYER}mlp.down_proj.weight": states[:, None],
    }
    config = beginning.config() | sizes.config() | {"num_hidden_layers": 1}
    weights = Weights.scaled(start, scales, beginning.device)
    return EagleStart(config, weights, (FINAL,), eagle_of)


def new_layer(shapes: dict[str, tuple[int, int]], draw: Draw) -> dict[str, Tensor]:
    """A layer's matrices by their names in files, which give little at first."""
    quiet = ("o_proj.weight", "down_proj.weight")
    return {
        LAYER + name: draw(*shape, gain=_QUIET if name.endswith(quiet) else 1.0)
        for name, shape in shapes.items()
    }
