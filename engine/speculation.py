"""Speculative decoding, whole: draft, score in one pass, judge, commit. Ids only."""

# transformers' and torch's own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from engine.draft import ROOT, Draft
from engine.drafters.drafter import Context, Drafter, Observation
from engine.events import Origin
from engine.planning import Limits, Planner, Played
from engine.sampling import Noise, needs_prefixes, processed_log_probabilities
from engine.verification import Verdict, verify

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator, Sequence

    from torch import Tensor

    from engine.models.causal_lm import CausalLM, Chunk, Scores
    from engine.models.kv_memo import KVMemo
    from engine.params import SamplingParams
    from engine.text import Cut


@dataclass(slots=True)
class Drafting:
    """What may change while a reply runs; the loop reads it once a round.

    draft_length: a length that the user forces; None leaves it to the planner.
    """

    drafter: Drafter
    draft_length: int | None = None
    tree_nodes: int = 0
    planner: Planner = field(default_factory=Planner)


class Ending(Protocol):
    """Where a reply ends: told the ids of a round, it says how many count."""

    @property
    def remaining_tokens(self) -> int:
        """How many tokens may still come."""
        ...

    def cut(self, ids: Sequence[int]) -> Cut:
        """Commit a round's ids as far as they go."""
        ...


@dataclass(frozen=True, slots=True)
class Read:
    """Prompt rows present so far, of all that are needed."""

    done: int
    total: int


@dataclass(frozen=True, slots=True)
class Proposed:
    """A draft that is about to be scored."""

    draft: Draft
    drafter: str


@dataclass(frozen=True, slots=True)
class Committed:
    """One round's outcome.

    ids, origins, nodes: per committed token; node is its place in the draft, None for the target's
    own.
    judged: the draft's nodes that count, those behind an accepted end left out.
    p: per judged node the target's probability of it. token_p: per committed token.
    """

    ids: tuple[int, ...]
    origins: tuple[Origin, ...]
    nodes: tuple[int | None, ...]
    token_p: tuple[float, ...]
    first_position: int
    draft: Draft
    judged: tuple[int, ...]
    p: tuple[float, ...]
    verdict: Verdict
    cut: Cut
    drafter: str
    rows: int
    draft_seconds: float
    pass_seconds: float
    seconds: float


def speculate(
    target: CausalLM,
    memo: KVMemo,
    prompt: Sequence[int],
    drafting: Drafting,
    *,
    params: SamplingParams,
    ending: Ending,
    stop: threading.Event,
    replies: Sequence[range] = (),
) -> Iterator[Read | Proposed | Committed]:
    """Decode after `prompt` until `ending` or `stop` says so.

    replies: positions in the prompt of rows that decoding wrote, earlier replies' that is.

    Plain decoding is the same loop with an empty draft. A round's seconds reach from the end of the
    one before it (at first, of the prompt's reading) to its own, the reader's time between them
    included.
    """
    ids = list(prompt)
    noise = Noise(params.seed)
    drafting.planner.begin_reply()
    chunks = target.read(memo, ids, drafting.drafter.taps, replies)
    yield from _read_prompt(chunks, ids, drafting.drafter, stop)
    round_began = time.perf_counter()
    while not stop.is_set():
        drafter, planner, position = drafting.drafter, drafting.planner, len(ids)

        # 1. Draft as far as it pays, in a place the target can take back.
        draft_began = time.perf_counter()
        context = Context(ids, len(prompt), memo)
        limits = Limits(
            draft_length=drafting.draft_length if target.can_rewind else 0,
            tree_nodes=drafting.tree_nodes,
            remaining_tokens=ending.remaining_tokens,
            cache_tokens=position - 1,
        )
        budget = planner.budget(drafter.proposers, limits)
        draft, _ = budget.judge(drafter.propose(context, budget, params, noise))
        passengers = drafter.passengers(context)
        draft_seconds = time.perf_counter() - draft_began
        if len(draft):
            yield Proposed(draft, drafter.name)

        # 2. Score the root and the draft in one pass.
        pass_began = time.perf_counter()
        scores = target.score(memo, ids, draft, passengers, drafter.taps)
        pass_seconds = time.perf_counter() - pass_began

        # 3. Judge.
        log_p = _log_probabilities(scores, ids, draft, params)
        verdict = verify(draft, log_p, params=params, noise=noise, position=position)

        # 4. Commit what lies before the reply's end, and only that.
        proposed_ids = [draft.ids[node] for node in verdict.accepted]
        cut = ending.cut([*proposed_ids, verdict.token])
        kept = verdict.accepted[: len(cut.texts)]
        scores.keep(kept)
        new_ids = (*proposed_ids, verdict.token)[: len(cut.texts)]
        ids += new_ids
        drafter.observe(_observation(ids, scores, kept, verdict, position - 1))

        # 5. Learn what it cost and brought, and tell.
        now = time.perf_counter()
        planner.observe(
            Played(
                draft,
                verdict.outcomes,
                tokens=len(new_ids),
                rows=len(scores.logits),
                draft_seconds=draft_seconds,
                seconds=now - round_began,
            )
        )
        yield _committed(
            new_ids, draft, verdict, log_p, cut, position,
            drafter=drafter.name,
            rows=len(scores.logits),
            draft_seconds=draft_seconds,
            pass_seconds=pass_seconds,
            seconds=now - round_began,
        )  # fmt: skip
        round_began = now
        if cut.reason is not None:
            return


def _read_prompt(
    chunks: Iterator[Chunk], ids: Sequence[int], drafter: Drafter, stop: threading.Event
) -> Iterator[Read]:
    """Bring the memo to the root, a chunk at a time, until `stop`."""
    for chunk in chunks:
        if chunk.rows:
            drafter.observe(
                Observation(ids[: chunk.first + chunk.rows], chunk.first, hidden=chunk.hidden)
            )
        yield Read(chunk.done, len(ids) - 1)
        if stop.is_set():
            return


def _log_probabilities(
    scores: Scores, ids: Sequence[int], draft: Draft, params: SamplingParams
) -> Tensor:
    """(1 + nodes, vocabulary), each row processed by its own prefix."""
    rows = scores.logits[: 1 + len(draft)]
    prefixes = None
    if needs_prefixes(params):
        prefixes = [[*ids, *draft.path_ids(node)] for node in range(ROOT, len(draft))]
    return processed_log_probabilities(rows, prefixes, params)


def _observation(
    ids: Sequence[int], scores: Scores, kept: Sequence[int], verdict: Verdict, first: int
) -> Observation:
    rows = [0, *(1 + node for node in kept)]
    passengers = scores.logits[1 + len(scores.draft) :]
    return Observation(
        ids,
        first,
        hidden={tap: states[rows] for tap, states in scores.hidden.items()},
        draft=scores.draft,
        verdict=verdict,
        passenger_logits=passengers if len(passengers) else None,
    )


def _committed(
    ids: tuple[int, ...],
    draft: Draft,
    verdict: Verdict,
    log_p: Tensor,
    cut: Cut,
    position: int,
    *,
    drafter: str,
    rows: int,
    draft_seconds: float,
    pass_seconds: float,
    seconds: float,
) -> Committed:
    """The round as facts, with every probability fetched in one copy."""
    path = verdict.accepted[: len(ids)]
    nodes = (*path, *[None] * (len(ids) - len(path)))
    judged = _judged(draft, nodes[-1])
    token_rows = [0, *(1 + node for node in path)][: len(ids)]
    node_rows = [1 + draft.parents[node] for node in judged]
    wanted = [*ids, *(draft.ids[node] for node in judged)]
    p = log_p[[*token_rows, *node_rows], wanted].exp().tolist()
    return Committed(
        ids=ids,
        origins=tuple(
            Origin.DRAFT_ACCEPTED if node is not None else verdict.origin for node in nodes
        ),
        nodes=nodes,
        token_p=tuple(p[: len(ids)]),
        first_position=position,
        draft=draft,
        judged=judged,
        p=tuple(p[len(ids) :]),
        verdict=verdict,
        cut=cut,
        drafter=drafter,
        rows=rows,
        draft_seconds=draft_seconds,
        pass_seconds=pass_seconds,
        seconds=seconds,
    )


def _judged(draft: Draft, end: int | None) -> tuple[int, ...]:
    """The nodes that count: all but those behind the accepted node that ends the reply."""
    return tuple(node for node in range(len(draft)) if node == end or end not in draft.path(node))
