"""What follows a drafter's name, as far as it can be judged before a target is loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.drafters import auto, draft_model, eagle, layer_skip, lookahead, medusa, shared_words
from engine.drafters.head_files import find_folder
from engine.drafters.listing import family_of
from engine.errors import DrafterMismatch
from engine.models.catalog import borrowing_folder, find_model

if TYPE_CHECKING:
    from collections.abc import Callable


def check_spec(spec: str) -> None:
    """See that a family is meant, and that what follows its name is of the kind that it takes.

    Raises:
        EngineError: it is not; the sentence says what the family takes, or what is missing.
    """
    name = family_of(spec).name
    sign, choice = spec[len(name) :][:1], spec[len(name) + 1 :]
    if not choice:
        return  # whether the family has a default may depend on the target
    takes_it = name.rpartition("+")[2]
    check = (_PATHS | _NUMBERS).get(takes_it)
    if check is None:
        raise DrafterMismatch(
            f'The drafter "{name}" takes no choice; "{choice}" means nothing to it.'
        )
    if takes_it in _PATHS and sign != ":":
        raise DrafterMismatch(
            f'The drafter "{name}" takes a path behind a colon, as in "{name}:PATH"; not "{spec}".'
        )
    check(choice)


def _check_model(path: str) -> None:
    if borrowing_folder(path) is None:
        find_model(path)


_PATHS: dict[str, Callable[[str], object]] = {
    **dict.fromkeys((auto.FAMILY.name, draft_model.FAMILY.name), _check_model),
    shared_words.FAMILY.name: _check_model,
    medusa.FAMILY.name: find_folder,
    **dict.fromkeys((eagle.FAMILY.name, eagle.FAMILY_2.name, eagle.FAMILY_3.name), find_folder),
}
_NUMBERS: dict[str, Callable[[str], object]] = {
    layer_skip.FAMILY.name: layer_skip.read_choice,
    lookahead.FAMILY.name: lookahead.read_choice,
}
