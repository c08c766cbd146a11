"""Keys and values of one conversation, a slot a row; rows are dropped by counting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from engine.models.native.attention import WINDOW

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from engine.models.native.config import DecoderConfig

_FIRST_SLOTS = 512


class LayerCache:
    """One layer's keys (lanes, width, slots) and values (lanes, slots, width), float32.

    Keys lie as attention multiplies them. WINDOW slots are to spare. Slots that nobody wrote hold
    zeros: attention weights them with 0, and 0 times nan would be nan. Layers with a sliding window
    keep every row too, so that any can be taken back.
    """

    keys: Tensor
    values: Tensor

    def __init__(self, config: DecoderConfig, slots: int, device: str) -> None:
        self._lanes, room = config.lanes, slots + WINDOW
        self._put(
            torch.zeros(config.kv_heads, config.head_width, room, device=device),
            torch.zeros(config.kv_heads, room, config.head_width, device=device),
        )

    def write(self, first: int, keys: Tensor, values: Tensor) -> None:
        """Rows from `first` on, each (rows, kv heads, width)."""
        rows = len(keys)
        self._keys.narrow(2, first, rows).copy_(keys.permute(1, 2, 0))
        self._values.narrow(1, first, rows).copy_(values.transpose(0, 1))

    def grow(self, slots: int) -> None:
        """Make room for more rows; what is there stays."""
        more = slots + WINDOW - self._values.shape[1]
        self._put(
            functional.pad(self._keys, (0, more)), functional.pad(self._values, (0, 0, 0, more))
        )

    def move(self, start: int, rows: Tensor) -> None:
        """Put the rows `start + rows` together at `start`."""
        last = start + len(rows)
        self._keys[..., start:last] = self._keys[..., start + rows]
        self._values[:, start:last] = self._values[:, start + rows]

    def _put(self, keys: Tensor, values: Tensor) -> None:
        self._keys, self._values = keys, values
        self.keys = keys.expand(self._lanes, -1, -1)
        self.values = values.expand(self._lanes, -1, -1)


@dataclass
class Begun:
    """Rows that a cut of the model ran behind a prefix, one behind the other, as far as it goes.

    layers: how many it has. residuals: (rows, hidden) each.
    """

    layers: int
    prefix: Sequence[int]
    ids: list[int]
    residuals: list[Tensor]


class Slots:
    """`CacheRows` of the native decoder.

    begun: rows past the committed ones whose lower layers are done already.
    """

    begun: Begun | None = None

    def __init__(self, config: DecoderConfig, device: str = "cpu") -> None:
        self.config = config
        self._device = device
        self._slots = min(_FIRST_SLOTS, config.context_length)
        self.layers = [LayerCache(config, self._slots, device) for _ in range(config.layers)]

    def make_room(self, slots: int) -> None:
        """See that rows up to `slots` fit."""
        if slots > self._slots:
            self._slots = max(slots, 2 * self._slots)
            for layer in self.layers:
                layer.grow(self._slots)

    def truncate(self, length: int) -> int:
        """Nothing to do: a dropped row is one that is no longer looked at."""
        return length

    @torch.inference_mode()
    def gather(self, start: int, rows: Sequence[int]) -> None:
        """Move the rows `start + row` together at `start`, and drop the others."""
        if list(rows) != list(range(len(rows))):
            index = torch.tensor(rows, device=self._device)
            for layer in self.layers:
                layer.move(start, index)
