"""Passes of the native decoder over many conversations at once, each with cache rows of its own."""

# torch's own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from engine.devices import fast_dtype
from engine.models.causal_lm import FINAL
from engine.models.memory import memory_errors
from engine.training.crowd_states import CrowdStates
from engine.training.unpacking import free_memory

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torch import Tensor

    from engine.models.native.config import LayerKind
    from engine.models.native.native_lm import NativeLM

_SEATS_AT_ONCE = 32
_SLOTS_AT_ONCE = 128
_USUAL_SLOTS = 1024
_MOST_OF_MEMORY = 1 / 3
_COLUMNS_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class _View:
    """What some neighbours of a pass see. seats: their places in it; own: their seats.

    reach: the first slots, behind which none of them sees. blocked: per kind of layer, what is
    added to the scores (seats * kv heads, group * rows, reach).
    """

    seats: slice
    own: slice
    reach: int
    blocked: Mapping[LayerKind, Tensor]


class CrowdRows:
    """Per layer keys (seats, kv heads, width, slots) and values (seats, kv heads, slots, width).

    Slots are positions. All is bfloat16 where the device multiplies that: torch's batched product
    is fastest there on few rows of many conversations. What stands behind a conversation's last
    row is written again before it is seen.

    taps: at which the states of all rows are kept as well; see engine.models.causal_lm.
    """

    def __init__(self, lm: NativeLM, seats: int, taps: Sequence[int] = ()) -> None:
        self._decoder = lm.decoder
        self._config = config = lm.decoder.config
        self._dtype = fast_dtype(lm.decoder.device)
        self._head = _unpacked_head(lm).to(self._dtype)
        self._slots = 0
        none = torch.zeros(seats, config.kv_heads, config.head_width, 0, dtype=self._dtype)
        self._keys = [none.to(lm.decoder.device)] * config.layers
        self._values = [none.mT.to(lm.decoder.device)] * config.layers
        self._turns = {kind.rotation: torch.empty(0) for kind in config.kinds}
        self._taps = frozenset(taps)
        self._states = CrowdStates(seats, taps, config.hidden)

    @torch.inference_mode()
    def run(self, first_seat: int, ids: Tensor, starts: Tensor) -> Tensor:
        """Run rows of the seats from one on, and keep them; the residual behind the last layer.

        ids: (seats, rows); starts: (seats,), where each seat's rows begin. Returns (seats, rows,
        hidden).

        Raises:
            OutOfMemory: there is none for them.
        """
        decoder, shape = self._decoder, ids.shape
        positions = starts[:, None] + torch.arange(shape[1])
        with memory_errors(decoder.device):
            self._make_room(int(positions.max()) + 1)
            residual = decoder.embed(ids.flatten().to(decoder.device))
            residual = self._through_layers(residual, first_seat, positions.to(decoder.device))
        return residual.unflatten(0, shape)

    @torch.inference_mode()
    def logits(self, residual: Tensor) -> Tensor:
        """Logits (rows, vocabulary), float32, of residuals (rows, hidden)."""
        return functional.linear(self._decoder.final(residual).to(self._dtype), self._head).float()

    @torch.inference_mode()
    def move(self, source: int, target: int) -> None:
        """Let the conversation of one seat take another's place."""
        for kept in (*self._keys, *self._values):
            kept[target] = kept[source]
        self._states.move(source, target)

    def states(self, seat: int, rows: int) -> Mapping[int, Tensor]:
        """Per tap the states of a seat's first rows, (rows, hidden), bfloat16 on the CPU."""
        return self._states.of(seat, rows)

    def _through_layers(self, residual: Tensor, first_seat: int, places: Tensor) -> Tensor:
        views = self._views(first_seat, places)
        turns = {kind: table[places.flatten()] for kind, table in self._turns.items()}
        sizes = [self._config.heads, self._config.kv_heads, self._config.kv_heads]
        seat = torch.arange(first_seat, first_seat + len(places), device=places.device)[:, None]
        for index, kind in enumerate(self._config.kinds):
            if index in self._taps:
                self._states.keep(index, first_seat, places, residual)
            layer = self._decoder.unpacked(index)
            heads = layer.project(residual, turns[kind.rotation]).to(self._dtype)
            heads = heads.unflatten(0, places.shape)
            queries, keys, values = torch.split_with_sizes(heads, sizes, 2)
            self._keys[index][seat, :, :, places] = keys
            self._values[index][seat, :, places] = values
            mixed = [self._mix(index, kind, queries[view.seats], view) for view in views]
            residual = layer.finish(residual, torch.cat(mixed))
        if FINAL in self._taps:
            self._states.keep(FINAL, first_seat, places, self._decoder.final(residual))
        return residual

    def _mix(self, index: int, kind: LayerKind, queries: Tensor, view: _View) -> Tensor:
        """What rows take from what they see: (seats * rows, heads * width).

        queries: (seats, rows, heads, width). Those that share a key head stand below one another,
        as rows of one product.
        """
        config, (seats, rows) = self._config, queries.shape[:2]
        grouped = queries.unflatten(2, (config.kv_heads, config.group)).permute(0, 2, 3, 1, 4)
        lanes = grouped.reshape(seats * config.kv_heads, config.group * rows, -1)
        keys = self._keys[index][view.own, ..., : view.reach].flatten(0, 1)
        values = self._values[index][view.own, :, : view.reach].flatten(0, 1)
        scores = torch.baddbmm(view.blocked[kind], lanes, keys)
        weights = torch.softmax(scores, -1, dtype=torch.float32).to(self._dtype)
        mixed = torch.bmm(weights, values).view(seats, config.kv_heads, config.group, rows, -1)
        return mixed.permute(0, 3, 1, 2, 4).reshape(seats * rows, -1)

    def _views(self, first_seat: int, places: Tensor) -> list[_View]:
        """Some seats at a time, as those who came late see less. places: (seats, rows)."""
        views = list[_View]()
        for first in range(0, len(places), _SEATS_AT_ONCE):
            some = places[first : first + _SEATS_AT_ONCE]
            reach = int(some.max()) + 1
            blocked = {kind: self._blocked(some, reach, kind) for kind in set(self._config.kinds)}
            seats = slice(first, first + len(some))
            own = slice(first_seat + first, first_seat + seats.stop)
            views.append(_View(seats, own, reach, blocked))
        return views

    def _blocked(self, places: Tensor, reach: int, kind: LayerKind) -> Tensor:
        slots = torch.arange(reach, device=places.device)
        blind = slots > places[..., None]
        if kind.sliding is not None:
            blind |= slots <= places[..., None] - kind.sliding
        added = torch.zeros(blind.shape, dtype=self._dtype, device=places.device)
        added = added.masked_fill_(blind, -torch.inf).repeat(1, self._config.group, 1)
        return added.repeat_interleave(self._config.kv_heads, 0)

    def _make_room(self, slots: int) -> None:
        if slots <= self._slots:
            return
        more = -(-(slots - self._slots) // _SLOTS_AT_ONCE) * _SLOTS_AT_ONCE
        self._slots += more
        for index in range(self._config.layers):
            self._keys[index] = functional.pad(self._keys[index], (0, more))
            self._values[index] = functional.pad(self._values[index], (0, 0, 0, more))
        self._states.make_room(more)
        for rotation in self._turns:
            self._turns[rotation] = self._decoder.turns(range(self._slots), rotation)


def seats_that_fit(lm: NativeLM, taps: Sequence[int]) -> int:
    """How many conversations of usual length there is memory for, with their states at the taps."""
    config = lm.decoder.config
    dtype = fast_dtype(lm.decoder.device)
    row_bytes = 2 * dtype.itemsize * config.kv_heads * config.head_width * config.layers
    row_bytes += torch.bfloat16.itemsize * config.hidden * len(taps)
    room = int(_MOST_OF_MEMORY * free_memory(lm.decoder.device))
    return max(1, room // (row_bytes * _USUAL_SLOTS))


@torch.inference_mode()
def _unpacked_head(lm: NativeLM) -> Tensor:
    """The head's weights (vocabulary, hidden) in bfloat16: what it makes of each input alone."""
    hidden, device = lm.decoder.config.hidden, lm.decoder.device
    each = torch.eye(hidden, dtype=torch.bfloat16, device=device).split(_COLUMNS_AT_ONCE)
    columns = [lm.decoder.head.in_full(some)[:, : lm.vocabulary].bfloat16() for some in each]
    return torch.cat(columns).T.contiguous()
