"""The families as a target offers them, and a drafter from its spec: `FAMILY`, `FAMILY@7x5x7`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.drafters import FAMILIES
from engine.drafters.family import refuse_choice
from engine.drafters.shipped import shipped_for
from engine.errors import DrafterMismatch

if TYPE_CHECKING:
    from engine.drafters.drafter import Drafter
    from engine.drafters.family import Family, Setting, Target


@dataclass(frozen=True, slots=True)
class DrafterChoice:
    """One row of the list of drafters; reason: why it can't be used, None where it can.

    ships: whether what it needs ships for this target; another may be chosen all the same. The rest
    as in Family.
    """

    spec: str
    label: str
    reason: str | None
    needs: str | None
    ships: bool = False
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
    family = known_family(spec)
    if family is None:
        known = ", ".join(family.name for family in FAMILIES)
        raise DrafterMismatch(f'There is no drafter "{_parsed(spec)[0]}". Choose one of: {known}.')
    return family


def known_family(spec: str) -> Family | None:
    """The same, None where there is none."""
    name, _ = _parsed(spec)
    return next((family for family in FAMILIES if family.name == name), None)


def check_spec(spec: str) -> None:
    """See that a family is meant, and that what follows its name is of the kind that it takes.

    Raises:
        EngineError: it is not; the sentence says what the family takes, or what is missing.
    """
    family, (name, choice) = family_of(spec), _parsed(spec)
    check = family.path or family.numbers
    if choice is None:
        return  # whether the family has a default may depend on the target
    if check is None:
        refuse_choice(name, choice)
    elif family.path and not spec.startswith(f"{name}:"):
        raise DrafterMismatch(
            f'The drafter "{name}" takes a path behind a colon, as in "{name}:PATH"; not "{spec}".'
        )
    else:
        check(choice)


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
    ships = fits and shipped_for(target, family) is not None
    return DrafterChoice(
        family.name,
        family.label.removesuffix("…") if ships else family.label,
        reason,
        family.needs,
        ships=ships,
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
