"""Tiny random heads for any target, in a folder as a user would have them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import save_file

from engine.models.causal_lm import FINAL

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor

    from engine.models.causal_lm import CausalLM

HEADS = ("medusa", "eagle", "eagle2", "eagle3")
"""The families whose file is a folder with heads."""

Parts = dict[str, Any]

_HEADS, _KV_HEADS, _WIDTH, _INNER = 4, 2, 6, 20


def width_of(lm: CausalLM) -> int:
    """How wide the target's states are."""
    return lm.score(lm.new_memo(), [0], taps=(FINAL,)).hidden[FINAL].shape[-1]


def write_heads(folder: Path, family: str, lm: CausalLM, *, seed: int = 0) -> Path:
    """Heads that the family reads, half of the target's ids known to them."""
    width = width_of(lm)
    tensors, config = {
        "medusa": lambda: medusa(width, lm.vocabulary, seed=seed),
        "eagle": lambda: eagle(width, lm.vocabulary, seed=seed),
        "eagle2": lambda: eagle(width, lm.vocabulary, seed=seed),
        "eagle3": lambda: eagle3(width, lm.vocabulary, layers=lm.num_layers, seed=seed),
    }[family]()
    return write(folder, tensors, config)


def write(folder: Path, tensors: Parts, config: Parts) -> Path:
    """Safetensors and a config."""
    folder.mkdir(parents=True, exist_ok=True)
    save_file({name: held.clone() for name, held in tensors.items()}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def medusa(width: int, vocabulary: int, *, heads: int = 4, seed: int = 0) -> tuple[Parts, Parts]:
    """Heads of one block, each with an output of its own."""
    draw = _Draw(seed)
    tensors: Parts = {}
    for head in range(heads):
        tensors[f"{head}.0.linear.weight"] = draw(width, width)
        tensors[f"{head}.0.linear.bias"] = draw(width)
        tensors[f"{head}.1.weight"] = draw(vocabulary, width)
    return tensors, {"medusa_num_heads": 2, "medusa_num_layers": 1}


def eagle(width: int, vocabulary: int, *, seed: int = 0) -> tuple[Parts, Parts]:
    """An EAGLE head that borrows the target's embedding and output."""
    draw = _Draw(seed)
    tensors = {
        "fc.weight": draw(width, 2 * width),
        "fc.bias": draw(width),
        **_layer(draw, "layers.0.", width, width),
    }
    return tensors, _config(width, vocabulary)


def eagle3(
    width: int, vocabulary: int, *, layers: int = 3, known: int | None = None, seed: int = 0
) -> tuple[Parts, Parts]:
    """An EAGLE-3 head that knows every other id, or `known` of them."""
    draw = _Draw(seed)
    known = known or (vocabulary + 1) // 2
    ids = torch.linspace(0, vocabulary - 1, known).long()
    tensors = {
        "fc.weight": draw(width, 3 * width),
        "norm.weight": 1.0 + draw(width),
        "lm_head.weight": 3.0 * draw(known, width),
        "midlayer.input_layernorm.weight": 1.0 + draw(width),
        "midlayer.hidden_norm.weight": 1.0 + draw(width),
        **_layer(draw, "midlayer.", width, 2 * width),
        "d2t": ids - torch.arange(known),
        "t2d": torch.zeros(vocabulary, dtype=torch.bool).index_fill(0, ids, True),
    }
    config = _config(width, vocabulary)
    taps = [0, layers // 2, layers - 1]
    return tensors, config | {"draft_vocab_size": known, "eagle_aux_hidden_state_layer_ids": taps}


def _layer(draw: _Draw, prefix: str, width: int, inputs: int) -> Parts:
    shapes = {
        "self_attn.q_proj": (_HEADS * _WIDTH, inputs),
        "self_attn.k_proj": (_KV_HEADS * _WIDTH, inputs),
        "self_attn.v_proj": (_KV_HEADS * _WIDTH, inputs),
        "self_attn.o_proj": (width, _HEADS * _WIDTH),
        "mlp.gate_proj": (_INNER, width),
        "mlp.up_proj": (_INNER, width),
        "mlp.down_proj": (width, _INNER),
    }
    tensors = {f"{prefix}{name}.weight": draw(*shape) for name, shape in shapes.items()}
    return tensors | {f"{prefix}post_attention_layernorm.weight": 1.0 + draw(width)}


def _config(width: int, vocabulary: int) -> Parts:
    return {
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": width,
        "intermediate_size": _INNER,
        "num_hidden_layers": 1,
        "num_attention_heads": _HEADS,
        "num_key_value_heads": _KV_HEADS,
        "head_dim": _WIDTH,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-5,
        "vocab_size": vocabulary,
    }


class _Draw:
    """Random matrices that leave the size of what they multiply about as it was."""

    def __init__(self, seed: int) -> None:
        self._generator = torch.Generator().manual_seed(seed)

    def __call__(self, *shape: int) -> Tensor:
        drawn = torch.randn(shape, generator=self._generator, dtype=torch.float64)
        return drawn * shape[-1] ** -0.5
