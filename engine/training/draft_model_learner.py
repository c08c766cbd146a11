"""Learns a small draft model: a few of the target's layers, taught to say what the whole one says.

Knowledge distillation (Hinton et al., arXiv 1503.02531) on the target's own text, with its
distribution as what is to be said and its final state as where the layers should come to. The
embedding and the head are borrowed from the target; a map before the head makes of states that no
layer of the target would leave there something that the head understands.
"""

# torch's own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from engine.drafters.eagle_layer import EagleLayer, RmsNorm
from engine.drafters.projection import DenseProjection
from engine.models.causal_lm import FINAL
from engine.training.acceptance import CHAIN
from engine.training.chosen_layers import chosen_layers
from engine.training.learner import Export
from engine.training.packed_attention import PackedAttention
from engine.training.starts import Draw, linear_fit
from engine.training.target_layers import layer_sizes, layer_weights
from engine.training.weights import Weights, levelled, normed, sizes_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torch import Tensor

    from engine.drafters.head_files import Config
    from engine.models.causal_lm import CausalLM
    from engine.training.batches import Batch
    from engine.training.starts import Beginning
    from engine.training.target_layers import LayerSizes
    from engine.training.teacher import Taught

_NORM, _MAP = "model.norm.weight", "output_map.weight"


class DraftModelLearner:
    """Layers of Llama's kind between the target's embedding and its head."""

    taps: tuple[int, ...] = (FINAL,)

    def __init__(self, beginning: Beginning) -> None:
        self._with = beginning
        self.drafted = beginning.drafted
        lm, self._sizes = beginning.lm, layer_sizes(beginning.lm)
        chosen = chosen_layers(beginning.recipe, lm.num_layers)
        self._layers = len(chosen)
        self._state_sizes = sizes_of(beginning.sample.hidden[FINAL])
        start = _start(lm, chosen, self._sizes, Draw(beginning.recipe.seed))
        self.weights = Weights.scaled(start, {}, beginning.device)
        self.weights = Weights.scaled(*self._with_linear_guess(start), beginning.device)

    def loss(
        self, batch: Batch, taught: Taught, noise: torch.Generator, depths: int
    ) -> tuple[Tensor, dict[str, float]]:
        """The cross-entropy, and the distance to the target's final state if it counts."""
        del noise, depths
        recipe, states = self._with.recipe, self.states(batch)
        rows = batch.index(batch.replies)
        counts = (taught.places[rows] >= 0).float()
        shares = counts / counts.sum().clamp(min=1.0)
        loss = taught.cross_entropy(states, rows, shares)
        parts = {"cross-entropy": float(loss.detach())}
        if recipe.feature_weight:
            true, sizes = batch.hidden[FINAL][rows].float(), self._state_sizes
            distance = functional.smooth_l1_loss(states / sizes, true / sizes)
            parts["distance"] = float(distance.detach())
            loss = loss + recipe.feature_weight * distance
        return loss, parts

    @torch.no_grad()
    def hits(self, batch: Batch) -> list[Tensor]:
        """Per example (places of the reply, depths) bool: whether a greedy chain is right there.

        The model reads what was committed, so a chain is right as long as each next token is.
        """
        drafted = self.drafted
        places = drafted.places[batch.next_ids[batch.index(batch.replies)]]
        right = (drafted.best(self.states(batch))[:, 0] == places).cpu()
        return [
            functional.pad(each, (0, CHAIN - 1)).unfold(0, CHAIN, 1)
            for each in right.split([len(reply) for reply in batch.replies])
        ]

    def export(self, held_out: Sequence[Batch], drawn: Sequence[Batch]) -> Export:
        """A Llama folder without embedding and head."""
        del held_out, drawn
        config = self._with.config() | self._sizes.config() | self._llama_config()
        return Export(config, self._with.stored(self.weights.tensors()))

    def states(self, batch: Batch) -> Tensor:
        """What the head takes behind the rows of the replies, (rows, hidden size) float32."""
        tensors, kind = self.weights.tensors(), self.drafted.weight.dtype
        residual = self._residual(batch, tensors)
        normed = RmsNorm(tensors[_NORM], self._sizes.epsilon)(residual)
        return DenseProjection(tensors[_MAP].to(kind))(normed)

    def _residual(self, batch: Batch, tensors: Mapping[str, Tensor]) -> Tensor:
        """Behind the layers, of the rows of the replies."""
        kind = self.drafted.weight.dtype
        residual, chains = self._with.embedded(batch.ids), batch.examples
        for place in range(self._layers):
            part = _Part(tensors, f"model.layers.{place}.", self._sizes, kind)
            layer = part.layer()
            inputs = part.norm("input_layernorm")(residual)
            queries, keys, values = layer.project(inputs, batch.positions)
            attention = PackedAttention(keys, values, batch.examples)
            if place == self._layers - 1:  # what the prompts' rows would give, nobody asks for
                chains, rows = batch.replies, batch.index(batch.replies)
                queries, residual = queries[:, rows], residual[rows]
            residual = layer.finish(residual, attention.mix(queries, chains))
        return residual

    @torch.no_grad()
    def _with_linear_guess(
        self, start: Mapping[str, Tensor]
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """The norm and the map that make most of the layers as they are; with their scales."""
        sample, true = self._with.sample, self._state_sizes
        residual = self._residual(sample, self.weights.tensors())
        level = levelled(residual)
        rows = sample.hidden[FINAL][sample.index(sample.replies)].float()
        weight, _ = linear_fit(normed(residual) * level, rows / true, centred=False)
        guess = {_NORM: torch.ones_like(level), _MAP: weight}
        return {**start, **guess}, {_NORM: level, _MAP: true[:, None]}

    def _llama_config(self) -> Config:
        lm = self._with.lm
        return {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "num_hidden_layers": self._layers,
            "max_position_embeddings": lm.context_length,
            "rope_parameters": {"rope_type": "default", "rope_theta": self._sizes.base},
            "tie_word_embeddings": False,
            "target_embedding": True,
        }


class _Part:
    """One layer's tensors, made ready for use: matrices of a kind, all else in float32."""

    def __init__(
        self, tensors: Mapping[str, Tensor], prefix: str, sizes: LayerSizes, kind: torch.dtype
    ) -> None:
        self._tensors = tensors
        self._prefix = prefix
        self._sizes = sizes
        self._kind = kind

    def layer(self) -> EagleLayer:
        """Attention and feed-forward."""
        sizes = self._sizes
        pairs = torch.arange(0, sizes.head_width, 2, dtype=torch.float64)
        return EagleLayer(
            heads=sizes.heads,
            kv_heads=sizes.kv_heads,
            head_width=sizes.head_width,
            speeds=sizes.base ** (-pairs / sizes.head_width),
            queries_keys_values=self._joined(*(f"self_attn.{each}_proj" for each in "qkv")),
            out=self._joined("self_attn.o_proj"),
            feed_forward_norm=self.norm("post_attention_layernorm"),
            gate_up=self._joined("mlp.gate_proj", "mlp.up_proj"),
            down=self._joined("mlp.down_proj"),
        )

    def norm(self, name: str) -> RmsNorm:
        """One of its norms."""
        return RmsNorm(self._tensors[f"{self._prefix}{name}.weight"], self._sizes.epsilon)

    def _joined(self, *names: str) -> DenseProjection:
        parts = [self._tensors[f"{self._prefix}{name}.weight"] for name in names]
        return DenseProjection(torch.cat(parts).to(self._kind))


def _start(lm: CausalLM, chosen: Sequence[int], sizes: LayerSizes, draw: Draw) -> dict[str, Tensor]:
    """Copies of the target's layers, or new ones where the target has others than Llama's."""
    start: dict[str, Tensor] = {}
    for place, index in enumerate(chosen):
        weights = layer_weights(lm, index) or _new_layer(sizes, draw)
        start |= {f"model.layers.{place}.{name}": held for name, held in weights.items()}
    return start


def _new_layer(sizes: LayerSizes, draw: Draw) -> dict[str, Tensor]:
    drawn = {name: draw(*shape) for name, shape in sizes.shapes(sizes.hidden).items()}
    ones = torch.ones(sizes.hidden)
    return drawn | {"input_layernorm.weight": ones, "post_attention_layernorm.weight": ones}
