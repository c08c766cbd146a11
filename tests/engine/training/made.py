"""What the training tests share: examples made by hand from a target, and learners beginning."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from engine.models.causal_lm import FINAL
from engine.training.batches import packed
from engine.training.draft_model_learner import DraftModelLearner
from engine.training.drafted_ids import DraftedIds
from engine.training.eagle3_learner import eagle3_start
from engine.training.eagle_learner import EagleLearner, eagle_start
from engine.training.examples import Example
from engine.training.medusa_learner import MedusaLearner
from engine.training.recipe import RECIPES, DrafterKind
from engine.training.starts import Beginning
from engine.training.teacher import Taught, Teacher

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.models.causal_lm import CausalLM
    from engine.training.batches import Batch

CPU = torch.device("cpu")


def example(lm: CausalLM, ids: Sequence[int], first_reply: int) -> Example:
    """What the target's states are at every tap."""
    taps = (*range(lm.num_layers), FINAL)
    parts = [chunk.hidden for chunk in lm.read(lm.new_memo(), ids, taps) if chunk.rows]
    hidden = {tap: torch.cat([part[tap] for part in parts]) for tap in taps}
    return Example(torch.tensor(ids), first_reply, hidden)


def texts(seed: int, vocabulary: int, *, count: int = 4) -> list[tuple[list[int], int]]:
    """Random ids of several lengths, and where their replies begin."""
    draw = torch.Generator().manual_seed(seed)
    made = list[tuple[list[int], int]]()
    for place in range(count):
        ids = torch.randint(vocabulary, (9 + 7 * place,), generator=draw).tolist()
        made.append((ids, 3 + 2 * place))
    return made


def examples(lm: CausalLM, seed: int = 0, *, count: int = 4) -> list[Example]:
    """From random texts."""
    return [example(lm, ids, first) for ids, first in texts(seed, lm.vocabulary, count=count)]


def learner_of(
    kind: DrafterKind,
    lm: CausalLM,
    made: Sequence[Example],
    *,
    ids: Sequence[int] | None = None,
    **recipe,
) -> Any:
    """A learner in float32 at its beginning."""
    taps = (*range(lm.num_layers), FINAL)
    known = torch.arange(lm.vocabulary) if ids is None else torch.tensor(ids)
    beginning = Beginning(
        target="tiny",
        fingerprint="0",
        lm=lm,
        recipe=replace(RECIPES[kind], **recipe),
        drafted=DraftedIds.of(lm, known, torch.float32, CPU),
        sample=packed(made, taps, CPU),
    )
    match kind:
        case DrafterKind.MEDUSA:
            return MedusaLearner(beginning)
        case DrafterKind.EAGLE:
            return EagleLearner(beginning, eagle_start(beginning))
        case DrafterKind.EAGLE3:
            return EagleLearner(beginning, eagle3_start(beginning))
        case DrafterKind.DRAFT_MODEL:
            return DraftModelLearner(beginning)


def loss_of(learner, batch: Batch, *, depths: int) -> tuple[torch.Tensor, dict[str, float]]:
    """What a learner has yet to learn of a batch, with its parts."""
    chance = torch.Generator().manual_seed(0)
    said = Teacher(learner.drafted, 1.0).said(range(len(batch.examples)), batch)
    taught = Taught.of(batch, said, learner.drafted, chance)
    return learner.loss(batch, taught, chance, depths)


@torch.no_grad()
def shaken(learner, seed: int = 0, by: float = 0.3):
    """The learner with other numbers than at its beginning, such that a file holds them exactly."""
    draw = torch.Generator().manual_seed(seed)
    for name, held in learner.weights.parameters.items():
        held += by * torch.randn(held.shape, generator=draw) * held.shape[-1] ** -0.5
        used = learner.weights.tensors()[name]
        if used.dim() > 1:
            held *= used.bfloat16().float() / used
    return learner
