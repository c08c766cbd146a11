"""Cache rows of a transformers model in buffers of our own: any row can be dropped or moved."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import torch
from transformers.cache_utils import Cache, DynamicLayer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor


class RowBuffer(DynamicLayer):
    """One layer's rows in a buffer that grows by doubling: appending and dropping move nothing."""

    _FIRST_ROWS = 256

    def __init__(self) -> None:
        super().__init__()  # pyright: ignore[reportUnknownMemberType]
        self._buffers: list[Tensor] = []
        self.length = 0

    def update(
        self, key_states: Tensor, value_states: Tensor, *_: object, **__: object
    ) -> tuple[Tensor, Tensor]:
        """Append rows, (batch, heads, rows, width) each, and return all of them."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
            self._buffers = [
                _empty(states, self._FIRST_ROWS) for states in (key_states, value_states)
            ]
        end = self.length + key_states.shape[-2]
        if end > self._buffers[0].shape[-2]:
            self._buffers = [_grown(buffer, self.length, end) for buffer in self._buffers]
        for buffer, states in zip(self._buffers, (key_states, value_states), strict=True):
            buffer[..., self.length : end, :] = states
        self._show(end)
        return cast("tuple[Tensor, Tensor]", (self.keys, self.values))

    def truncate(self, length: int) -> None:
        """Drop the rows from `length` on."""
        if self._buffers and length < self.length:
            self._show(length)

    @torch.inference_mode()
    def gather(self, start: int, rows: Sequence[int]) -> None:
        """Move these rows, counted from `start`, together at `start`."""
        if list(rows) != list(range(len(rows))):
            for buffer in self._buffers:
                index = torch.tensor(rows, device=buffer.device) + start
                buffer[..., start : start + len(rows), :] = buffer[..., index, :]
        self._show(start + len(rows))

    def _show(self, length: int) -> None:
        self.length = length
        self.keys, self.values = (buffer[..., :length, :] for buffer in self._buffers)


class BufferedRows:
    """`CacheRows` in which any row can be dropped or moved."""

    def __init__(self, cache: Cache) -> None:
        self.cache = cache

    @property
    def _layers(self) -> list[RowBuffer]:
        return cast("list[RowBuffer]", self.cache.layers)

    def truncate(self, length: int) -> int:
        """Drop every row from `length` on."""
        for layer in self._layers:
            layer.truncate(length)
        return length

    def gather(self, start: int, rows: Sequence[int]) -> None:
        """Move the rows `start + row` together at `start`, and drop the others."""
        for layer in self._layers:
            layer.gather(start, rows)


class ForwardOnlyRows:
    """`CacheRows` of a cache that cannot go back: it starts again from nothing."""

    def __init__(self, new_cache: Callable[[], Cache]) -> None:
        self.cache = new_cache()
        self._new_cache = new_cache
        self._length = 0

    def truncate(self, length: int) -> int:
        """Keep everything or nothing."""
        if length < self._length:
            self.cache = self._new_cache()
            self._length = 0
        return self._length

    def gather(self, start: int, rows: Sequence[int]) -> None:
        """Take note of rows that stay as they are."""
        assert list(rows) == list(range(len(rows))), "A cache that cannot rewind was given a draft."
        self._length = start + len(rows)


def _empty(states: Tensor, rows: int) -> Tensor:
    return states.new_empty((*states.shape[:-2], rows, states.shape[-1]))


def _grown(buffer: Tensor, length: int, needed: int) -> Tensor:
    larger = _empty(buffer, max(needed, 2 * buffer.shape[-2]))
    larger[..., :length, :] = buffer[..., :length, :]
    return larger
