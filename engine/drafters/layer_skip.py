"""Layer skip: the target's first layers, with its final norm and head, write the draft.

Self-speculation by early exit (LayerSkip, arXiv 2404.16710); models trained for it gain most.
"""

from __future__ import annotations

from engine.drafters.draft_model import ModelDrafter, model_drafter
from engine.drafters.exits import best_exit
from engine.drafters.family import Family, Sample, Setting, Target, needs_rewind
from engine.errors import DrafterMismatch, ModelError
from engine.kept_costs import Trial

_NO_EXIT_PAYS = "no exit of this model pays; layer skip gains with models that were trained for it"


def _default_exit(target: Target) -> int:
    """Where to leave if nobody chose: where that gained most; two thirds of the way if nowhere."""
    trial = target.trial(FAMILY.name)
    if trial is not None and trial.choice is not None:
        return int(trial.choice)
    return max(1, 2 * target.lm.num_layers // 3)


def read_choice(choice: str) -> int:
    """How many layers to run.

    Raises:
        DrafterMismatch: it is no number.
    """
    if not choice.isdecimal():
        raise DrafterMismatch(
            f'Layer skip takes the number of layers to run, as in "layer-skip@20"; not "{choice}".'
        )
    return int(choice)


def _build(target: Target, choice: str | None) -> ModelDrafter:
    lm = target.lm
    exit_layer = _default_exit(target) if choice is None else read_choice(choice)
    return model_drafter(lm.first_layers(exit_layer), lm, FAMILY.name)


def _reason(target: Target) -> str | None:
    if target.lm.num_layers < 2:
        return "this model has a single layer"
    return needs_rewind(target)


def _settings(target: Target) -> tuple[Setting, ...]:
    return (Setting("Layers", 1, target.lm.num_layers - 1, _default_exit(target)),)


def _search(target: Target, sample: Sample) -> Trial | None:
    try:
        return best_exit(target.lm, sample)
    except ModelError:
        return Trial()  # A model that can't be cut; whoever chooses this is told so.


def _note(target: Target) -> str | None:
    trial = target.trial(FAMILY.name)
    return _NO_EXIT_PAYS if trial is not None and trial.choice is None else None


FAMILY = Family(
    name="layer-skip",
    label="Layer skip",
    build=_build,
    reason=_reason,
    numbers=read_choice,
    settings=_settings,
    search=_search,
    note=_note,
)
