"""AdamW with a rate that rises, then falls along a cosine; its moments come and go by name."""

# torch's own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import nn

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor

    from engine.training.recipe import Recipe
    from engine.training.weights import Weights

_BETAS = (0.9, 0.95)
_MOMENTS = ("exp_avg", "exp_avg_sq")


class Optimiser:
    """Moves a learner's parameters."""

    def __init__(self, weights: Weights, recipe: Recipe) -> None:
        self._parameters = dict(weights.parameters)
        self._recipe = recipe
        groups = [
            {"params": [held], "weight_decay": recipe.decay if held.dim() > 1 else 0.0}
            for held in self._parameters.values()
        ]
        self._paces = [weights.paces.get(name, 1.0) for name in self._parameters]
        self._adam = torch.optim.AdamW(groups, lr=recipe.rate, betas=_BETAS, fused=True)

    def step(self, share: float) -> None:
        """Move by the gradients that there are; share: how much of the run is done."""
        nn.utils.clip_grad_norm_(self._parameters.values(), self._recipe.clip)
        for group, pace in zip(self._adam.param_groups, self._paces, strict=True):
            group["lr"] = pace * rate(self._recipe, share)
        self._adam.step()
        self._adam.zero_grad()

    def state(self) -> dict[str, Tensor]:
        """The moments so far, by name."""
        return {
            f"{moment} of {name}": self._adam.state[held][moment]
            for name, held in self._parameters.items()
            for moment in _MOMENTS
            if held in self._adam.state
        }

    def load_state(self, state: Mapping[str, Tensor], steps: int) -> None:
        """Go on from an earlier state, after so many steps.

        Raises:
            KeyError: it lacks a moment.
        """
        for name, held in self._parameters.items():
            moments = {
                moment: state[f"{moment} of {name}"].to(held.device, copy=True)
                for moment in _MOMENTS
            }
            done = torch.tensor(float(steps), device=held.device)
            self._adam.state[held] = {"step": done, **moments}


def rate(recipe: Recipe, share: float) -> float:
    """The learning rate when so much of the run is done."""
    if share < recipe.warm_up:
        # Not nothing at the very first step.
        return recipe.rate * max(share / recipe.warm_up, recipe.least)
    done = min(1.0, (share - recipe.warm_up) / (1.0 - recipe.warm_up))
    fallen = (1.0 + math.cos(math.pi * done)) / 2.0
    return recipe.rate * (recipe.least + (1.0 - recipe.least) * fallen)
