"""The target's own layers as plain matrices, for drafters that begin as a copy of some of them."""

# torch's own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from engine.models.causal_lm import FINAL
from engine.models.native.layer import Layer
from engine.models.native.native_lm import NativeLM

if TYPE_CHECKING:
    from torch import Tensor

    from engine.models.causal_lm import CausalLM
    from engine.models.native.layer import Norm
    from engine.models.native.linear import Linear

_USUAL_HEAD_WIDTH = 64
_USUAL_INNER = 8 / 3
_LARGE = 1e4


@dataclass(frozen=True, slots=True)
class LayerSizes:
    """A Llama layer's. base: of its rotation."""

    hidden: int
    heads: int
    kv_heads: int
    head_width: int
    inner: int
    base: float
    epsilon: float

    def config(self) -> dict[str, Any]:
        """As config.json spells them."""
        return {
            "hidden_act": "silu",
            "hidden_size": self.hidden,
            "intermediate_size": self.inner,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads,
            "head_dim": self.head_width,
            "rope_theta": self.base,
            "rms_norm_eps": self.epsilon,
        }

    def shapes(self, inputs: int) -> dict[str, tuple[int, int]]:
        """The matrices of a layer whose attention takes so many inputs, by their names in files."""
        queries, keys = self.heads * self.head_width, self.kv_heads * self.head_width
        return {
            "self_attn.q_proj.weight": (queries, inputs),
            "self_attn.k_proj.weight": (keys, inputs),
            "self_attn.v_proj.weight": (keys, inputs),
            "self_attn.o_proj.weight": (self.hidden, queries),
            "mlp.gate_proj.weight": (self.inner, self.hidden),
            "mlp.up_proj.weight": (self.inner, self.hidden),
            "mlp.down_proj.weight": (self.hidden, self.inner),
        }


def layer_sizes(lm: CausalLM) -> LayerSizes:
    """Those of the target's layers; usual ones of its width where it isn't native."""
    last = _native_layer(lm, lm.num_layers - 1)
    if last is None:
        return _usual_sizes(lm.score(lm.new_memo(), [0], taps=(FINAL,)).hidden[FINAL].shape[-1])
    config = last.config
    return LayerSizes(
        hidden=config.hidden,
        heads=config.heads,
        kv_heads=config.kv_heads,
        head_width=config.head_width,
        inner=len(_matrix(last.gate_up, config.hidden, _device(lm))) // 2,
        base=config.kinds[-1].rotation.base,
        epsilon=config.norm_epsilon,
    )


def layer_weights(lm: CausalLM, index: int) -> dict[str, Tensor] | None:
    """A layer of the target by the names in files, float32; None where it is no plain Llama layer.

    Plain: no biases, no other norms than the two, one rotation over whole heads, no window.
    """
    layer = _native_layer(lm, index)
    if layer is None or not _is_plain(layer, index):
        return None
    config, device = layer.config, _device(lm)
    hidden, width = config.hidden, config.head_width
    joined = _matrix(layer.queries_keys_values, hidden, device).unflatten(0, (-1, width))
    queries, keys, values = joined.split([config.heads, config.kv_heads, config.kv_heads])
    gate, up = _matrix(layer.gate_up, hidden, device).chunk(2)
    return {
        "input_layernorm.weight": _vector(layer.attention_norm, hidden, device),
        "post_attention_layernorm.weight": _vector(layer.feed_forward_norm, hidden, device),
        "self_attn.q_proj.weight": _in_halves(queries),
        "self_attn.k_proj.weight": _in_halves(keys),
        "self_attn.v_proj.weight": values.flatten(0, 1),
        "self_attn.o_proj.weight": _matrix(layer.attention_out, config.heads * width, device),
        "mlp.gate_proj.weight": gate,
        "mlp.up_proj.weight": up,
        "mlp.down_proj.weight": _matrix(layer.down, len(up), device),
    }


def _native_layer(lm: CausalLM, index: int) -> Layer | None:
    layer = lm.decoder.unpacked(index) if isinstance(lm, NativeLM) else None
    return layer if isinstance(layer, Layer) else None


def _is_plain(layer: Layer, index: int) -> bool:
    config, kind = layer.config, layer.config.kinds[index]
    extras = (layer.bias, layer.head_norm, layer.attention_out_norm, layer.down_norm, kind.sliding)
    turns_whole = kind.rotation.width == config.head_width and {*kind.rotation.divisors} == {1.0}
    return turns_whole and not config.gelu and all(extra is None for extra in extras)


def _usual_sizes(hidden: int) -> LayerSizes:
    widths = range(_USUAL_HEAD_WIDTH, 0, -2)
    width = next((width for width in widths if hidden % width == 0), 2)
    heads = max(1, hidden // width)
    inner = 16 * max(1, round(_USUAL_INNER * hidden / 16))
    return LayerSizes(hidden, heads, heads, width, inner, base=10_000.0, epsilon=1e-6)


def _device(lm: CausalLM) -> str:
    return lm.decoder.device if isinstance(lm, NativeLM) else "cpu"


@torch.no_grad()
def _matrix(projection: Linear, inputs: int, device: str) -> Tensor:
    """What a projection multiplies with, whatever it is stored in: a unit vector shows a column."""
    units = torch.eye(inputs, dtype=torch.bfloat16, device=device)
    return projection.in_full(units).float().T.contiguous()


@torch.no_grad()
def _vector(norm: Norm, width: int, device: str) -> Tensor:
    """A norm's weight: equal elements, large beside epsilon, come out as its own."""
    return norm(torch.full((1, width), _LARGE, device=device))[0]


def _in_halves(heads: Tensor) -> Tensor:
    """(heads, width, inputs) from elements side by side that turn together to the files' order."""
    return heads.unflatten(1, (-1, 2)).transpose(1, 2).flatten(0, 2)
