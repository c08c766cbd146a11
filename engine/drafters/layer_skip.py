"""Layer skip: the target's first layers, with its final norm and head, write the draft.

Self-speculation by early exit (LayerSkip, arXiv 2404.16710); models trained for it gain most.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.drafters.draft_model import ModelDrafter, model_drafter
from engine.drafters.family import Family, Target, needs_rewind
from engine.errors import DrafterMismatch

if TYPE_CHECKING:
    from engine.models.causal_lm import CausalLM


def default_exit(lm: CausalLM) -> int:
    """The layer to leave at where nobody chose one: two thirds of the way."""
    return max(1, 2 * lm.num_layers // 3)


def _build(target: Target, choice: str | None) -> ModelDrafter:
    lm = target.lm
    if choice is not None and not choice.isdecimal():
        raise DrafterMismatch(
            f'Layer skip takes the number of layers to run, as in "layer-skip@20"; not "{choice}".'
        )
    exit_layer = default_exit(lm) if choice is None else int(choice)
    return model_drafter(lm.first_layers(exit_layer), lm, FAMILY.name)


def _reason(target: Target) -> str | None:
    if target.lm.num_layers < 2:
        return "this model has a single layer"
    return needs_rewind(target)


FAMILY = Family(
    name="layer-skip", label="Layer skip", build=_build, reason=_reason, needs_trial=True
)
