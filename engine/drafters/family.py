"""What it takes to offer a family of drafters: names, whether it fits, how it is built."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from engine.errors import DrafterMismatch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engine.costs import CostModel
    from engine.drafters.drafter import Drafter
    from engine.kept_costs import Trial
    from engine.models.causal_lm import CausalLM
    from engine.models.spelling import Spelling


class Target(Protocol):
    """What a family may ask of the engine it drafts for."""

    lm: CausalLM

    def pays(self, family: str) -> bool:
        """Whether a family that calls for a trial has gained time in it."""
        ...

    def trial(self, family: str) -> Trial | None:
        """What a family's trial has shown; None where there was none."""
        ...

    def shipped(self, family: str) -> str | None:
        """The folder of a family's drafter that ships for this target; None where none does."""
        ...

    def shares_ids(self, path: str) -> bool:
        """Whether a draft model knows every id of the target, and means the same by it.

        Raises:
            EngineError: it has no tokenizer that can be read.
        """
        ...

    def spelling(self, path: str | None = None) -> Spelling:
        """How a draft model's tokenizer spells, or the target's own.

        Raises:
            EngineError: it can't be read, or spells in a way that nobody knows.
        """
        ...

    def draft_lm(self, path: str) -> CausalLM:
        """A draft model, loaded once.

        Raises:
            EngineError: it cannot be loaded.
        """
        ...


@dataclass(frozen=True, slots=True)
class Setting:
    """A whole number of a drafter's that the user may choose; several make "7x5x7".

    default: what it is where nothing was chosen.
    """

    label: str
    least: int
    most: int
    default: int


@dataclass(frozen=True, slots=True)
class Sample:
    """What the choice that gains most is searched by, until `clock` says `until`.

    ids: a prompt of so many tokens and what the target wrote after it, at temperature 0.
    """

    ids: Sequence[int]
    prompt_tokens: int
    costs: CostModel
    clock: Callable[[], float]
    until: float

    @property
    def is_over(self) -> bool:
        """Whether the time for it is up."""
        return self.clock() > self.until


def _no_settings(target: Target) -> tuple[Setting, ...]:
    del target
    return ()


def _no_note(target: Target) -> None:
    del target


@dataclass(frozen=True, slots=True)
class Family:
    """One entry of the list.

    name: as typed and shown beside nodes; label: as listed. needs: what must be chosen first, as in
    "a folder", unless one ships for the target; None where it has a default. shares_with: the
    family whose files it takes, where that is another one.
    grows_trees: drafts more than a chain where it may have tree nodes.
    path, numbers: sees that what follows the name is one that it takes, as far as can be told
    before a target is loaded; None where it takes none.
    build: a new drafter from the target and what follows the name (a path, numbers), None for the
    default.
    reason: why this target can't use it, or None. settings: the numbers that may follow the name.
    search: for a family that seldom pays: the choice that promises to gain, which is then tried; or
    None where the time did not suffice. note: what to know of it where nothing was chosen; its
    first words, up to a semicolon, say enough.
    """

    name: str
    label: str
    build: Callable[[Target, str | None], Drafter]
    reason: Callable[[Target], str | None]
    needs: str | None = None
    shares_with: str | None = None
    grows_trees: bool = False
    path: Callable[[str], object] | None = None
    numbers: Callable[[str], object] | None = None
    settings: Callable[[Target], tuple[Setting, ...]] = _no_settings
    search: Callable[[Target, Sample], Trial | None] | None = None
    note: Callable[[Target], str | None] = _no_note


def refuse_choice(name: str, choice: str | None) -> None:
    """For a family that takes nothing behind its name.

    Raises:
        DrafterMismatch: something was chosen.
    """
    if choice is not None:
        raise DrafterMismatch(
            f'The drafter "{name}" takes no choice; "{choice}" means nothing to it.'
        )


def needs_rewind(target: Target) -> str | None:
    """The reason shared by all that draft: rows that are turned down must be taken back."""
    return None if target.lm.can_rewind else "this model's memory can't go back"
