"""What every head is made of, written out naively in float64: no cache, one query row at a time.

The forms are those of LLaMA as SafeAILab/EAGLE (eagle/model/cnets.py and cnets1.py) spells them:
RMSNorm, rotary positions on two halves, grouped-query attention scaled by head_dim ** -0.5, SwiGLU.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import save_file
from torch.nn.functional import silu, softmax

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from torch import Tensor
    from transformers import PreTrainedModel

Weights = dict[str, "Tensor"]

DEFAULT_ROPE_THETA = 10000.0
"""What a config without `rope_theta` means, whatever the target's own base is."""

EPSILON = 1e-5


@dataclass(frozen=True)
class Geometry:
    """The sizes a decoder layer cannot read off its weights."""

    heads: int
    kv_heads: int
    head_dim: int
    rope_theta: float = DEFAULT_ROPE_THETA
    epsilon: float = EPSILON


@dataclass(frozen=True)
class Target:
    """What a head needs to know of the model it drafts for."""

    name: str
    architecture: str
    hidden: int
    intermediate: int
    vocabulary: int
    layers: int
    heads: int
    kv_heads: int
    embeddings: Tensor
    head: Tensor

    @classmethod
    def of(cls, model: PreTrainedModel) -> Target:
        config: Any = model.config
        return cls(
            name=config.name_or_path or "tiny/target",
            architecture=type(model).__name__,
            hidden=config.hidden_size,
            intermediate=config.intermediate_size,
            vocabulary=config.vocab_size,
            layers=config.num_hidden_layers,
            heads=config.num_attention_heads,
            kv_heads=config.num_key_value_heads,
            embeddings=_plain(model.get_input_embeddings()),
            head=_plain(model.get_output_embeddings()),
        )


def linear(inputs: Tensor, weights: Mapping[str, Tensor], name: str) -> Tensor:
    outputs = inputs @ weights[f"{name}.weight"].T
    bias = weights.get(f"{name}.bias")
    return outputs if bias is None else outputs + bias


def rms_norm(inputs: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    return weight * inputs / (inputs.pow(2).mean(-1, keepdim=True) + epsilon).sqrt()


def rotated(vectors: Tensor, positions: Tensor, theta: float) -> Tensor:
    """Turns coordinate i and coordinate i + half of (n, heads, head_dim) by one angle each."""
    half = vectors.shape[-1] // 2
    rates = theta ** (-torch.arange(half, dtype=torch.float64) / half)
    angles = positions.double()[:, None, None] * rates
    first, second = vectors[..., :half], vectors[..., half:]
    return torch.cat(
        (
            first * angles.cos() - second * angles.sin(),
            second * angles.cos() + first * angles.sin(),
        ),
        -1,
    )


def attention(
    inputs: Tensor,
    weights: Mapping[str, Tensor],
    prefix: str,
    geometry: Geometry,
    positions: Tensor,
) -> Tensor:
    """Row i sees rows 0..i. Queries and keys are normed first where the file has such norms."""
    rows = inputs.shape[0]

    def heads_of(kind: str, count: int) -> Tensor:
        split = linear(inputs, weights, f"{prefix}.{kind}_proj").view(rows, count, -1)
        norm = weights.get(f"{prefix}.{kind}_norm.weight")
        return split if norm is None else rms_norm(split, norm, geometry.epsilon)

    queries = rotated(heads_of("q", geometry.heads), positions, geometry.rope_theta)
    keys = rotated(heads_of("k", geometry.kv_heads), positions, geometry.rope_theta)
    values = heads_of("v", geometry.kv_heads)
    mixed = torch.zeros(rows, geometry.heads, geometry.head_dim, dtype=torch.float64)
    for head in range(geometry.heads):
        shared = head * geometry.kv_heads // geometry.heads
        for row in range(rows):
            scores = keys[: row + 1, shared] @ queries[row, head] * geometry.head_dim**-0.5
            mixed[row, head] = softmax(scores, 0) @ values[: row + 1, shared]
    return linear(mixed.reshape(rows, -1), weights, f"{prefix}.o_proj")


def feed_forward(inputs: Tensor, weights: Mapping[str, Tensor], prefix: str) -> Tensor:
    gate = silu(linear(inputs, weights, f"{prefix}.gate_proj"))
    return linear(
        gate * linear(inputs, weights, f"{prefix}.up_proj"), weights, f"{prefix}.down_proj"
    )


def decoder_layer(
    inputs: Tensor,
    residual: Tensor,
    weights: Mapping[str, Tensor],
    prefix: str,
    geometry: Geometry,
    positions: Tensor,
) -> Tensor:
    """Attention over `inputs` (already normed) added to `residual`, then the feed-forward."""
    mixed = attention(inputs, weights, f"{prefix}.self_attn", geometry, positions)
    middle = residual + mixed
    norm = weights[f"{prefix}.post_attention_layernorm.weight"]
    return middle + feed_forward(rms_norm(middle, norm, geometry.epsilon), weights, f"{prefix}.mlp")


def layer_shapes(
    prefix: str, geometry: Geometry, *, inputs: int, hidden: int, intermediate: int
) -> dict[str, tuple[int, ...]]:
    """A decoder layer's weights, without the norms before attention."""
    queries, keys = geometry.heads * geometry.head_dim, geometry.kv_heads * geometry.head_dim
    return {
        f"{prefix}.self_attn.q_proj.weight": (queries, inputs),
        f"{prefix}.self_attn.k_proj.weight": (keys, inputs),
        f"{prefix}.self_attn.v_proj.weight": (keys, inputs),
        f"{prefix}.self_attn.o_proj.weight": (hidden, queries),
        f"{prefix}.mlp.gate_proj.weight": (intermediate, hidden),
        f"{prefix}.mlp.up_proj.weight": (intermediate, hidden),
        f"{prefix}.mlp.down_proj.weight": (hidden, intermediate),
        f"{prefix}.post_attention_layernorm.weight": (hidden,),
    }


def random_weights(
    shapes: dict[str, tuple[int, ...]], seed: int, dtype: torch.dtype = torch.float32
) -> Weights:
    """Matrices of about unit gain, small biases, norms near one: nothing may go unnoticed."""
    generator = torch.Generator().manual_seed(seed)
    weights: Weights = {}
    for name, shape in shapes.items():
        noise = torch.randn(shape, generator=generator, dtype=torch.float64)
        if len(shape) > 1:
            value = noise * shape[-1] ** -0.5
        elif name.endswith("bias"):
            value = 0.3 * noise
        else:
            value = 1 + 0.2 * noise
        weights[name] = value.to(dtype)
    return weights


def in_double(weights: Weights) -> Weights:
    """The numbers as stored, for the computation; tables of ids stay whole numbers."""
    return {
        name: value.double() if value.is_floating_point() else value
        for name, value in weights.items()
    }


def write_folder(folder: Path, config: dict[str, Any], file: str, weights: Weights) -> None:
    """config.json and one file of plain tensors, safetensors or pickled by its name."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    if file.endswith(".safetensors"):
        save_file(weights, folder / file, metadata={"format": "pt"})
    else:
        torch.save(weights, folder / file)


def _plain(module: Any) -> Tensor:
    return module.weight.detach().double().clone()
