"""CUDA graphs: what a layer does to each row by itself, captured once per bucket of row counts.

Attention stays outside: its shapes grow with the cache. One launch then stands for about ten.
"""

# torch's own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import torch

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from engine.models.native.layer import Layer, RowSteps

_WARM_UPS = 3
_MOST_ROWS = 64


@dataclass(frozen=True)
class Captured:
    """A function bound to its tensors: fill `inputs`, call `replay`, read `output`."""

    inputs: tuple[Tensor, ...]
    output: Tensor
    replay: Callable[[], None]


class Capture(Protocol):
    """Binds a function to tensors of its own."""

    def __call__(self, function: Callable[..., Tensor], inputs: tuple[Tensor, ...], /) -> Captured:
        """Run once, and ready to run again."""
        ...


class GraphedLayer:
    """A layer whose two halves are replayed for up to 64 rows; more go the ordinary way."""

    def __init__(self, layer: Layer, capture: Capture) -> None:
        self._layer = layer
        self._project = _Graphed(layer.project, capture)
        self._finish = _Graphed(layer.finish, capture)

    def project(self, residual: Tensor, turns: Tensor) -> Tensor:
        """As the layer's own."""
        return self._project(residual, turns)

    def finish(self, residual: Tensor, mixed: Tensor) -> Tensor:
        """As the layer's own."""
        return self._finish(residual, mixed)


def graphed(layer: Layer) -> RowSteps:
    """A layer on a CUDA device, its halves captured as they are first needed."""
    return GraphedLayer(layer, _capture_on_cuda)


class _Graphed:
    """A function of rows, captured once for 1, 2, 4, … rows; fewer are padded with zeros."""

    def __init__(self, function: Callable[..., Tensor], capture: Capture) -> None:
        self._function = function
        self._capture = capture
        self._by_bucket: dict[int, Captured] = {}

    def __call__(self, *inputs: Tensor) -> Tensor:
        rows = len(inputs[0])
        if rows > _MOST_ROWS:
            return self._function(*inputs)
        bucket = 1 << (rows - 1).bit_length()
        if bucket not in self._by_bucket:
            padded = tuple(each.new_zeros(bucket, *each.shape[1:]) for each in inputs)
            self._by_bucket[bucket] = self._capture(self._function, padded)
        captured = self._by_bucket[bucket]
        for held, each in zip(captured.inputs, inputs, strict=True):
            held[:rows].copy_(each)
        captured.replay()
        # The next replay writes over the output.
        return captured.output[:rows].clone()


def _capture_on_cuda(function: Callable[..., Tensor], inputs: tuple[Tensor, ...]) -> Captured:
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(_WARM_UPS):
            function(*inputs)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        output = function(*inputs)
    return Captured(inputs, output, graph.replay)
