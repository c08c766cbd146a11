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
from engine.models.kv_memo import KVMemo, common_prefix
from engine.models.memory import memory_errors
from engine.models.native.attention import DEEPEST, Rows
from engine.models.native.cache import Begun, Slots
from engine.models.native.decoder import EXIT, Entered
from engine.models.native.prompt_attention import whole_blocks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torch import Tensor

    from engine.models.native.config import DecoderConfig
    from engine.models.native.decoder import Decoder

MOST_ROWS = 64
"""Rows in one pass of the decoding path."""

_FEWEST_PROMPT_ROWS = 96
"""Stretches of a prompt from this length on are worth an unpacking of the weights."""

_MOST_PROMPT_ROWS = 1024
"""Rows that go through the layers with one unpacking."""


class NativeLM:
    """The native decoder behind the loop's interface.

    Two paths write rows: the decoding path with packed weights, and the prompt path, which unpacks
    each layer once and runs many rows through it. Which of them writes a row follows from the
    conversation alone: long stretches without a reply's row are the prompt path's. On either, a
    row's bits don't depend on the rows beside it.
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

    @property
    def decoder(self) -> Decoder:
        """What it runs on."""
        return self._decoder

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
        by_prompt = _rows_of_prompts(len(ids) - 1, replies)
        memo.rewind(ids[: common_prefix(memo.by_prompt, by_prompt) + 1])
        yield from self._read_on(memo, ids, taps, by_prompt)

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
            missing = _rows_of_prompts(len(ids) - 1 - start, ())
            for _ in self._read_on(memo, ids, (), [*memo.by_prompt, *missing]):
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

    @torch.inference_mode()
    def head_rows(self, ids: Tensor) -> Tensor:
        """What the head multiplies a state with: (n,) ids to (n, hidden size), float32."""
        return self._decoder.head_rows(ids)

    def _read_on(
        self, memo: KVMemo, ids: Sequence[int], taps: Sequence[int], by_prompt: Sequence[bool]
    ) -> Iterator[Chunk]:
        """Read what the memo lacks, each row on its path."""
        last = len(ids) - 1
        while (start := len(memo.ids)) < last:
            most = _MOST_PROMPT_ROWS if by_prompt[start] else MOST_ROWS
            end = start + 1
            while end < min(last, start + most) and by_prompt[end] == by_prompt[start]:
                end += 1
            if by_prompt[start]:
                yield from self._read_unpacked(memo, ids[start:end], taps)
            else:
                hidden = self._states(memo, ids[start:end], _chain(start, end), taps)
                memo.keep(ids[start:end], range(end - start))
                taken = {tap: hidden[tap] for tap in taps}
                yield Chunk(first=start, rows=end - start, hidden=taken, done=end)

    def _read_unpacked(
        self, memo: KVMemo, ids: Sequence[int], taps: Sequence[int]
    ) -> Iterator[Chunk]:
        """Read rows layer by layer, and tell after each layer how far that is."""
        decoder, start, count = self._decoder, len(memo.ids), len(ids)
        slots = cast("Slots", memo.rows)
        with torch.inference_mode(), memory_errors(decoder.device):
            slots.make_room(whole_blocks(start + count))
            residual = decoder.embed(torch.tensor(list(ids), device=decoder.device))
            views = decoder.prompt_views(start, count)
        hidden: dict[int, Tensor] = {}
        for index, kind in enumerate(decoder.config.kinds):
            if index in taps:
                hidden[index] = residual
            with torch.inference_mode(), memory_errors(decoder.device):
                layer, cache = decoder.unpacked(index), slots.layers[index]
                residual = decoder.through(layer, residual, start, cache, views[kind])
            done = start + count * (index + 1) // (self.num_layers + 1)
            yield Chunk(first=start, rows=0, hidden={}, done=done)
        if FINAL in taps:
            with torch.inference_mode():
                hidden[FINAL] = decoder.final(residual)
        memo.keep(ids, range(count), by_prompt=True)
        yield Chunk(first=start, rows=count, hidden=hidden, done=start + count)

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


def _rows_of_prompts(end: int, replies: Sequence[range]) -> list[bool]:
    """For each row before `end`, whether it is the prompt path's."""
    by_prompt, first = [False] * end, 0
    for reply in (*replies, range(end, end)):
        last = min(reply.start, end)
        if last - first >= _FEWEST_PROMPT_ROWS:
            by_prompt[first:last] = [True] * (last - first)
        first = max(first, reply.stop)
    return by_prompt
