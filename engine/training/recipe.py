"""How each kind of drafter is trained: numbers that a run is tied to, and that its card tells."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class DrafterKind(StrEnum):
    """What can be trained, as it is typed."""

    MEDUSA = "medusa"
    EAGLE = "eagle"
    EAGLE3 = "eagle3"
    DRAFT_MODEL = "draft-model"


@dataclass(frozen=True, slots=True)
class Recipe:
    """The whole of a run but its data and its length.

    vocabulary: how many ids are drafted, the most frequent ones. rows: of a batch, prompts'
    included. rate: what the learning rate rises to in the first `warm_up` of the run, before it
    falls along a cosine to `least` of that. clip: the most length of a gradient. decay: AdamW's.
    depths: tokens of a chain that are trained for, each counting `fading` of the one before it; in
    the first `alone` of the run only the first of them, which costs a fraction of all.
    temperature: of the target's distribution as it is taught.
    feature_weight: of the distance to the target's own state. noise: of a feature, in its sizes.
    prompts: whether what the target says behind their ids is taught too: they are the more varied
    text, but what is not given the ids between can't know what comes behind them.
    blocks: of a Medusa head, one behind the other.
    layers: the target's layers that EAGLE-3 looks into, or that a draft model begins with; empty
    for the usual ones.
    """

    kind: DrafterKind
    rate: float
    depths: int
    fading: float
    alone: float = 0.0
    temperature: float = 0.7
    feature_weight: float = 0.0
    noise: float = 0.0
    prompts: bool = True
    blocks: int = 1
    layers: tuple[int, ...] = ()
    vocabulary: int = 16384
    rows: int = 1024
    warm_up: float = 0.05
    least: float = 0.02
    clip: float = 1.0
    decay: float = 0.01
    seed: int = 0

    def depths_at(self, share: float) -> int:
        """How many are trained for when so much of the run is done."""
        return 1 if share < self.alone else self.depths

    def as_data(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self) | {"kind": str(self.kind), "layers": list(self.layers)}


RECIPES = {
    DrafterKind.MEDUSA: Recipe(
        DrafterKind.MEDUSA, rate=4e-4, depths=3, fading=0.8, prompts=False, blocks=3
    ),
    DrafterKind.EAGLE: Recipe(
        DrafterKind.EAGLE,
        rate=4e-4,
        depths=3,
        fading=0.8,
        alone=0.4,
        feature_weight=1.0,
        noise=0.05,
    ),
    DrafterKind.EAGLE3: Recipe(DrafterKind.EAGLE3, rate=6e-4, depths=3, fading=0.8, alone=0.4),
    DrafterKind.DRAFT_MODEL: Recipe(
        DrafterKind.DRAFT_MODEL, rate=4e-4, depths=3, fading=1.0, feature_weight=0.1
    ),
}
