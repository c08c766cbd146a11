"""Drafters that ship with Draftlight, each for the very weights that it was trained with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from engine.drafters.head_files import read_config
from engine.errors import DrafterMismatch

if TYPE_CHECKING:
    from engine.drafters.family import Family, Target

_FOLDER = Path(__file__).resolve().parents[2] / "resources" / "drafters"


def shipped(family: str, fingerprint: str, folder: Path = _FOLDER) -> str | None:
    """The folder of a family's drafter for a model with this fingerprint; None without one."""
    place = folder / family
    try:
        config = read_config(place)
    except DrafterMismatch:  # damaged: the others are to be offered all the same
        return None
    return str(place) if config.get("base_model_fingerprint") == fingerprint else None


def shipped_for(target: Target, family: Family) -> str | None:
    """The folder of what a family takes and ships for a target; None where nothing does."""
    return target.shipped(family.shares_with or family.name)


def chosen_or_shipped(target: Target, choice: str | None, family: Family, *, wanted: str) -> str:
    """The path that was chosen, or else that of the drafter that ships for the target.

    Raises:
        DrafterMismatch: there is neither; it says what is wanted, as in "a draft model".
    """
    path = choice or shipped_for(target, family)
    if path is None:
        raise DrafterMismatch(f"Choose {wanted} for this model.")
    return path
