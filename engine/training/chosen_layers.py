"""Which of the target's layers a drafter is built on: those that were chosen, or the usual ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import EngineError
from engine.training.recipe import DrafterKind

if TYPE_CHECKING:
    from engine.training.recipe import Recipe

_LOWEST, _TAPS = 2, 3
_COPIED = 5
"""How many of the target's first layers a draft model begins with: with a map before the head they
say more from the start, and after learning too, than as many of which some are the last ones.
"""


def chosen_layers(recipe: Recipe, num_layers: int) -> tuple[int, ...]:
    """Layers of the target, which count from 0.

    EAGLE-3 fuses the states that enter them, a draft model begins with copies of them, and other
    kinds have none.

    Raises:
        EngineError: the target has too few layers, or none of those chosen; or the kind has none.
    """
    kind, chosen = recipe.kind, recipe.layers
    if not chosen:
        return _usual(kind, num_layers)
    if kind not in (DrafterKind.EAGLE3, DrafterKind.DRAFT_MODEL):
        raise EngineError(
            f"--layers is for eagle3 and draft-model; {kind} looks at nothing but what leaves the "
            "target's last layer. Leave --layers out."
        )
    for layer in chosen:
        if not 0 <= layer < num_layers:
            raise EngineError(
                f"There is no layer {layer}: this model has {num_layers}, which count from 0. "
                "Choose others with --layers."
            )
    if kind is DrafterKind.EAGLE3 and len({*chosen}) < len(chosen):
        raise EngineError("--layers names a layer twice; an EAGLE-3 head looks into each once.")
    return chosen


def _usual(kind: DrafterKind, num_layers: int) -> tuple[int, ...]:
    """For EAGLE-3 a low layer, the middle, and the last.

    The last one rather than the third from the end, as published heads have it: of a small model
    nearly all that is known of the next token comes in its last layers.
    """
    match kind:
        case DrafterKind.EAGLE3:
            if num_layers < _TAPS:
                raise EngineError(
                    f"An EAGLE-3 head looks into {_TAPS} layers, and this model has {num_layers}. "
                    "Train another kind."
                )
            return min(_LOWEST, num_layers // 4), num_layers // 2, num_layers - 1
        case DrafterKind.DRAFT_MODEL:
            return tuple(range(min(_COPIED, num_layers)))
        case _:
            return ()
