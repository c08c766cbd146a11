"""What it takes to offer a family of drafters: names, whether it fits, how it is built."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.drafters.drafter import Drafter
    from engine.models.causal_lm import CausalLM


class Target(Protocol):
    """What a family may ask of the engine it drafts for."""

    lm: CausalLM
    draft_path: str | None
    """The draft model that was chosen last; None before one was."""

    def pays(self, family: str) -> bool:
        """Whether a family that calls for a trial has gained time in it."""
        ...

    def draft_lm(self, path: str) -> CausalLM:
        """Another model that shares the target's vocabulary, loaded once.

        Raises:
            EngineError: it cannot be loaded, or its vocabulary does not fit.
        """
        ...


@dataclass(frozen=True, slots=True)
class Family:
    """One entry of the list.

    name: as typed and shown beside nodes; label: as listed. needs_file: has no default choice.
    build: a new drafter from the target and what follows the name (a path, a layer), None for the
    default.
    reason: why this target can't use it, or None. needs_trial: seldom pays, so it is tried before
    it is used unasked.
    """

    name: str
    label: str
    build: Callable[[Target, str | None], Drafter]
    reason: Callable[[Target], str | None]
    needs_file: bool = False
    needs_trial: bool = False


def needs_rewind(target: Target) -> str | None:
    """The reason shared by all that draft: rows that are turned down must be taken back."""
    return None if target.lm.can_rewind else "this model's memory can't go back"
