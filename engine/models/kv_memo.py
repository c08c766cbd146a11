"""The KV cache as a memo of ids already seen: the common beginning stays, the rest goes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence


class CacheRows(Protocol):
    """A model's own store of cache rows, one a position."""

    def truncate(self, length: int) -> int:
        """Drop the rows from `length` on; returns how many are left, fewer where none can go."""
        ...

    def gather(self, start: int, rows: Sequence[int]) -> None:
        """Move the rows `start + row` together at `start`, in this order, and drop the others."""
        ...


class KVMemo:
    """The ids whose rows a cache holds, and the rows; one conversation's, one model's.

    Rows past `len(ids)` are a pass that nobody kept; they are dropped before the next one.
    by_prompt: per row whether a path for prompts wrote it, for models that have two.
    """

    def __init__(self, rows: CacheRows) -> None:
        self.ids: list[int] = []
        self.by_prompt: list[bool] = []
        self.rows = rows

    def rewind(self, ids: Sequence[int]) -> int:
        """Keep the rows of the longest common beginning, short of the last id; says how many.

        The last id's row is never taken from the memo: its logits are wanted.
        """
        length = common_prefix(self.ids, ids)
        length = self.rows.truncate(max(0, min(length, len(ids) - 1)))
        del self.ids[length:], self.by_prompt[length:]
        return length

    def clear(self) -> None:
        """Forget everything."""
        self.rows.truncate(0)
        del self.ids[:], self.by_prompt[:]

    def keep(self, ids: Sequence[int], rows: Sequence[int], *, by_prompt: bool = False) -> None:
        """Commit `ids`, whose rows of the last pass are `rows`, counted from the memo's end."""
        self.rows.gather(len(self.ids), rows)
        self.ids.extend(ids)
        self.by_prompt.extend([by_prompt] * len(ids))


def common_prefix(left: Sequence[int], right: Sequence[int]) -> int:
    """How many leading entries agree."""
    shortest = min(len(left), len(right))
    # Usually one is the beginning of the other, and comparing whole lists runs in C.
    if list(left[:shortest]) == list(right[:shortest]):
        return shortest
    return next(index for index in range(shortest) if left[index] != right[index])
