"""What learners share: what they are given, and how the numbers they begin with are drawn."""

# torch's own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from engine.drafters.head_fit import FittedHeads
from engine.drafters.projection import DENSE
from engine.drafters.published_heads import heads_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor

    from engine.drafters.head_files import Config
    from engine.models.causal_lm import CausalLM
    from engine.training.batches import Batch
    from engine.training.drafted_ids import DraftedIds
    from engine.training.recipe import Recipe

_NEW = "in training"
_RIDGE = 0.03


@dataclass(frozen=True, eq=False)
class Beginning:
    """What a learner is made of.

    target: the target's name; fingerprint: of its weights. drafted: the ids to draft; its weight
    is of the type that matrices are computed in.
    sample: some rows, to see how large the target's states are.
    """

    target: str
    fingerprint: str
    lm: CausalLM
    recipe: Recipe
    drafted: DraftedIds
    sample: Batch

    @property
    def device(self) -> torch.device:
        """Where all is computed."""
        return self.drafted.weight.device

    def config(self) -> Config:
        """What the configs of all kinds say."""
        return {
            "base_model_name_or_path": self.target,
            "base_model_fingerprint": self.fingerprint,
            "vocab_size": self.lm.vocabulary,
            "draft_vocab_size": len(self.drafted.ids),
            "target_head": True,
        }

    def embedded(self, ids: Tensor) -> Tensor:
        """The target's embeddings, float32, as gradients may pass by."""
        return self.lm.embed(ids).float().clone()

    def fitted(self, config: Config, tensors: Mapping[str, Tensor]) -> FittedHeads:
        """Tensors in training as if they had been read from a folder, ready to make heads of."""
        return FittedHeads(
            folder=heads_of(_NEW, config, {**tensors, "d2t": self.drafted.offsets()}),
            lm=_Lender(self.lm, self.drafted),
            device=self.device,
            weights=self.drafted.weight.dtype,
            numbers=torch.float32,
            make=DENSE,
        )

    def stored(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """For a file: matrices in bfloat16, in which drafters compute, and what is small whole."""
        kept = {
            name: held.detach().to(torch.bfloat16 if held.dim() > 1 else torch.float32).cpu()
            for name, held in tensors.items()
        }
        return {**kept, "d2t": self.drafted.offsets()}


@torch.no_grad()
def linear_fit(inputs: Tensor, outputs: Tensor, *, centred: bool = True) -> tuple[Tensor, Tensor]:
    """Weight (outputs, inputs) and bias of ridge regression over rows of elements of size 1.

    centred: whether there may be a bias; else it is 0.
    """
    inputs, outputs = inputs.double(), outputs.double()
    mean, aim = (each.mean(dim=0) if centred else 0 * each[0] for each in (inputs, outputs))
    moved = inputs - mean
    products = moved.T @ moved
    products += _RIDGE * len(inputs) * torch.eye(len(products)).to(products)
    weight = torch.linalg.solve(products, moved.T @ (outputs - aim)).T
    return weight.float(), (aim - weight @ mean).float()


class Draw:
    """Random matrices that leave the size of what they multiply as it is, times a gain."""

    def __init__(self, seed: int) -> None:
        self._generator = torch.Generator().manual_seed(seed)

    def __call__(self, rows: int, columns: int, gain: float = 1.0) -> Tensor:
        """Normally distributed."""
        drawn = torch.randn(rows, columns, generator=self._generator)
        return drawn * gain * columns**-0.5


class _Lender:
    """A target whose head has been asked for the drafted ids before."""

    def __init__(self, lm: CausalLM, drafted: DraftedIds) -> None:
        self.vocabulary = lm.vocabulary
        self.num_layers = lm.num_layers
        self.embed = lm.embed
        self.head = lm.head
        self._drafted = drafted

    def head_rows(self, ids: Tensor) -> Tensor:
        assert len(ids) == len(self._drafted.ids)
        return self._drafted.weight
