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
from engine.training.eagle_learner import LAYER, EagleStart, new_layer
from engine.training.starts import Draw, linear_fit
from engine.training.target_layers import layer_sizes
from engine.training.weights import Weights, levelled, normed, sizes_of

if TYPE_CHECKING:
    from torch import Tensor

    from engine.training.starts import Beginning
    from engine.training.target_layers import LayerSizes


def eagle3_start(beginning: Beginning) -> EagleStart:
    """A new EAGLE-3 head, which guesses about as a linear function of its inputs does."""
    sizes = layer_sizes(beginning.lm)
    hidden, draw = sizes.hidden, Draw(beginning.recipe.seed)
    taps = chosen_layers(beginning.recipe, beginning.lm.num_layers)
    ones = torch.ones(hidden)
    fit = _linear_guess(beginning, taps)
    start = new_layer(sizes.shapes(2 * hidden), draw) | {
        "fc.weight": fit.of_states,
        "fc.bias": fit.constant,
        "norm.weight": ones * fit.size,
        **{f"fc_norm.{place}.weight": ones for place in range(len(taps))},
        f"{LAYER}input_layernorm.weight": ones,
        f"{LAYER}hidden_norm.weight": ones,
        f"{LAYER}post_attention_layernorm.weight": ones,
    }
    start |= {
        LAYER + name: held for name, held in _looking_at_itself(sizes, draw, fit.of_tokens).items()
    }
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
    return EagleStart(config, Weights.scaled(start, scales, beginning.device), taps, eagle3_of)


@dataclass(frozen=True)
class _LinearGuess:
    """The target's next state, elements of size 1, from what enters; size: of what comes of it."""

    of_tokens: Tensor
    of_states: Tensor
    constant: Tensor
    size: float


def _linear_guess(beginning: Beginning, taps: tuple[int, ...]) -> _LinearGuess:
    sample = beginning.sample
    rows = sample.index(sample.chains(0))
    states = sample.hidden[FINAL].float()
    tokens = normed(beginning.embedded(sample.next_ids))
    entering = [normed(sample.hidden[tap].float()) * levelled(sample.hidden[tap]) for tap in taps]
    seen = torch.cat([tokens, *entering], dim=1)[rows]
    weight, constant = linear_fit(seen, states[rows + 1] / sizes_of(states))
    guessed = seen @ weight.T + constant
    hidden = tokens.shape[1]
    return _LinearGuess(
        weight[:, :hidden],
        weight[:, hidden:],
        constant,
        float(guessed.square().mean().sqrt()),
    )


def _looking_at_itself(sizes: LayerSizes, draw: Draw, of_tokens: Tensor) -> dict[str, Tensor]:
    """Attention in which a row sees itself most, and takes from its token what a map would give.

    Queries are keys, so nothing is as like a row as itself; what the values and the output make
    together is the map, as far as there is room for it between them.
    """
    hidden, lanes, width = sizes.hidden, sizes.kv_heads, sizes.head_width
    group = sizes.heads // lanes
    keys = draw(lanes * width, 2 * hidden)
    queries = keys.view(lanes, 1, width, -1).expand(-1, group, -1, -1).reshape(-1, 2 * hidden)
    left, strength, right = torch.linalg.svd(of_tokens)
    room = min(hidden, lanes * width)
    values = torch.zeros(lanes * width, 2 * hidden)
    values[:room, :hidden] = strength[:room, None].sqrt() * right[:room]
    out = torch.zeros(hidden, lanes * width)
    out[:, :room] = left[:, :room] * strength[:room].sqrt()
    shared = out.view(hidden, lanes, 1, width).expand(-1, -1, group, -1) / group
    return {
        "self_attn.k_proj.weight": keys,
        "self_attn.q_proj.weight": queries.clone(),
        "self_attn.v_proj.weight": values,
        "self_attn.o_proj.weight": shared.reshape(hidden, -1),
    }
