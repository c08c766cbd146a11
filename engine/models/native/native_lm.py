"""A `CausalLM` over the native decoder: the same bits for a row alone, in a chain and in a tree."""

# torch's own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

import torch

from engine.draft import (
    NO_DRAFT,
    NO_PASSENGERS,
    Draft,
    Passengers,
    row_ids,
    row_mask,
    row_positions,
    rows_behind,
)
from engine.errors import ModelError
from engine.models.causal_lm import FINAL, Chunk, Scores
from engine.models.kv_memo import KVMemo
from engine.models.memory import memory_errors
from engine.models.native.attention import DEEPEST, spans
from engine.models.native.cache import Slots

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torch import Tensor

    from engine.models.native.decoder import Decoder

MOST_ROWS = 64
"""Rows in one pass; longer prompts are read in chunks of this many."""


class NativeLM:
    """The native decoder behind the loop's interface."""

    can_rewind = True

    def __init__(self, decoder: Decoder, *, vocabulary: int, end_ids: frozenset[int]) -> None:
        self._decoder = decoder
        self.vocabulary = min(vocabulary, decoder.config.vocabulary)
        self.end_ids = end_ids
        self.num_layers = len(decoder.layers)
        self.context_length = decoder.config.context_length

    def new_memo(self) -> KVMemo:
        """An empty memo for this model."""
        return KVMemo(Slots(self._decoder.config))

    def read(self, memo: KVMemo, ids: Sequence[int], taps: Sequence[int] = ()) -> Iterator[Chunk]:
        """Bring the memo to hold all of `ids` but the last; between chunks one may stop."""
        start = memo.rewind(ids)
        while start < len(ids) - 1:
            end = min(len(ids) - 1, start + MOST_ROWS)
            count = end - start
            mask = torch.ones(count, count, dtype=torch.bool).tril()
            hidden = self._states(memo, ids[start:end], range(start, end), mask, taps)
            memo.keep(ids[start:end], range(count))
            yield Chunk(first=start, rows=count, hidden={tap: hidden[tap] for tap in taps})
            start = end

    def score(
        self,
        memo: KVMemo,
        ids: Sequence[int],
        draft: Draft = NO_DRAFT,
        passengers: Passengers = NO_PASSENGERS,
        taps: Sequence[int] = (),
    ) -> Scores:
        """Score the last id, its draft and the passengers, reading first what the memo lacks."""
        assert draft.is_chain or max(draft.depths) < DEEPEST
        assert max(passengers.offsets, default=0) < DEEPEST
        start, wanted = memo.rewind(ids), 1 + len(draft) + len(passengers)
        if len(ids) - 1 - start + wanted > MOST_ROWS:
            for _ in self.read(memo, ids):
                pass
            start = len(memo.ids)
        before, root = tuple(ids[start:-1]), ids[-1]
        states = self._states(
            memo,
            (*before, *row_ids(root, draft, passengers)),
            (*range(start, len(ids) - 1), *row_positions(len(ids) - 1, draft, passengers)),
            rows_behind(len(before), row_mask(draft, passengers)),
            (*taps, FINAL),
        )
        with torch.inference_mode():
            logits = self.head(states[FINAL][-wanted:])
        return Scores(
            logits=logits,
            hidden={tap: states[tap][-wanted:] for tap in taps},
            memo=memo,
            root=root,
            draft=draft,
            rows_before_root=before,
        )

    def first_layers(self, count: int) -> NativeLM:
        """The model cut to its first layers, with its own norm and head; weights are shared.

        Raises:
            ModelError: a count that leaves no layer out or none in.
        """
        if not 0 < count < self.num_layers:
            raise ModelError(
                f"Layer skip needs an exit between 1 and {self.num_layers - 1}; {count} is none."
            )
        config = replace(self._decoder.config, layers=count)
        cut = replace(self._decoder, config=config, layers=self._decoder.layers[:count])
        return NativeLM(cut, vocabulary=self.vocabulary, end_ids=self.end_ids)

    @torch.inference_mode()
    def embed(self, ids: Tensor) -> Tensor:
        """Token embeddings: (n,) ids to (n, hidden size), float32."""
        return self._decoder.embed(ids)

    @torch.inference_mode()
    def head(self, states: Tensor) -> Tensor:
        """Final normed states (n, hidden size) to logits (n, vocabulary), float32."""
        return self._decoder.head.in_full(states.to(torch.bfloat16))[:, : self.vocabulary]

    @torch.inference_mode()
    def _states(
        self,
        memo: KVMemo,
        ids: Sequence[int],
        positions: Sequence[int],
        mask: Tensor,
        taps: Sequence[int],
    ) -> dict[int, Tensor]:
        """Run new rows behind the memo's; mask: (rows, rows), which of them see which."""
        first = len(memo.ids)
        paths = [[first + row for row, sees in enumerate(line) if sees] for line in mask.tolist()]
        slots = cast("Slots", memo.rows)
        with memory_errors("cpu"):
            slots.make_room(first + len(ids))
            return self._decoder.run(
                torch.tensor(list(ids)),
                torch.tensor(list(positions)),
                first,
                slots.layers,
                spans(positions, paths, prefix=first, group=self._decoder.config.group),
                taps,
            )
