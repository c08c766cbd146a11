"""What the engine tests share: a language model that is a table, drafters that know, a loop."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from engine.draft import NO_DRAFT, NO_PASSENGERS, Draft, Passengers, row_mask
from engine.drafters import shared_words
from engine.models.causal_lm import Chunk, Scores
from engine.models.kv_memo import KVMemo
from engine.planning import Planner
from engine.speculation import Committed, Drafting, speculate
from engine.text import ReplyText
from tests.engine.other_words import OTHER_WORDS, spelling_for
from tests.engine.tiny_heads import HEADS, write_heads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from engine.drafters import Family
    from engine.drafters.drafter import Context, Drafter, Observation
    from engine.models.causal_lm import CausalLM
    from engine.models.spelling import Spelling
    from engine.params import SamplingParams
    from engine.planning import Budget
    from engine.sampling import Noise


# A language model without weights.


class IdRows:
    """Cache rows that hold the id they were computed from, and nothing else."""

    def __init__(self) -> None:
        self.ids: list[int] = []

    def truncate(self, length: int) -> int:
        del self.ids[length:]
        return length

    def gather(self, start: int, rows: Sequence[int]) -> None:
        self.ids[start:] = [self.ids[start + row] for row in rows]


class TableLM:
    """A trigram model: logits by the last two rows that a row sees, one table a layer, added up.

    It reads its rows only, never the ids it is told, so a row that was wrongly kept or lost shows.
    A row's state is the same at every tap: its logits, and which two rows it saw last.
    """

    can_rewind = True

    def __init__(
        self, tables: Tensor, *, context_length: int = 512, end_ids: frozenset[int] = frozenset()
    ) -> None:
        self._tables = tables
        self.num_layers, _, _, self.vocabulary = tables.shape
        self.context_length = context_length
        self.end_ids = end_ids

    @classmethod
    def random(cls, seed: int, *, vocabulary: int = 5, layers: int = 3, **options) -> TableLM:
        generator = torch.Generator().manual_seed(seed)
        shape = (layers, vocabulary + 1, vocabulary + 1, vocabulary)  # the last row: nothing before
        return cls(torch.randn(shape, generator=generator, dtype=torch.float64), **options)

    def new_memo(self) -> KVMemo:
        return KVMemo(IdRows())

    def memo_behind(self, memo: KVMemo) -> KVMemo | None:
        del memo

    def read(
        self,
        memo: KVMemo,
        ids: Sequence[int],
        taps: Sequence[int] = (),
        replies: Sequence[range] = (),
    ) -> Iterator[Chunk]:
        start, end = memo.rewind(ids), len(ids) - 1
        if start < end:
            rows = self._ids(memo)
            rows.extend(ids[start:-1])
            memo.keep(ids[start:-1], range(end - start))
            hidden = self._hidden(taps, [rows[: at + 1] for at in range(start, end)])
            yield Chunk(first=start, rows=end - start, hidden=hidden, done=end)

    def score(
        self,
        memo: KVMemo,
        ids: Sequence[int],
        draft: Draft = NO_DRAFT,
        passengers: Passengers = NO_PASSENGERS,
        taps: Sequence[int] = (),
    ) -> Scores:
        start = memo.rewind(ids)
        rows = self._ids(memo)
        rows.extend(ids[start:-1])
        before, new = list(rows), [ids[-1], *draft.ids, *passengers.ids]
        rows.extend(new)
        seen = [
            [*before, *(token for token, sees in zip(new, mask, strict=True) if sees)]
            for mask in row_mask(draft, passengers).tolist()
        ]
        return Scores(
            logits=torch.stack([self.logits(row) for row in seen]),
            hidden=self._hidden(taps, seen),
            memo=memo,
            root=ids[-1],
            draft=draft,
            rows_before_root=tuple(ids[start:-1]),
        )

    def logits(self, ids: Sequence[int]) -> Tensor:
        before, last = [self.vocabulary, self.vocabulary, *ids][-2:]
        return self._tables[:, before, last].sum(0)

    def first_layers(self, count: int) -> TableLM:
        return TableLM(
            self._tables[:count], context_length=self.context_length, end_ids=self.end_ids
        )

    def embed(self, ids: Tensor) -> Tensor:
        places = self.vocabulary + 1
        width = self.vocabulary + 2 * places
        return one_hot(self.vocabulary + places + ids, width).to(self._tables.dtype)

    def head(self, states: Tensor) -> Tensor:
        return states[:, : self.vocabulary]

    def head_rows(self, ids: Tensor) -> Tensor:
        width = self.vocabulary + 2 * (self.vocabulary + 1)
        return one_hot(ids, width).to(self._tables.dtype)

    def _hidden(self, taps: Sequence[int], seen: Sequence[Sequence[int]]) -> dict[int, Tensor]:
        return {tap: torch.stack([self._state(row) for row in seen]) for tap in taps}

    def _state(self, ids: Sequence[int]) -> Tensor:
        pair = torch.tensor([self.vocabulary, self.vocabulary, *ids][-2:])
        seen = one_hot(pair, self.vocabulary + 1).flatten().to(self._tables.dtype)
        return torch.cat([self.logits(ids), seen])

    @staticmethod
    def _ids(memo: KVMemo) -> list[int]:
        assert isinstance(memo.rows, IdRows)
        return memo.rows.ids


class ReciterLM(TableLM):
    """Says one text after every cue, whatever stands before it; past its end, the last id again."""

    def __init__(self, text: Sequence[int], *, cue: int, vocabulary: int, end_id: int) -> None:
        nothing = torch.zeros(1, 1, 1, vocabulary, dtype=torch.float64)
        super().__init__(nothing, end_ids=frozenset([end_id]))
        self._text = tuple(text)
        self._cue = cue

    def logits(self, ids: Sequence[int]) -> Tensor:
        row = torch.zeros(self.vocabulary, dtype=torch.float64)
        row[self.rest(ids)[0]] = 30.0
        return row

    def rest(self, ids: Sequence[int]) -> tuple[int, ...]:
        """What is still to be said after these ids; never nothing."""
        said = list(ids)[::-1].index(self._cue) if self._cue in ids else 0
        return self._text[said:] or self._text[-1:]


# Drafters.


@dataclass
class Bench:
    """An engine as far as families of drafters look at one.

    draft: what every path leads to, but heads that were written for this target. One path says that
    its tokenizer is another than the target's.
    """

    lm: CausalLM
    draft: CausalLM

    def pays(self, family: str) -> bool:
        del family
        return True

    def trial(self, family: str) -> None:
        del family

    def draft_lm(self, path: str) -> CausalLM:
        del path
        return self.draft

    def shipped(self, family: str) -> None:
        del family

    def shares_ids(self, path: str) -> bool:
        return path != OTHER_WORDS

    def spelling(self, path: str | None = None) -> Spelling:
        if path is None:
            return spelling_for(self.lm)
        return spelling_for(self.draft, other=True)

    def drafter(self, family: Family) -> Drafter:
        if family.name.endswith(shared_words.FAMILY.name):
            return family.build(self, OTHER_WORDS)
        if family.name not in HEADS:
            return family.build(self, "anywhere" if family.needs else None)
        with TemporaryDirectory() as folder:
            return family.build(self, str(write_heads(Path(folder), family.name, self.lm)))


class ScriptedDrafter:
    """Proposes what `propose` says for the ids so far, cut to the budget's depth."""

    name = "scripted"
    proposers: tuple[str, ...] = (name,)
    taps: tuple[int, ...] = ()

    def __init__(self, script: Callable[[Sequence[int]], Draft | Sequence[int]]) -> None:
        self._script = script
        self.observed: list[Observation] = []

    def propose(
        self, context: Context, budget: Budget, params: SamplingParams, noise: Noise
    ) -> Draft:
        del params, noise
        draft = self._script(context.ids) if budget.depth else ()
        return draft if isinstance(draft, Draft) else Draft.chain(draft[: budget.depth], self.name)

    def passengers(self, context: Context) -> Passengers:
        del context
        return NO_PASSENGERS

    def observe(self, outcome: Observation) -> None:
        self.observed.append(outcome)


def nobody() -> ScriptedDrafter:
    """A drafter that never proposes anything: plain decoding."""
    return ScriptedDrafter(lambda ids: ())


def oracle(text: Sequence[int]) -> ScriptedDrafter:
    """A drafter that knows the whole text and goes on past every end in it."""
    return ScriptedDrafter(lambda ids: text[len(ids) :])


# The loop.


@dataclass
class Spoken:
    """A reply by the loop alone."""

    ids: list[int] = field(default_factory=list)
    rounds: list[Committed] = field(default_factory=list)
    text: str = ""

    @property
    def reason(self):
        return self.rounds[-1].cut.reason

    @property
    def drafted(self) -> int:
        return sum(len(done.judged) for done in self.rounds)

    @property
    def accepted(self) -> int:
        return sum(node is not None for done in self.rounds for node in done.nodes)


def letters(ids: Sequence[int]) -> str:
    """Ids as text: a letter each."""
    return "".join(chr(ord("a") + token % 26) for token in ids)


def spoken(
    lm: CausalLM,
    drafter: Drafter,
    prompt: Sequence[int],
    params: SamplingParams,
    *,
    most: int,
    draft_length: int | None = 3,
    tree_nodes: int = 0,
    planner: Planner | None = None,
    memo: KVMemo | None = None,
    stop_texts: Sequence[str] = (),
    context_room: int = 10_000,
    after_round: Callable[[list[int]], None] = lambda ids: None,
) -> Spoken:
    """Run the loop to its end; `after_round` is told every id so far."""
    reply = Spoken()
    ending = ReplyText(
        letters,
        end_ids=lm.end_ids,
        stop_texts=stop_texts,
        max_new_tokens=most,
        context_room=context_room,
    )
    steps = speculate(
        lm,
        memo or lm.new_memo(),
        prompt,
        Drafting(drafter, draft_length, tree_nodes, planner or Planner()),
        params=params,
        ending=ending,
        stop=threading.Event(),
    )
    for step in steps:
        if isinstance(step, Committed):
            reply.ids += step.ids
            reply.rounds.append(step)
            reply.text += "".join(step.cut.texts)
            after_round([*prompt, *reply.ids])
    return reply
