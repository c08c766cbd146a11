"""What a learner learns: tensors by the names in files, some of them at a scale of their own.

Optimisers that move every number by about the same step want inputs of about the same size. The
states of language models are not of this kind: some elements are ten times the others. So a matrix
over them is learnt as one over inputs of size 1, and scaled for use.
"""

# torch's own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.nn import functional

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor

_SCALE = "scale of "


class Weights:
    """Parameters in float32.

    scales: by name what the numbers learnt are multiplied by. paces: by name at how much of the
    learning rate, where not at all of it.
    """

    def __init__(
        self,
        start: Mapping[str, Tensor],
        scales: Mapping[str, Tensor],
        paces: Mapping[str, float] | None = None,
    ) -> None:
        self.scales = dict(scales)
        self.paces = dict(paces or {})
        self.parameters = {name: nn.Parameter(held) for name, held in start.items()}

    @classmethod
    def scaled(
        cls,
        start: Mapping[str, Tensor],
        scales: Mapping[str, Tensor],
        device: torch.device,
        paces: Mapping[str, float] | None = None,
    ) -> Weights:
        """start: as learnt, before scaling."""
        own = {name: held.to(device, torch.float32, copy=True) for name, held in start.items()}
        by = {name: held.to(device, torch.float32, copy=True) for name, held in scales.items()}
        return cls(own, by, paces)

    def tensors(self) -> dict[str, Tensor]:
        """As they are used and stored; gradients flow through."""
        return {
            name: parameter * self.scales[name] if name in self.scales else parameter
            for name, parameter in self.parameters.items()
        }

    def state(self) -> dict[str, Tensor]:
        """All that learning goes on from."""
        learnt = {name: held.detach() for name, held in self.parameters.items()}
        return learnt | {_SCALE + name: scale for name, scale in self.scales.items()}

    @torch.no_grad()
    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Go on from an earlier state.

        Raises:
            ValueError: it is that of another learner.
        """
        own = self.state()
        if {name: held.shape for name, held in own.items()} != {
            name: held.shape for name, held in state.items()
        }:
            raise ValueError("the state holds other tensors than are learnt")
        for name, held in own.items():
            held.copy_(state[name])


def sizes_of(states: Tensor) -> Tensor:
    """How large each element of states (rows, width) is: (width,), never next to nothing."""
    sizes = states.float().square().mean(dim=0).sqrt()
    return sizes.clamp(min=1e-2 * float(sizes.square().mean().sqrt()) + 1e-12)


def normed(rows: Tensor) -> Tensor:
    """Each row at the size 1."""
    return functional.rms_norm(rows, rows.shape[1:])


def levelled(states: Tensor) -> Tensor:
    """The weight of a norm that gives every element of states about the size 1: (width,)."""
    sizes = sizes_of(states)
    return sizes.square().mean().sqrt() / sizes
