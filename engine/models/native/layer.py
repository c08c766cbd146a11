"""One decoder layer on either side of its attention: what is done to each row by itself."""

# torch's own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import torch
from torch.nn import functional

if TYPE_CHECKING:
    from torch import Tensor

    from engine.models.native.config import DecoderConfig
    from engine.models.native.linear import Linear


class RowSteps(Protocol):
    """What a layer does to rows before and after attention."""

    def project(self, residual: Tensor, turns: Tensor) -> Tensor:
        """Queries, keys and values of rows, turned: (rows, heads, width)."""
        ...

    def finish(self, residual: Tensor, mixed: Tensor) -> Tensor:
        """The residual behind the layer."""
        ...


class Norm:
    """RMSNorm (Zhang and Sennrich, arXiv 1910.07467) in float32; weight: (..., width).

    torch's own falls apart into more kernels on a CPU.
    """

    def __init__(self, weight: Tensor, epsilon: float) -> None:
        width = weight.shape[-1]
        self._weight = weight * width**0.5
        self._least = weight.new_tensor(width * epsilon).sqrt()

    def __call__(self, states: Tensor) -> Tensor:
        """(..., width) normed, float32."""
        length = torch.linalg.vector_norm(states, dim=-1, keepdim=True).hypot_(self._least)
        return (states / length).mul_(self._weight)


@dataclass(frozen=True)
class Layer:
    """One decoder layer. Projections take and give bfloat16; all else is float32.

    queries_keys_values: heads of queries, then of keys, then of values, in each head those elements
    side by side that turn together. bias: (heads, width) for all of them.
    head_norm: over query and key heads, for families that norm each head.
    attention_out_norm, down_norm: for families that norm what a block gives.
    """

    config: DecoderConfig
    attention_norm: Norm
    queries_keys_values: Linear
    attention_out: Linear
    feed_forward_norm: Norm
    gate_up: Linear
    down: Linear
    bias: Tensor | None = None
    head_norm: Norm | None = None
    attention_out_norm: Norm | None = None
    down_norm: Norm | None = None

    def project(self, residual: Tensor, turns: Tensor) -> Tensor:
        """Queries, keys and values of rows, turned: (rows, heads, width).

        residual: (rows, hidden); turns: (rows, heads, width / 2) complex64.
        """
        config, rows = self.config, len(residual)
        heads = self.queries_keys_values(self.attention_norm(residual).bfloat16()).float()
        heads = heads.view(rows, config.heads + 2 * config.kv_heads, config.head_width)
        if self.bias is not None:
            heads += self.bias
        if self.head_norm is not None:
            turned = heads[:, : config.heads + config.kv_heads]
            turned.copy_(self.head_norm(turned))
        torch.view_as_complex(heads.view(*turns.shape, 2)).mul_(turns)
        return heads

    def finish(self, residual: Tensor, mixed: Tensor) -> Tensor:
        """The residual behind the layer; mixed: what attention gives, (rows, heads * width)."""
        out = self.attention_out(mixed.bfloat16())
        residual = residual + _given(out, self.attention_out_norm)
        both = self.gate_up(self.feed_forward_norm(residual).bfloat16())
        gate, up = torch.split_with_sizes(both, [both.shape[1] // 2] * 2, 1)
        if self.config.gelu:
            gate = functional.gelu(gate, approximate="tanh")
        else:
            gate = functional.silu(gate)
        return residual + _given(self.down(gate * up), self.down_norm)


def _given(out: Tensor, norm: Norm | None) -> Tensor:
    return out if norm is None else norm(out.float())
