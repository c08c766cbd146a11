"""The families as a target offers them, and a drafter from its spec: `FAMILY`, `FAMILY@7x5x7`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.drafters import FAMILIES
from engine.errors import DrafterMismatch

if TYPE_CHECKING:
    from engine.drafters.drafter import Drafter
    from engine.drafters.family import Family, Setting, Target


@dataclass(frozen=True, slots=True)
class DrafterChoice:
    """One row of the list of drafters; reason: why it can't be used, None where it can.

    The rest as in Family.
    """

    spec: str
    label: str
    reason: str | None
    needs: str | None
    grows_trees: bool = False
    settings: tuple[Setting, ...] = ()
    note: str | None = None


def drafter_choices(target: Target) -> tuple[DrafterChoice, ...]:
    """Every family, the unfit ones with their reason."""
    return tuple(_choice(family, target) for family in FAMILIES)


def family_of(spec: str) -> Family:
    """The family that a spec names, whatever follows the name.

    Raises:
        DrafterMismatch: there is none.
    """
    name, _ = _parsed(spec)
    for family in FAMILIES:
        if family.name == name:
            return family
    known = ", ".join(family.name for family in FAMILIES)
    raise DrafterMismatch(f'There is no drafter "{name}". Choose one of: {known}.')


def build_drafter(spec: str, target: Target) -> Drafter:
    """The drafter that `FAMILY`, `FAMILY:PATH` or `FAMILY@NUMBERS` names.

    Raises:
        EngineError: no such family, or it does not fit this target; the sentence says why.
    """
    family, (_, choice) = family_of(spec), _parsed(spec)
    reason = family.reason(target)
    if reason is not None:
        raise DrafterMismatch(f"{family.label.rstrip('…')} can't be used here: {reason}.")
    return family.build(target, choice)


def _choice(family: Family, target: Target) -> DrafterChoice:
    reason = family.reason(target)
    fits = reason is None
    return DrafterChoice(
        family.name,
        family.label,
        reason,
        None if fits and target.shipped(family.name) else family.needs,
        grows_trees=family.grows_trees,
        settings=family.settings(target) if fits else (),
        note=family.note(target) if fits else None,
    )


def _parsed(spec: str) -> tuple[str, str | None]:
    """Family and choice, None where nothing follows the sign; a path may hold either sign."""
    for sign in ":@":
        name, found, choice = spec.partition(sign)
        if found and name in {family.name for family in FAMILIES}:
            return name, choice or None
    return spec, None
