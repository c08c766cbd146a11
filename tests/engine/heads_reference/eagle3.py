"""What an EAGLE-3 head computes, whichever way its folder is spelled.

Taken from SafeAILab/EAGLE, eagle/model/cnets.py, commit 148042c5:
- the target's tapped states are joined, low to high, and `fc` (no bias) makes one state of them;
- row i takes that state of position i and the embedding of token i + 1; attention reads
  [input_layernorm(embedding) ; hidden_norm(state)], twice as wide; the residual is the state;
- the output is fed back as it stands, before the last norm; logits are lm_head(norm(output));
- rotary position i for row i, counted from 0 and on through drafted rows;
- draft id d means target id d + d2t[d]; without a d2t the two are the same.
The taps are states of the residual stream, unnormed (modeling_llama_kv.py, commit f2f23664: what
enters layers 2, n // 2 and n - 3 of n, in the order the layers run).

The switches, from vllm-project/speculators, eagle3/core.py and model_definitions.py, commits
033c87f2 and 08af5f4d, and a later core.py (file 55063146583 of the stored index):
- norm_before_residual: the residual is hidden_norm(state);
- norm_before_fc: `input_norm`, one norm over the joined taps, before fc;
- fc_norm: `fc_norm.{i}`, a norm for each tap, before fc (and after input_norm);
- norm_output: norm(output) is fed back instead of the output.
Per-head norms of queries and keys (DeepSpec, and speculators over Qwen3) apply where the file has
`q_norm` and `k_norm`, before the rotation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import torch

from tests.engine.heads_reference.blocks import (
    Geometry,
    Weights,
    decoder_layer,
    linear,
    rms_norm,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor


class Eagle3Output(NamedTuple):
    """What is fed back (n, hidden), logits over the draft ids, and their ids in the target."""

    fed_back: Tensor
    logits: Tensor
    target_ids: Tensor


@dataclass(frozen=True)
class Switches:
    """How a head departs from the official one."""

    norm_before_residual: bool = False
    norm_before_fc: bool = False
    fc_norm: bool = False
    norm_output: bool = False


@dataclass(frozen=True)
class Eagle3Reference:
    """Taps (n, taps * hidden) and the tokens after them (n,) to an output for every row.

    `tapped_states` are indices into Hugging Face's `hidden_states`: 0 is the embedding's output,
    k is the output of layer k - 1 and so what enters layer k.
    """

    weights: Weights
    geometry: Geometry
    layer: str
    switches: Switches
    tapped_states: tuple[int, ...]
    embeddings: Tensor

    def __call__(
        self, taps: Tensor, next_token_ids: Tensor, *, first_position: int = 0
    ) -> Eagle3Output:
        return self.rows(self.fused(taps), next_token_ids, first_position=first_position)

    def taps_of(self, hidden_states: Sequence[Tensor]) -> Tensor:
        """Taps out of a target's `hidden_states`, each (1, n, hidden)."""
        return torch.cat([hidden_states[index][0].double() for index in self.tapped_states], -1)

    def fused(self, taps: Tensor) -> Tensor:
        taps = taps.double()
        if self.switches.norm_before_fc:
            taps = self._normed(taps, "input_norm")
        if self.switches.fc_norm:
            parts = taps.chunk(len(self.tapped_states), -1)
            taps = torch.cat(
                [self._normed(part, f"fc_norm.{index}") for index, part in enumerate(parts)], -1
            )
        return linear(taps, self.weights, "fc")

    def rows(
        self, states: Tensor, next_token_ids: Tensor, *, first_position: int = 0
    ) -> Eagle3Output:
        """Rows whose states are given: fused taps, or what earlier rows fed back."""
        positions = first_position + torch.arange(len(next_token_ids))
        embedded = self._normed(self.embeddings[next_token_ids], f"{self.layer}.input_layernorm")
        normed = self._normed(states, f"{self.layer}.hidden_norm")
        outputs = decoder_layer(
            torch.cat((embedded, normed), -1),
            normed if self.switches.norm_before_residual else states,
            self.weights,
            self.layer,
            self.geometry,
            positions,
        )
        final = self._normed(outputs, "norm")
        fed_back = final if self.switches.norm_output else outputs
        return Eagle3Output(fed_back, linear(final, self.weights, "lm_head"), self.target_ids())

    def chain(self, taps: Tensor, next_token_ids: Tensor, drafted_ids: Tensor) -> Eagle3Output:
        """The rows of a drafted path, in the target's ids, after n true rows.

        Also a node of a tree: the path is then the node's ancestors and itself.
        """
        states, ids = self.fused(taps), next_token_ids
        for token in drafted_ids:
            fed_back = self.rows(states, ids).fed_back
            states, ids = torch.cat((states, fed_back[-1:])), torch.cat((ids, token[None]))
        fed_back, logits, target_ids = self.rows(states, ids)
        return Eagle3Output(fed_back[len(taps) :], logits[len(taps) :], target_ids)

    def target_ids(self) -> Tensor:
        drafts = torch.arange(len(self.weights["lm_head.weight"]))
        offsets = self.weights.get("d2t")
        return drafts if offsets is None else drafts + offsets

    def _normed(self, states: Tensor, name: str) -> Tensor:
        return rms_norm(states, self.weights[f"{name}.weight"], self.geometry.epsilon)
