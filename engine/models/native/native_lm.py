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
from engine.models.causal_lm import CHUNK_ROWS, FINAL, Chunk, Scores
from engine.models.kv_memo import KVMemo, common_prefix
from engine.models.memory import memory_errors
from engine.models.native.attention import DEEPEST, Rows
from engine.models.native.cache import Begun, Slots
from engine.models.native.decoder import EXIT, Entered

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torch import Tensor

    from engine.models.native.config import DecoderConfig
    from engine.models.native.decoder import Decoder

MOST_ROWS = 64
"""Rows in one pass of the decoding path."""

_MOST_CHUNKS = 8
"""Chunks that are read with one unpacking of the weights."""


class NativeLM:
    """The native decoder behind the loop's interface.

    Two paths write rows: the decoding path with packed weights, and the prompt path, which unpacks
    each layer once and runs it over whole chunks. Which of them writes a row follows from the
    conversation alone: whole chunks of the grid without a reply's row are the prompt path's.
    """

    can_rewind = True

    def __init__(
        self,
        decoder: Decoder,
        *,
        vocabulary: int,
        end_ids: frozenset[int],
        cut_from: DecoderConfig | None = None,
    ) -> None:
        self._decoder = decoder
        self._cut_from = cut_from
        self.vocabulary = min(vocabulary, decoder.config.vocabulary)
        self.end_ids = end_ids
        self.num_layers = len(decoder.layers)
        self.context_length = decoder.config.context_length

    def new_memo(self) -> KVMemo:
        """An empty memo for this model."""
        return KVMemo(Slots(self._decoder.config, self._decoder.device))

    def memo_behind(self, memo: KVMemo) -> KVMemo | None:
        """A memo of a cut's own that begins with another's rows: the whole model's, if it is that.

        What the cut runs behind them is not run again as the whole model scores the same rows.
        """
        slots = memo.rows
        if not isinstance(slots, Slots) or slots.config is not self._cut_from:
            return None
        behind = KVMemo(slots)
        behind.keep(memo.ids, range(len(memo.ids)))
        slots.begun = Begun(self.num_layers, list(memo.ids), [], [])
        return behind

    def read(
        self,
        memo: KVMemo,
        ids: Sequence[int],
        taps: Sequence[int] = (),
        replies: Sequence[range] = (),
    ) -> Iterator[Chunk]:
        """Bring the memo to hold all of `ids` but the last; between chunks one may stop."""
        memo.rewind(ids)
        whole = _whole_chunks(0, len(ids) - 1, replies)
        memo.rewind(ids[: _rows_by_their_path(memo, whole) + 1])
        yield from self._read_on(memo, ids, taps, whole)

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
            for _ in self._read_on(memo, ids, (), _whole_chunks(start, len(ids) - 1)):
                pass
            start = len(memo.ids)
        before, root = tuple(ids[start:-1]), ids[-1]
        mask = rows_behind(len(before), row_mask(draft, passengers))
        rows = Rows(
            (*range(start, len(ids) - 1), *row_positions(len(ids) - 1, draft, passengers)),
            [[start + row for row, sees in enumerate(line) if sees] for line in mask.tolist()],
            start,
        )
        run_ids = (*before, *row_ids(root, draft, passengers))
        states = self._states(memo, run_ids, rows, (*taps, FINAL))
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
        config = replace(self._decoder.config, kinds=self._decoder.config.kinds[:count])
        cut = replace(self._decoder, config=config, layers=self._decoder.layers[:count])
        return NativeLM(
            cut,
            vocabulary=self.vocabulary,
            end_ids=self.end_ids,
            cut_from=self._decoder.config,
        )

    @torch.inference_mode()
    def embed(self, ids: Tensor) -> Tensor:
        """Token embeddings: (n,) ids to (n, hidden size), float32."""
        return self._decoder.embed(ids)

    @torch.inference_mode()
    def head(self, states: Tensor) -> Tensor:
        """Final normed states (n, hidden size) to logits (n, vocabulary), float32."""
        return self._decoder.head.in_full(states.to(torch.bfloat16))[:, : self.vocabulary]

    def _read_on(
        self, memo: KVMemo, ids: Sequence[int], taps: Sequence[int], whole: Sequence[int]
    ) -> Iterator[Chunk]:
        """Read what the memo lacks; whole: the chunks that are the prompt path's."""
        last = len(ids) - 1
        while (start := len(memo.ids)) < last:
            if start // CHUNK_ROWS in whole:
                count = 1
                while count < _MOST_CHUNKS and start // CHUNK_ROWS + count in whole:
                    count += 1
                yield from self._read_whole(memo, ids[start : start + count * CHUNK_ROWS], taps)
            else:
                end = min(last, start + MOST_ROWS, (start // CHUNK_ROWS + 1) * CHUNK_ROWS)
                hidden = self._states(memo, ids[start:end], _chain(start, end), taps)
                memo.keep(ids[start:end], range(end - start))
                yield Chunk(first=start, rows=end - start, hidden=hidden, done=end)

    def _read_whole(self, memo: KVMemo, ids: Sequence[int], taps: Sequence[int]) -> Iterator[Chunk]:
        """Read whole chunks layer by layer, and tell after each layer how far that is."""
        decoder, start = self._decoder, len(memo.ids)
        firsts = range(start, start + len(ids), CHUNK_ROWS)
        slots = cast("Slots", memo.rows)
        with torch.inference_mode(), memory_errors(self._decoder.device):
            slots.make_room(start + len(ids))
            residuals = list(decoder.embed(torch.tensor(list(ids))).split(CHUNK_ROWS))
            views = [decoder.views(_chain(first, first + CHUNK_ROWS)) for first in firsts]
        hidden: dict[int, Tensor] = {}
        for index, cache in enumerate(slots.layers):
            if index in taps:
                hidden[index] = torch.cat(residuals)
            with torch.inference_mode(), memory_errors(self._decoder.device):
                layer, kind = decoder.unpacked(index), decoder.config.kinds[index]
                for at, first in enumerate(firsts):
                    residuals[at] = decoder.through(
                        layer, residuals[at], first, cache, views[at][kind]
                    )
            done = start + len(ids) * (index + 1) // (len(slots.layers) + 1)
            yield Chunk(first=start, rows=0, hidden={}, done=done)
        if FINAL in taps:
            hidden[FINAL] = decoder.final(torch.cat(residuals))
        memo.keep(ids, range(len(ids)), whole=True)
        yield Chunk(first=start, rows=len(ids), hidden=hidden, done=start + len(ids))

    @torch.inference_mode()
    def _states(
        self, memo: KVMemo, ids: Sequence[int], rows: Rows, taps: Sequence[int]
    ) -> dict[int, Tensor]:
        """Run new rows behind the memo's."""
        slots = cast("Slots", memo.rows)
        with memory_errors(self._decoder.device):
            slots.make_room(rows.prefix + len(ids))
            states = self._decoder.run(
                torch.tensor(list(ids), device=self._decoder.device),
                rows,
                rows.prefix,
                slots.layers,
                (*taps, EXIT),
                self._entered(slots, memo.ids, ids, rows, taps),
            )
        if slots.begun is not None and self._cut_from is slots.config:
            slots.begun.ids += ids
            slots.begun.residuals += states[EXIT].split(1)
        return states

    def _entered(
        self,
        slots: Slots,
        prefix: Sequence[int],
        ids: Sequence[int],
        rows: Rows,
        taps: Sequence[int],
    ) -> Entered | None:
        """The first rows of a pass, where a cut has begun them and no tap lies below its exit."""
        begun = slots.begun
        if begun is None or self._cut_from is slots.config:
            return None
        slots.begun = None
        count = min(common_prefix(begun.ids, ids), rows.chained())
        below = any(FINAL < tap < begun.layers for tap in taps)
        if not count or below or begun.prefix != prefix:
            return None
        return Entered(begun.layers, torch.cat(begun.residuals[:count]))


def _chain(start: int, end: int) -> Rows:
    """The rows of positions from `start` to `end`, each behind all before it."""
    return Rows(range(start, end), [range(start, row + 1) for row in range(start, end)], start)


def _whole_chunks(start: int, end: int, replies: Sequence[range] = ()) -> Sequence[int]:
    """The chunks of the grid that lie within `start` and `end` and hold no row of a reply."""
    chunks = range(-(-start // CHUNK_ROWS), end // CHUNK_ROWS)
    return [
        chunk
        for chunk in chunks
        if not any(
            reply.start < (chunk + 1) * CHUNK_ROWS and chunk * CHUNK_ROWS < reply.stop
            for reply in replies
        )
    ]


def _rows_by_their_path(memo: KVMemo, whole: Sequence[int]) -> int:
    """How many of the memo's first rows were written by the path that their chunk calls for."""
    for first in range(0, len(memo.ids), CHUNK_ROWS):
        written = memo.whole[first : first + CHUNK_ROWS]
        if first // CHUNK_ROWS in whole:
            if len(written) < CHUNK_ROWS or not all(written):
                return first
        elif any(written):
            return first
    return len(memo.ids)
