"""A decoder's forward pass over the rows of one pass, written for few and large kernels."""

# torch's own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from engine.models.causal_lm import FINAL
from engine.models.native.attention import Span, attend

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from engine.models.native.cache import LayerCache
    from engine.models.native.config import DecoderConfig
    from engine.models.native.linear import Linear


@dataclass(frozen=True)
class Layer:
    """One decoder layer. Norm weights are float32; projections take and give bfloat16."""

    attention_norm: Tensor
    queries_keys_values: Linear
    attention_out: Linear
    feed_forward_norm: Tensor
    gate_up: Linear
    down: Linear


@dataclass(frozen=True)
class Decoder:
    """Layers, norm and head around a residual stream in float32.

    embed: ids (rows,) to (rows, hidden) float32. frequencies: as the function of that name gives
    them. head_scales: (query and key heads, 1) float32, what each head is multiplied by.
    """

    config: DecoderConfig
    embed: Callable[[Tensor], Tensor]
    layers: Sequence[Layer]
    final_norm: Tensor
    head: Linear
    frequencies: Tensor
    head_scales: Tensor

    def run(
        self,
        ids: Tensor,
        positions: Tensor,
        first_slot: int,
        caches: Sequence[LayerCache],
        where: Sequence[Span],
        taps: Sequence[int],
    ) -> dict[int, Tensor]:
        """Run rows into the slots from `first_slot` on; per tap the states (rows, hidden).

        Tap i is the float32 residual that enters layer i, FINAL the normed bfloat16 state after the
        last.
        """
        config, rows = self.config, len(ids)
        turned_heads = config.heads + config.kv_heads
        end = first_slot + rows
        residual, turns = self.embed(ids), self._turns(positions)
        states: dict[int, Tensor] = {}
        for index, (layer, cache) in enumerate(zip(self.layers, caches, strict=False)):
            if index in taps:
                states[index] = residual
            projected = layer.queries_keys_values(self._normed(residual, layer.attention_norm))
            projected = projected.view(rows, turned_heads + config.kv_heads, config.head_width)
            turned = _turned(projected[:, :turned_heads], turns)
            cache.keys[:, first_slot:end] = turned[:, config.heads :].transpose(0, 1)
            cache.values[:, first_slot:end] = projected[:, turned_heads:].transpose(0, 1)
            queries = turned[:, : config.heads].view(
                rows, config.kv_heads, config.group, config.head_width
            )
            mixed = attend(queries.transpose(0, 1), cache.keys, cache.values, where)
            residual = residual + layer.attention_out(mixed)
            both = layer.gate_up(self._normed(residual, layer.feed_forward_norm))
            gate, up = both.chunk(2, dim=-1)
            residual = residual + layer.down(functional.silu(gate) * up)
        if FINAL in taps:
            states[FINAL] = self._normed(residual, self.final_norm)
        return states

    @cached_property
    def _least_length(self) -> Tensor:
        """What the norm's epsilon comes to beside a whole row's length."""
        return torch.tensor(self.config.hidden * self.config.norm_epsilon).sqrt()

    def _turns(self, positions: Tensor) -> Tensor:
        """e^(i * position * frequency) for queries and keys: (rows, heads, width / 2) complex64.

        Query heads carry 1 / sqrt(width), the scale of the scores, so attention need not multiply.
        """
        angles = positions[:, None].to(torch.float64) * self.frequencies
        turns = torch.polar(torch.ones_like(angles), angles).to(torch.complex64)
        return turns[:, None] * self.head_scales

    def _normed(self, residual: Tensor, weight: Tensor) -> Tensor:
        # rms_norm falls apart into many small kernels on a CPU; here are fewer.
        length = torch.linalg.vector_norm(residual, dim=-1, keepdim=True)
        root = torch.hypot(length, self._least_length)
        return (residual * (self.config.hidden**0.5 / root) * weight).to(torch.bfloat16)


def frequencies(config: DecoderConfig, factors: Tensor | None = None) -> Tensor:
    """How fast each pair of a head turns: (width / 2) float64 (RoPE, Su et al., arXiv 2104.09864).

    factors: what some models divide them by, to reach further (Llama 3).
    """
    exponents = torch.arange(0, config.head_width, 2, dtype=torch.float64) / config.head_width
    turning = config.rope_base**-exponents
    return turning if factors is None else turning / factors


def _turned(heads: Tensor, turns: Tensor) -> Tensor:
    """Rotate neighbouring pairs: (rows, heads, width) bfloat16."""
    pairs = torch.view_as_complex(heads.float().unflatten(-1, (-1, 2)))
    return torch.view_as_real(pairs * turns).flatten(-2).to(torch.bfloat16)


def head_scales(config: DecoderConfig) -> Tensor:
    """1 / sqrt(width) for query heads, 1 for key heads: (heads, 1)."""
    queries = torch.full((config.heads, 1), config.head_width**-0.5)
    return torch.cat([queries, torch.ones(config.kv_heads, 1)])
