"""EAGLE-1 and EAGLE-2 heads (one format): a folder as published, and what it must compute.

Taken from SafeAILab/EAGLE, eagle/model/cnets1.py, commit 2174a790:
- row i takes the target's feature of position i and the embedding of token i + 1, joined with the
  embedding first, through `fc` (2 hidden to hidden, bias by the config's `bias`, true when absent);
- layer 0 has no input norm, later layers have; there is no norm at the end;
- the output is the predicted next feature, and the target's own head reads it as it stands;
- rotary position i for row i, counted from 0 and on through drafted rows (`len_posi`);
- a drafted row takes the output of the row before it as its feature, and the drafted token.
The feature is the target's final state after its last norm (ea_model.py, commit 47de7b0e: `outputs
[0]` of the inner model, the very tensor its head reads), Hugging Face's `hidden_states[-1]`.
The keys of config.json are those of eagle/train/*.json (LLaMA's with one layer); `qkv_bias` for
Qwen2. `pytorch_model.bin` is tried first, then `model.safetensors`. The embeddings are the
target's, over which the file's are laid if it has any.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import torch

from tests.engine.heads_reference.blocks import (
    EPSILON,
    Geometry,
    Target,
    Weights,
    decoder_layer,
    in_double,
    layer_shapes,
    linear,
    random_weights,
    rms_norm,
    write_folder,
)

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor
    from transformers import PreTrainedModel


@dataclass(frozen=True)
class EagleReference:
    """Features (n, hidden) and the tokens after them (n,) to next features and logits."""

    weights: Weights
    geometry: Geometry
    layers: int
    embeddings: Tensor
    target_head: Tensor

    def __call__(
        self, features: Tensor, next_token_ids: Tensor, *, first_position: int = 0
    ) -> tuple[Tensor, Tensor]:
        positions = first_position + torch.arange(len(next_token_ids))
        embedded = self.embeddings[next_token_ids]
        states = linear(torch.cat((embedded, features.double()), -1), self.weights, "fc")
        for layer in range(self.layers):
            norm = self.weights.get(f"layers.{layer}.input_layernorm.weight")
            inputs = states if norm is None else rms_norm(states, norm, self.geometry.epsilon)
            states = decoder_layer(
                inputs, states, self.weights, f"layers.{layer}", self.geometry, positions
            )
        return states, states @ self.target_head.T

    def chain(
        self, features: Tensor, next_token_ids: Tensor, drafted_ids: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The rows of a drafted path (k, hidden) and (k, vocabulary), after n true rows.

        Also a node of a tree: the path is then the node's ancestors and itself.
        """
        rows, ids = features.double(), next_token_ids
        for token in drafted_ids:
            states, _ = self(rows, ids)
            rows, ids = torch.cat((rows, states[-1:])), torch.cat((ids, token[None]))
        states, logits = self(rows, ids)
        return states[len(features) :], logits[len(features) :]


def write_eagle(
    folder: Path,
    target: PreTrainedModel,
    *,
    bias: bool = True,
    qkv_bias: bool = False,
    layers: int = 1,
    embeddings: Literal["absent", "target", "own"] = "target",
    file: Literal["pytorch_model.bin", "model.safetensors"] = "pytorch_model.bin",
    kv_heads: int | None = None,
    rope_theta: float | None = None,
    seed: int = 0,
    dtype: torch.dtype = torch.float32,
) -> EagleReference:
    """`embeddings="own"`: other numbers than the target's, to see whether the file's are used."""
    facts = Target.of(target)
    geometry = _geometry(facts, kv_heads, rope_theta)
    weights = random_weights(_shapes(facts, geometry, layers, bias, qkv_bias), seed, dtype)
    if embeddings == "own":
        shape = (facts.vocabulary, facts.hidden)
        weights |= random_weights({"embed_tokens.weight": shape}, seed + 1, dtype)
    elif embeddings == "target":
        weights["embed_tokens.weight"] = facts.embeddings.to(dtype)
    config = _config(facts, geometry, layers)
    if not bias:
        config["bias"] = False
    if qkv_bias:
        config["qkv_bias"] = True
    if rope_theta is not None:
        config["rope_theta"] = rope_theta
    write_folder(folder, config, file, weights)
    numbers = in_double(weights)
    rows = numbers.get("embed_tokens.weight", facts.embeddings)
    return EagleReference(numbers, geometry, layers, rows, facts.head)


def _geometry(facts: Target, kv_heads: int | None, rope_theta: float | None) -> Geometry:
    geometry = Geometry(facts.heads, kv_heads or facts.kv_heads, facts.hidden // facts.heads)
    if rope_theta is None:
        return geometry
    return Geometry(geometry.heads, geometry.kv_heads, geometry.head_dim, rope_theta)


def _shapes(
    facts: Target, geometry: Geometry, layers: int, bias: bool, qkv_bias: bool
) -> dict[str, tuple[int, ...]]:
    hidden = facts.hidden
    shapes: dict[str, tuple[int, ...]] = {"fc.weight": (hidden, 2 * hidden)}
    if bias:
        shapes["fc.bias"] = (hidden,)
    for layer in range(layers):
        prefix = f"layers.{layer}"
        shapes |= layer_shapes(
            prefix, geometry, inputs=hidden, hidden=hidden, intermediate=facts.intermediate
        )
        if layer:
            shapes[f"{prefix}.input_layernorm.weight"] = (hidden,)
        for kind in "qkv" if qkv_bias else "":
            rows = shapes[f"{prefix}.self_attn.{kind}_proj.weight"][0]
            shapes[f"{prefix}.self_attn.{kind}_proj.bias"] = (rows,)
    return shapes


def _config(facts: Target, geometry: Geometry, layers: int) -> dict[str, Any]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "bos_token_id": 1,
        "eos_token_id": 2,
        "hidden_act": "silu",
        "hidden_size": facts.hidden,
        "initializer_range": 0.02,
        "intermediate_size": facts.intermediate,
        "max_position_embeddings": 2048,
        "model_type": "llama",
        "num_attention_heads": geometry.heads,
        "num_hidden_layers": layers,
        "num_key_value_heads": geometry.kv_heads,
        "pad_token_id": 0,
        "rms_norm_eps": EPSILON,
        "tie_word_embeddings": False,
        "torch_dtype": "float16",
        "transformers_version": "4.28.1",
        "use_cache": True,
        "vocab_size": facts.vocabulary,
    }
