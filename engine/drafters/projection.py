"""Projections of a drafter's own: as they are, or packed where a few rows are all there is."""

# torch's own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import torch
from torch.nn import functional

from engine.devices import fast_dtype
from engine.models.native.linear import Packed4, packs, quantised

if TYPE_CHECKING:
    from torch import Tensor

_FEW_ROWS = 16

_EXACT = 32
"""Of a row's logits so many are computed anew: what is proposed nearly always comes from them."""


class Projection(Protocol):
    """y = W x + b; what comes and goes is of the same type."""

    def __call__(self, rows: Tensor) -> Tensor:
        """(rows, inputs) to (rows, outputs)."""
        ...


class MakeProjection(Protocol):
    """What makes projections of weights (outputs, inputs) and biases (outputs,)."""

    def __call__(self, weight: Tensor, bias: Tensor | None = None) -> Projection:
        """A projection of these."""
        ...


@dataclass(frozen=True)
class DenseProjection:
    """Computed in the weights' own type; gradients flow through."""

    weight: Tensor
    bias: Tensor | None = None

    def __call__(self, rows: Tensor) -> Tensor:
        """(rows, inputs) to (rows, outputs)."""
        out = functional.linear(rows.to(self.weight.dtype), self.weight, self.bias)
        return out.to(rows.dtype)


class PackedProjection:
    """For a few rows 4-bit codes: what drafting takes is the time to read its weights.

    Proposals need few bits; which of them count, the target says.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        self._few = Packed4(quantised(weight, bits=4))
        self._weight = weight
        self._bias = bias

    def __call__(self, rows: Tensor) -> Tensor:
        """(rows, inputs) to (rows, outputs)."""
        if len(rows) > _FEW_ROWS:
            kind = fast_dtype(rows.device.type)
            out = functional.linear(rows.to(kind), self._weight.to(kind))
        else:
            out = self._few.in_full(rows.to(torch.bfloat16))
        return (out if self._bias is None else out + self._bias).to(rows.dtype)


class PackedOutput:
    """Logits from 4-bit codes, the highest of them computed anew from the weights themselves."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        self._rough = PackedProjection(weight, bias)
        self._weight = weight
        self._bias = bias

    def __call__(self, rows: Tensor) -> Tensor:
        """(rows, inputs) to (rows, outputs)."""
        rough = self._rough(rows)
        if len(rows) > _FEW_ROWS:
            return rough
        best = rough.topk(min(_EXACT, rough.shape[-1])).indices
        exact = (self._weight[best].to(rows) @ rows[..., None])[..., 0]
        return rough.scatter(-1, best, exact if self._bias is None else exact + self._bias[best])


@dataclass(frozen=True, slots=True)
class Projections:
    """What makes a drafter's projections. inner: those within it; output: those to logits."""

    inner: MakeProjection
    output: MakeProjection


DENSE = Projections(DenseProjection, DenseProjection)


def projections_for(state: Tensor) -> Projections:
    """What drafts fastest beside a target with states like this one."""
    on_cpu = state.device.type == "cpu" and state.dtype == torch.bfloat16
    return _PACKED if on_cpu else DENSE


def _packed_projection(weight: Tensor, bias: Tensor | None = None) -> Projection:
    """Packed, if the layout takes a matrix of this shape."""
    return (PackedProjection if packs(*weight.shape) else DenseProjection)(weight, bias)


def _packed_output(weight: Tensor, bias: Tensor | None = None) -> Projection:
    """The same for logits."""
    return (PackedOutput if packs(*weight.shape) else DenseProjection)(weight, bias)


_PACKED = Projections(_packed_projection, _packed_output)
