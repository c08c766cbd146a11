"""A decoder's forward pass over the rows of one pass, written for few and large kernels."""

# torch's own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

import torch

from engine.models.causal_lm import FINAL
from engine.models.native.attention import Rows, attend, spans
from engine.models.native.prompt_attention import attend_in_blocks, blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from torch import Tensor

    from engine.models.native.cache import LayerCache
    from engine.models.native.config import DecoderConfig, LayerKind, Rotation
    from engine.models.native.layer import Norm, RowSteps
    from engine.models.native.linear import Linear

    Attention = Callable[[Tensor, Tensor, Tensor], Tensor]


EXIT = -2
"""The tap on the residual behind the last layer."""


@dataclass(frozen=True)
class Entered:
    """The first rows of a pass, run before as far as to the entrance of a layer.

    residual: (rows, hidden) float32; their keys and values below the layer are in their slots.
    """

    layer: int
    residual: Tensor


@dataclass(frozen=True)
class View:
    """What the layers of one kind need to know of a pass: how rows look back, and how they turn.

    attend: queries, keys and values to what each row takes from them.
    """

    attend: Attention
    turns: Tensor


@dataclass(frozen=True)
class Decoder:
    """Layers, norm and head around a residual stream in float32.

    embed: ids (rows,) to (rows, hidden) float32, on the device where all else is.
    head_rows: ids (n,) to the head's weights for them, (n, hidden) float32.
    unpacked: layer i with weights as a long prompt wants them; nothing keeps it.
    """

    config: DecoderConfig
    embed: Callable[[Tensor], Tensor]
    layers: Sequence[RowSteps]
    final_norm: Norm
    head: Linear
    head_rows: Callable[[Tensor], Tensor]
    unpacked: Callable[[int], RowSteps]
    device: str = "cpu"

    def run(
        self,
        ids: Tensor,
        rows: Rows,
        first_slot: int,
        caches: Sequence[LayerCache],
        taps: Sequence[int],
        entered: Entered | None = None,
    ) -> dict[int, Tensor]:
        """Run rows into the slots from `first_slot` on; per tap the states (rows, hidden).

        Tap i is the float32 residual that enters layer i, FINAL the normed bfloat16 state after the
        last, EXIT the residual after it. entered: the first rows, where they have been run as far
        as some layer; taps below it then can't be had.
        """
        states: dict[int, Tensor] = {}
        whole = range(len(self.layers))
        if entered is None:
            end = self._run_layers(whole, self.embed(ids), rows, first_slot, caches, taps, states)
        else:
            done = len(entered.residual)
            new = self.embed(ids[done:])
            if len(new):
                new = self._run_layers(
                    whole[: entered.layer],
                    new,
                    rows.without_first(done),
                    first_slot + done,
                    caches,
                    (),
                    states,
                )
            both = torch.cat([entered.residual, new])
            end = self._run_layers(
                whole[entered.layer :], both, rows, first_slot, caches, taps, states
            )
        if FINAL in taps:
            states[FINAL] = self.final(end)
        if EXIT in taps:
            states[EXIT] = end
        return states

    def _run_layers(
        self,
        layers: range,
        residual: Tensor,
        rows: Rows,
        first_slot: int,
        caches: Sequence[LayerCache],
        taps: Sequence[int],
        states: dict[int, Tensor],
    ) -> Tensor:
        views = self.views(rows)
        for index in layers:
            if index in taps:
                states[index] = residual
            view = views[self.config.kinds[index]]
            residual = self.through(self.layers[index], residual, first_slot, caches[index], view)
        return residual

    def views(self, rows: Rows) -> Mapping[LayerKind, View]:
        """What each kind of layer needs to know of a pass."""

        def attention(sliding: int | None) -> Attention:
            found = spans(rows, queries=self._queries, sliding=sliding, device=self.device)
            return partial(attend, where=found)

        return self._views(rows.positions, attention)

    def prompt_views(self, start: int, count: int) -> Mapping[LayerKind, View]:
        """The same for a stretch of a prompt, `count` rows from position `start` on."""

        def attention(sliding: int | None) -> Attention:
            found = blocks(start, count, queries=self._queries, sliding=sliding, device=self.device)
            return partial(attend_in_blocks, where=found)

        return self._views(range(start, start + count), attention)

    def through(
        self, layer: RowSteps, residual: Tensor, first_slot: int, cache: LayerCache, view: View
    ) -> Tensor:
        """One layer's step of the residual, (rows, hidden); its keys and values go into `cache`."""
        config, rows = self.config, len(residual)
        heads = layer.project(residual, view.turns)
        sizes = [config.heads, config.kv_heads, config.kv_heads]
        queries, keys, values = torch.split_with_sizes(heads, sizes, 1)
        cache.write(first_slot, keys, values)
        queries = queries.view(rows, config.lanes, -1, config.head_width).transpose(0, 1)
        return layer.finish(residual, view.attend(queries, cache.keys, cache.values))

    def final(self, residual: Tensor) -> Tensor:
        """The normed state that the head takes, (rows, hidden) bfloat16."""
        return self.final_norm(residual).to(torch.bfloat16)

    def turns(self, positions: Sequence[int], rotation: Rotation) -> Tensor:
        """e^(i * position * frequency): (rows, heads, width / 2) complex64.

        Queries carry the scale of the scores, so attention need not multiply; values don't turn.
        """
        pairs = self.config.head_width // 2
        speeds = torch.zeros(pairs, dtype=torch.float64)
        speeds[: rotation.width // 2] = torch.tensor(rotation.frequencies(), dtype=torch.float64)
        angles = torch.tensor(list(positions), dtype=torch.float64)[:, None] * speeds
        turning = torch.polar(torch.ones_like(angles), angles).to(torch.complex64)
        turns = torch.where(self._turning, turning[:, None] * self._head_scales, 1.0)
        return turns.to(self.device)

    @property
    def _queries(self) -> int:
        """How many queries of a row share a lane."""
        return self.config.heads // self.config.lanes

    def _views(
        self, positions: Sequence[int], attention: Callable[[int | None], Attention]
    ) -> Mapping[LayerKind, View]:
        kinds = set(self.config.kinds)
        looks = {sliding: attention(sliding) for sliding in {kind.sliding for kind in kinds}}
        turns = {
            rotation: self.turns(positions, rotation)
            for rotation in {kind.rotation for kind in kinds}
        }
        return {kind: View(looks[kind.sliding], turns[kind.rotation]) for kind in kinds}

    @cached_property
    def _turning(self) -> Tensor:
        """Whether a head turns: (heads, 1)."""
        config = self.config
        return torch.arange(config.heads + 2 * config.kv_heads)[:, None] < (
            config.heads + config.kv_heads
        )

    @cached_property
    def _head_scales(self) -> Tensor:
        """(heads, 1): the scale of the scores for queries, else 1."""
        config = self.config
        scales = torch.ones(config.heads + 2 * config.kv_heads, 1)
        scales[: config.heads] = config.score_scale
        return scales
