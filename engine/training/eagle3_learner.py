"""Learns an EAGLE-3 head: over states from low, middle and high layers, free in what it guesses.

Li et al., arXiv 2503.01840: no distance between states, and chains trained on the head's guesses.
"""

# torch's own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from engine.drafters.eagle_loading import eagle3_of
from engine.models.causal_lm import FINAL
from engine.training.chosen_layers import chosen_layers
from engine.training.copying import CopiedGuess, Marks, copying
from engine.training.eagle_learner import LAYER, EagleStart, new_layer
from engine.training.starts import Draw, linear_fit
from engine.training.target_layers import layer_sizes
from engine.training.weights import Weights, levelled, normed, sizes_of

if TYPE_CHECKING:
    from torch import Tensor

    from engine.training.starts import Beginning

_PACES = {
    "fc.weight": 0.1,
    f"{LAYER}self_attn.o_proj.weight": 0.2,
    f"{LAYER}mlp.down_proj.weight": 0.2,
}
"""What these give goes straight into what is said: a step of theirs moves that by far more."""


def eagle3_start(beginning: Beginning) -> EagleStart:
    """A new EAGLE-3 head, which guesses about as a linear function does, and copies."""
    sizes = layer_sizes(beginning.lm)
    hidden, draw = sizes.hidden, Draw(beginning.recipe.seed)
    taps = chosen_layers(beginning.recipe, beginning.lm.num_layers)
    ones = torch.ones(hidden)
    seen = _Seen.of(beginning, taps)
    fit = _linear_guess(seen, hidden)
    output = beginning.drafted.weight.float() * sizes_of(beginning.sample.hidden[FINAL])
    marks = Marks.of(sizes, draw, seen.own, output)
    low = seen.entering[:, :hidden]
    weight, constant = marks.written(fit.of_states, fit.constant, low, seen.own)
    fused_size = float((seen.entering @ weight.T + constant).square().mean().sqrt())
    guess = CopiedGuess.of(sizes, fit.of_tokens, seen.tokens, seen.states)
    attention = copying(sizes, draw, marks, fused_size, guess)
    start = new_layer(sizes.shapes(2 * hidden), draw) | {
        "fc.weight": weight,
        "fc.bias": constant,
        "norm.weight": ones * fit.size,
        **{f"fc_norm.{place}.weight": ones for place in range(len(taps))},
        f"{LAYER}input_layernorm.weight": ones,
        f"{LAYER}hidden_norm.weight": ones,
        f"{LAYER}post_attention_layernorm.weight": ones,
    }
    start |= {LAYER + name: held for name, held in attention.items()}
    # What enters is brought to size 1 element by element, and what leaves to the size that the
    # target's head is used to.
    scales = {"norm.weight": sizes_of(beginning.sample.hidden[FINAL])}
    for place, tap in enumerate(taps):
        scales[f"fc_norm.{place}.weight"] = levelled(beginning.sample.hidden[tap])
    config = beginning.config() | sizes.config()
    config |= {
        "num_hidden_layers": 1,
        "num_target_layers": beginning.lm.num_layers,
        "eagle_aux_hidden_state_layer_ids": list(taps),
        "fc_norm": True,
    }
    weights = Weights.scaled(start, scales, beginning.device, _PACES)
    return EagleStart(config, weights, taps, eagle3_of)


@dataclass(frozen=True, eq=False)
class _Seen:
    """The sample's rows of which the next state is known, elements of about the size 1.

    tokens: normed embeddings of what follows each row; own: of what it has read. entering: the
    taps' states side by side. states: the target's final ones; next_states: of the row after.
    """

    tokens: Tensor
    own: Tensor
    entering: Tensor
    states: Tensor
    next_states: Tensor

    @classmethod
    def of(cls, beginning: Beginning, taps: tuple[int, ...]) -> _Seen:
        sample = beginning.sample
        rows = sample.index(sample.chains(0))
        final = sample.hidden[FINAL].float()
        parts = [normed(sample.hidden[tap][rows].float()) for tap in taps]
        levels = [levelled(sample.hidden[tap]) for tap in taps]
        states = final / sizes_of(final)
        return cls(
            normed(beginning.embedded(sample.next_ids[rows])),
            normed(beginning.embedded(sample.ids[rows])),
            torch.cat([part * level for part, level in zip(parts, levels, strict=True)], dim=1),
            states[rows],
            states[rows + 1],
        )


@dataclass(frozen=True)
class _LinearGuess:
    """The target's next state, elements of size 1, from what enters; size: of what comes of it."""

    of_tokens: Tensor
    of_states: Tensor
    constant: Tensor
    size: float


def _linear_guess(seen: _Seen, hidden: int) -> _LinearGuess:
    inputs = torch.cat([seen.tokens, seen.entering], dim=1)
    weight, constant = linear_fit(inputs, seen.next_states)
    guessed = inputs @ weight.T + constant
    return _LinearGuess(
        weight[:, :hidden],
        weight[:, hidden:],
        constant,
        float(guessed.square().mean().sqrt()),
    )
