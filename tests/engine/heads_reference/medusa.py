"""Medusa v1 heads: a folder as published, and the logits its file must give.

Taken from FasterDecoding/Medusa, commit 11af0aa5, medusa/model/medusa_model.py: head i is L blocks
x + silu(W x + b) and then a projection without bias, over the target's final (normed) state; it
predicts the token 2 + i places after the state's own. From medusa/train/train_legacy.py, commit
46f911eb: the file is `medusa_lm_head.pt`, the state dict of a ModuleList of Sequentials, so the
keys are `{head}.{block}.linear.weight`, `{head}.{block}.linear.bias` and `{head}.{L}.weight`.
medusa_model_legacy.py, commit 2b8020f2 (its config says version "2"), has no projection of its own:
the target's head follows the blocks. Text Generation Inference reads `medusa_lm_head.safetensors`.
The published config of medusa-vicuna-7b-v1.3 says 2 heads where the file has 5: keys decide.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch.nn.functional import silu

from tests.engine.heads_reference.blocks import (
    Target,
    Weights,
    in_double,
    linear,
    random_weights,
    write_folder,
)

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor
    from transformers import PreTrainedModel


@dataclass(frozen=True)
class MedusaReference:
    """Final state (hidden,) to logits (heads, vocabulary); n states to (heads, n, vocabulary)."""

    weights: Weights
    target_head: Tensor
    heads: int
    layers_per_head: int

    def __call__(self, final_state: Tensor) -> Tensor:
        return torch.stack([self._head(head, final_state.double()) for head in range(self.heads)])

    def _head(self, head: int, state: Tensor) -> Tensor:
        for block in range(self.layers_per_head):
            state = state + silu(linear(state, self.weights, f"{head}.{block}.linear"))
        own = self.weights.get(f"{head}.{self.layers_per_head}.weight")
        return state @ (self.target_head if own is None else own).T


def write_medusa(
    folder: Path,
    target: PreTrainedModel,
    *,
    heads: int,
    layers_per_head: int,
    spelling: Literal["pt", "safetensors"] = "pt",
    own_head: bool = True,
    configured_heads: int | None = None,
    seed: int = 0,
    dtype: torch.dtype = torch.float32,
) -> MedusaReference:
    """`configured_heads` is what config.json claims; the published ones claim fewer than they have.

    Every block has its own weights here. The reference trainer builds a head by repeating one
    block, so its files hold the same numbers in all blocks of a head: a special case of this.
    """
    facts = Target.of(target)
    shapes: dict[str, tuple[int, ...]] = {}
    for head in range(heads):
        for block in range(layers_per_head):
            shapes[f"{head}.{block}.linear.weight"] = (facts.hidden, facts.hidden)
            shapes[f"{head}.{block}.linear.bias"] = (facts.hidden,)
        if own_head:
            shapes[f"{head}.{layers_per_head}.weight"] = (facts.vocabulary, facts.hidden)
    weights = random_weights(shapes, seed, dtype)
    config: dict[str, Any] = {
        "base_model_name_or_path": facts.name,
        "medusa_num_heads": heads if configured_heads is None else configured_heads,
        "medusa_num_layers": layers_per_head,
        "transformers_version": "4.31.0",
    }
    if not own_head:
        config["version"] = "2"
    write_folder(folder, config, f"medusa_lm_head.{spelling}", weights)
    return MedusaReference(in_double(weights), facts.head, heads, layers_per_head)
