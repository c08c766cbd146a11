"""What the loop asks of a drafter, whatever its family."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torch import Tensor

    from engine.draft import Draft, Passengers
    from engine.models.kv_memo import KVMemo
    from engine.params import SamplingParams
    from engine.planning import Budget
    from engine.sampling import Noise
    from engine.verification import Verdict


@dataclass(frozen=True, slots=True)
class Context:
    """What a drafter may look at: every committed id, the root last, and where the reply begins.

    memo: the target's, which a drafter made of the target's own layers may draft behind.
    """

    ids: Sequence[int]
    prompt_tokens: int
    memo: KVMemo | None = None

    @property
    def root_position(self) -> int:
        """The root's absolute position."""
        return len(self.ids) - 1


@dataclass(frozen=True, slots=True)
class Observation:
    """Rows of the target that are now in its cache, and what became of the draft they came from.

    ids: every committed id, the new root last (in a prefill: the rows read so far, and no root).
    first: the position of the first new row; hidden: per tap, (new rows, hidden size).
    draft, verdict: None in a prefill. passenger_logits: (passengers, vocabulary) or None.
    """

    ids: Sequence[int]
    first: int
    hidden: Mapping[int, Tensor] = field(default_factory=dict[int, "Tensor"])
    draft: Draft | None = None
    verdict: Verdict | None = None
    passenger_logits: Tensor | None = None


class Drafter(Protocol):
    """Proposes what the target may say next.

    name: the family's name. proposers: the names that its nodes may carry, its own or those of the
    drafters it chooses among; none for one that never drafts. taps: the target's layers whose
    states it needs.
    """

    name: str
    proposers: tuple[str, ...]
    taps: tuple[int, ...]

    def propose(
        self, context: Context, budget: Budget, params: SamplingParams, noise: Noise
    ) -> Draft:
        """A draft of at most `budget`; an empty one is a legal answer."""
        ...

    def passengers(self, context: Context) -> Passengers:
        """Rows to ride along in this round's pass."""
        ...

    def observe(self, outcome: Observation) -> None:
        """Learn what became of a round, also of rounds that it sat out."""
        ...
