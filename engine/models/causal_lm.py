"""The one interface the loop sees: rows scored after a prefix, and kept as far as they count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from engine.draft import NO_DRAFT, NO_PASSENGERS, Draft, Passengers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from torch import Tensor

    from engine.models.kv_memo import KVMemo

CHUNK_ROWS = 128
"""Prompts are read in chunks that end at multiples of this."""

FINAL = -1
"""The tap on the final normed state; any other tap i is the state that enters layer i."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Prompt rows just read, none while several chunks go through the layers together.

    first: position of the first; hidden: per tap (rows, hidden size); done: rows read by now, or
    what the work so far comes to.
    """

    first: int
    rows: int
    hidden: Mapping[int, Tensor]
    done: int


@dataclass(frozen=True, slots=True)
class Scores:
    """One pass.

    logits: (1 + nodes + passengers, vocabulary) for the root, the draft and the passengers, in this
    order.
    hidden: per tap (1 + nodes + passengers, hidden size).
    """

    logits: Tensor
    hidden: Mapping[int, Tensor]
    memo: KVMemo
    root: int
    draft: Draft
    rows_before_root: tuple[int, ...] = ()

    def keep(self, path: Sequence[int] = ()) -> None:
        """Keep the rows of the root and of a path of nodes from depth 1 down; drop the rest."""
        before = len(self.rows_before_root)
        ids = (*self.rows_before_root, self.root, *(self.draft.ids[node] for node in path))
        rows = (*range(before + 1), *(before + 1 + node for node in path))
        self.memo.keep(ids, rows)


class Lender(Protocol):
    """What drafters borrow of a target.

    vocabulary: ids the tokenizer knows; logits are cut to it, so that padding is never proposed or
    drawn.
    """

    vocabulary: int
    num_layers: int

    def embed(self, ids: Tensor) -> Tensor:
        """Token embeddings: (n,) ids to (n, hidden size)."""
        ...

    def head(self, states: Tensor) -> Tensor:
        """Final normed states (n, hidden size) to logits (n, vocabulary)."""
        ...

    def head_rows(self, ids: Tensor) -> Tensor:
        """What the head multiplies a state with for some ids: (n,) to (n, hidden size)."""
        ...


class CausalLM(Lender, Protocol):
    """A language model that remembers what it has read in memos.

    can_rewind: whether cache rows can be dropped; where not, nothing can be drafted.
    """

    context_length: int
    end_ids: frozenset[int]
    can_rewind: bool

    def new_memo(self) -> KVMemo:
        """An empty memo for this model."""
        ...

    def memo_behind(self, memo: KVMemo) -> KVMemo | None:
        """For a cut of a model: a memo that begins with the rows of the whole model's memo.

        None where the two can't share rows.
        """
        ...

    def read(
        self,
        memo: KVMemo,
        ids: Sequence[int],
        taps: Sequence[int] = (),
        replies: Sequence[range] = (),
    ) -> Iterator[Chunk]:
        """Bring the memo to hold all of `ids` but the last; between chunks one may stop.

        replies: positions of rows that decoding writes, so that a row read again is the same.
        """
        ...

    def score(
        self,
        memo: KVMemo,
        ids: Sequence[int],
        draft: Draft = NO_DRAFT,
        passengers: Passengers = NO_PASSENGERS,
        taps: Sequence[int] = (),
    ) -> Scores:
        """Score the last id, its draft and the passengers, reading first what the memo lacks.

        Raises:
            OutOfMemory: with the memo as it was.
        """
        ...

    def first_layers(self, count: int) -> CausalLM:
        """The model cut to its first layers, with its own norm and head; weights are shared."""
        ...
