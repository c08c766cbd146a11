"""One decoder layer, as EAGLE heads have it, and the cache of its rows."""

# torch's own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from engine.drafters.projection import Projection

_FIRST_SLOTS = 512


@dataclass(frozen=True)
class RmsNorm:
    """RMSNorm (Zhang and Sennrich, arXiv 1910.07467); weight: (width,)."""

    weight: Tensor
    epsilon: float

    def __call__(self, states: Tensor) -> Tensor:
        """(..., width) normed."""
        return functional.rms_norm(states, (states.shape[-1],), self.weight, self.epsilon)


class RowCache:
    """Keys and values, (kv heads, slots, width) each; rows are dropped by counting."""

    def __init__(self, kv_heads: int, width: int, like: Tensor) -> None:
        self._keys = like.new_empty(kv_heads, _FIRST_SLOTS, width)
        self._values = like.new_empty(kv_heads, _FIRST_SLOTS, width)

    def write(self, first: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Put rows (kv heads, rows, width) at `first` and on; gives all up to the last of them."""
        end = first + keys.shape[1]
        more = end - self._keys.shape[1]
        if more > 0:
            room = max(more, self._keys.shape[1])
            self._keys = functional.pad(self._keys, (0, 0, 0, room))
            self._values = functional.pad(self._values, (0, 0, 0, room))
        self._keys[:, first:end] = keys
        self._values[:, first:end] = values
        return self._keys[:, :end], self._values[:, :end]


@dataclass(frozen=True)
class EagleLayer:
    """Attention and feed-forward around a residual.

    What attention takes may be wider than the residual. speeds: (head width / 2,) radians a
    position, float64; element i of a head turns with element i + width / 2.
    queries_keys_values, gate_up: side by side, since few large products are quicker than many.
    """

    heads: int
    kv_heads: int
    head_width: int
    speeds: Tensor
    queries_keys_values: Projection
    out: Projection
    feed_forward_norm: RmsNorm
    gate_up: Projection
    down: Projection
    query_norm: RmsNorm | None = None
    key_norm: RmsNorm | None = None

    def new_cache(self) -> RowCache:
        """An empty one."""
        return RowCache(self.kv_heads, self.head_width, self.feed_forward_norm.weight)

    def __call__(
        self,
        inputs: Tensor,
        residual: Tensor,
        positions: Sequence[int],
        cache: RowCache,
        first: int,
        sees: Tensor | None,
    ) -> Tensor:
        """The residual behind the layer, (rows, width), of rows that go into slots from `first` on.

        sees: (rows, first + rows) bool; None: each row sees all before it.
        """
        queries, keys, values = self.project(inputs, positions)
        all_keys, all_values = cache.write(first, keys, values)
        if sees is None and len(inputs) > 1:
            sees = torch.ones(len(inputs), first + len(inputs), dtype=torch.bool).tril(first)
        mixed = functional.scaled_dot_product_attention(
            queries,
            all_keys,
            all_values,
            attn_mask=None if sees is None else sees.to(inputs.device),
            enable_gqa=True,
        )
        return self.finish(residual, mixed)

    def project(self, inputs: Tensor, positions: Sequence[int]) -> tuple[Tensor, Tensor, Tensor]:
        """What attention takes of rows: queries, keys and values, (heads of each, rows, width)."""
        turns = self._turns(positions)
        by_head = self.queries_keys_values(inputs).unflatten(1, (-1, self.head_width))
        queries, keys, values = by_head.transpose(0, 1).split(
            [self.heads, self.kv_heads, self.kv_heads]
        )
        queries = _turned(queries if self.query_norm is None else self.query_norm(queries), turns)
        keys = _turned(keys if self.key_norm is None else self.key_norm(keys), turns)
        return queries, keys, values

    def finish(self, residual: Tensor, mixed: Tensor) -> Tensor:
        """The residual behind the layer; mixed: what attention gives, (heads, rows, width)."""
        residual = residual + self.out(mixed.transpose(0, 1).flatten(1))
        gate, up = self.gate_up(self.feed_forward_norm(residual)).chunk(2, dim=-1)
        return residual + self.down(functional.silu(gate) * up)

    def _turns(self, positions: Sequence[int]) -> tuple[Tensor, Tensor]:
        angles = torch.tensor(list(positions), dtype=torch.float64)[:, None] * self.speeds
        like = self.feed_forward_norm.weight
        return angles.cos().to(like), angles.sin().to(like)


def _turned(rows: Tensor, turns: tuple[Tensor, Tensor]) -> Tensor:
    cosines, sines = turns
    left, right = rows.chunk(2, dim=-1)
    return torch.cat([left * cosines - right * sines, right * cosines + left * sines], dim=-1)
