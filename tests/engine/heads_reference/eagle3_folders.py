"""EAGLE-3 folders in the official, SpecForge, DeepSpec and speculators spellings.

official: SafeAILab/EAGLE, eagle/traineagle3/config.json, commit 9666a818, and cnets.py. Names
  `midlayer.*`; no aux layers in the config (2, n // 2 and n - 3 are in the code); `d2t` int64
  offsets and `t2d` bool, deleted by the loader where both vocabularies are one; usually no
  embeddings (TensorRT-LLM: "EAGLE3 checkpoints do not include embed_tokens").
SpecForge: sgl-project/SpecForge, configs/qwen3-4b-eagle3.json and qwen3-30B-A3B-eagle3.1.json,
  specforge/modeling/draft/llama3_eagle.py, commit 89241ea0. The same names in `model.safetensors`;
  the trainer drops every key with "embed" in it, and always stores d2t (zeros) and t2d (ones).
  `eagle_config.eagle_aux_hidden_state_layer_ids` counts layers whose OUTPUT is tapped: 1,
  n // 2 - 1 and n - 4 by default, `hidden_states[id + 1]`, so the official ones.
DeepSpec: deepseek-ai/DeepSpec, deepspec/modeling/eagle3/common.py, commit 6789d0a2; its Qwen3 files
  as kept by wwjzhy/DeepSpec, commit 098a8dd9 (qwen3/modeling.py, qwen3/config.py,
  config/eagle3/eagle3_qwen3_4b.py). A Qwen3 config with `target_layer_ids` (five layers whose
  output is tapped, `hidden_states[id + 1]`); names `layers.0.*` with q_norm and k_norm; the
  target's embeddings and head, frozen, over the whole vocabulary; no d2t, no t2d.
speculators: vllm-project/speculators, eagle3/config.py (commit 11ecdd33) and core.py, and the
  config of RedHatAI/gemma-4-31B-it-speculator.eagle3 as quoted in public tests. Names `layers.0.*`;
  `eagle_aux_hidden_state_layer_ids` as vLLM counts: what ENTERS the layer, `hidden_states[id]`,
  2, n // 2 and n - 3 when absent or null.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import torch

from tests.engine.heads_reference import eagle3_configs as configs
from tests.engine.heads_reference.blocks import (
    DEFAULT_ROPE_THETA,
    Geometry,
    Target,
    Weights,
    in_double,
    layer_shapes,
    random_weights,
    write_folder,
)
from tests.engine.heads_reference.eagle3 import Eagle3Reference, Switches

if TYPE_CHECKING:
    from pathlib import Path

    from transformers import PreTrainedModel

Embeddings = Literal["absent", "target", "own"]
"""Of the head's file: none, the target's numbers, or others, to see which are used."""


@dataclass(frozen=True)
class Head:
    """One head before it has weights."""

    target: Target
    geometry: Geometry
    layer: str
    switches: Switches
    taps: tuple[int, ...]
    hidden: int
    vocabulary: int
    taps_written: bool
    rope_written: bool
    query_and_key_norms: bool = False

    def shapes(self) -> dict[str, tuple[int, ...]]:
        hidden, joined = self.hidden, len(self.taps) * self.target.hidden
        shapes = layer_shapes(
            self.layer,
            self.geometry,
            inputs=2 * hidden,
            hidden=hidden,
            intermediate=self.target.intermediate,
        )
        shapes |= {
            f"{self.layer}.hidden_norm.weight": (hidden,),
            f"{self.layer}.input_layernorm.weight": (hidden,),
            "fc.weight": (hidden, joined),
            "norm.weight": (hidden,),
            "lm_head.weight": (self.vocabulary, hidden),
        }
        if self.query_and_key_norms:
            norms = [f"{self.layer}.self_attn.{kind}_norm.weight" for kind in "qk"]
            shapes |= dict.fromkeys(norms, (self.geometry.head_dim,))
        if self.switches.norm_before_fc:
            shapes["input_norm.weight"] = (joined,)
        if self.switches.fc_norm:
            names = [f"fc_norm.{index}.weight" for index in range(len(self.taps))]
            shapes |= dict.fromkeys(names, (self.target.hidden,))
        return shapes

    def weights(
        self, embeddings: Embeddings, seed: int, dtype: torch.dtype, *, tables: bool = False
    ) -> Weights:
        """With the tables of a reduced vocabulary where it is one, or where asked for."""
        weights = random_weights(self.shapes(), seed, dtype)
        weights |= self.embedding_table(embeddings, seed, dtype)
        if tables or self.vocabulary < self.target.vocabulary:
            weights |= self.vocabulary_tables(seed)
        return weights

    def embedding_table(self, kept: Embeddings, seed: int, dtype: torch.dtype) -> Weights:
        if kept != "own" and self.hidden != self.target.hidden:
            msg = "A head of another width needs embeddings of its own."
            raise ValueError(msg)
        if kept == "absent":
            return {}
        if kept == "target":
            return {"embed_tokens.weight": self.target.embeddings.to(dtype)}
        shape = (self.target.vocabulary, self.hidden)
        return random_weights({"embed_tokens.weight": shape}, seed + 1, dtype)

    def vocabulary_tables(self, seed: int) -> Weights:
        """A random choice of ids, in rising order; d2t holds how far each has moved."""
        generator = torch.Generator().manual_seed(seed + 2)
        shuffled = torch.randperm(self.target.vocabulary, generator=generator)
        used = shuffled[: self.vocabulary].sort().values
        known = torch.zeros(self.target.vocabulary, dtype=torch.bool)
        known[used] = True
        return {"d2t": used - torch.arange(self.vocabulary), "t2d": known}

    def reference(self, weights: Weights) -> Eagle3Reference:
        numbers = in_double(weights)
        rows = numbers.get("embed_tokens.weight", self.target.embeddings)
        return Eagle3Reference(numbers, self.geometry, self.layer, self.switches, self.taps, rows)


def write_eagle3(
    folder: Path,
    target: PreTrainedModel,
    *,
    spelling: Literal["official", "specforge", "deepspec"] = "official",
    draft_vocabulary: int | None = None,
    taps: tuple[int, ...] | None = None,
    embeddings: Embeddings | None = None,
    kv_heads: int | None = None,
    head_dim: int | None = None,
    hidden: int | None = None,
    rope_theta: float | None = None,
    fc_norm: bool = False,
    norm_output: bool = False,
    seed: int = 0,
    dtype: torch.dtype = torch.float32,
) -> Eagle3Reference:
    """`taps` are indices into `hidden_states`; the file counts them in its own way.

    The official config cannot name its taps, SpecForge's does so only where they are given,
    DeepSpec's always does. The two norms are SpecForge's EAGLE-3.1. DeepSpec keeps the target's
    embeddings and head unless `embeddings` says otherwise, the others no embeddings.
    """
    facts = Target.of(target)
    deepspec = spelling == "deepspec"
    default = five_taps if deepspec else default_taps
    width = hidden or facts.hidden
    head = Head(
        facts,
        _geometry(facts, width, kv_heads, head_dim, rope_theta),
        "layers.0" if deepspec else "midlayer",
        Switches(fc_norm=fc_norm, norm_output=norm_output),
        taps or default(facts.layers),
        width,
        draft_vocabulary or facts.vocabulary,
        taps_written=taps is not None,
        rope_written=rope_theta is not None,
        query_and_key_norms=deepspec,
    )
    kept = embeddings or ("target" if deepspec else "absent")
    weights = head.weights(kept, seed, dtype, tables=spelling == "specforge")
    if deepspec and kept == "target":
        weights["lm_head.weight"] = facts.head.to(dtype)
    file = "pytorch_model.bin" if spelling == "official" else "model.safetensors"
    write_folder(folder, configs.BY_SPELLING[spelling](head), file, weights)
    return head.reference(weights)


def write_speculators(
    folder: Path,
    target: PreTrainedModel,
    *,
    draft_vocabulary: int | None = None,
    norm_before_residual: bool = False,
    norm_before_fc: bool = False,
    fc_norm: bool = False,
    norm_output: bool = False,
    taps: tuple[int, ...] | None = None,
    layer_model: Literal["llama", "qwen3"] = "llama",
    embeddings: Embeddings = "target",
    kv_heads: int | None = None,
    head_dim: int | None = None,
    rope_theta: float | None = None,
    seed: int = 0,
    dtype: torch.dtype = torch.float32,
) -> Eagle3Reference:
    """`taps` are indices into `hidden_states`, which is how this format counts them too."""
    facts = Target.of(target)
    head = Head(
        facts,
        _geometry(facts, facts.hidden, kv_heads, head_dim, rope_theta),
        "layers.0",
        Switches(norm_before_residual, norm_before_fc, fc_norm, norm_output),
        taps or default_taps(facts.layers),
        facts.hidden,
        draft_vocabulary or facts.vocabulary,
        taps_written=taps is not None,
        rope_written=True,
        query_and_key_norms=layer_model == "qwen3",
    )
    weights = head.weights(embeddings, seed, dtype)
    write_folder(folder, configs.speculators(head, layer_model), "model.safetensors", weights)
    return head.reference(weights)


def default_taps(layers: int) -> tuple[int, ...]:
    """What enters layers 2, n // 2 and n - 3, in the order the layers run."""
    return _distinct({2, layers // 2, layers - 3}, 3, layers)


def five_taps(layers: int) -> tuple[int, ...]:
    """DeepSpec's spacing: outputs of five layers from 1 to n - 3."""
    return _distinct({2 + round(step * (layers - 4) / 4) for step in range(5)}, 5, layers)


def _distinct(found: set[int], wanted: int, layers: int) -> tuple[int, ...]:
    if len(found) != wanted or min(found) < 0:
        msg = f"A target of {layers} layers has no {wanted} taps of its own: give them."
        raise ValueError(msg)
    return tuple(sorted(found))


def _geometry(
    facts: Target,
    hidden: int,
    kv_heads: int | None,
    head_dim: int | None,
    rope_theta: float | None,
) -> Geometry:
    return Geometry(
        facts.heads,
        kv_heads or facts.kv_heads,
        head_dim or hidden // facts.heads,
        rope_theta or DEFAULT_ROPE_THETA,
    )
