"""Keys and values of one conversation, a slot a row; rows are dropped by counting."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from engine.models.native.attention import WINDOW

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from engine.models.native.config import DecoderConfig

_FIRST_SLOTS = 512


class LayerCache:
    """One layer's keys and values: (kv heads, slots, width) bfloat16, with WINDOW slots to spare.

    Slots that nobody wrote hold zeros: attention weights them with 0, and 0 times nan would be nan.
    """

    def __init__(self, config: DecoderConfig, slots: int) -> None:
        shape = (config.kv_heads, slots + WINDOW, config.head_width)
        self.keys = torch.zeros(shape, dtype=torch.bfloat16)
        self.values = torch.zeros(shape, dtype=torch.bfloat16)

    def grow(self, slots: int) -> None:
        """Make room for more rows; what is there stays."""
        more = slots + WINDOW - self.keys.shape[1]
        self.keys = torch.nn.functional.pad(self.keys, (0, 0, 0, more))
        self.values = torch.nn.functional.pad(self.values, (0, 0, 0, more))

    def move(self, start: int, rows: Tensor) -> None:
        """Put the rows `start + rows` together at `start`."""
        for buffer in (self.keys, self.values):
            buffer[:, start : start + len(rows)] = buffer[:, start + rows]


class Slots:
    """`CacheRows` of the native decoder."""

    def __init__(self, config: DecoderConfig) -> None:
        self._slots = min(_FIRST_SLOTS, config.context_length)
        self.layers = [LayerCache(config, self._slots) for _ in range(config.layers)]

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
            index = torch.tensor(rows)
            for layer in self.layers:
                layer.move(start, index)
