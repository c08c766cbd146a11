"""How far to draft: costs and outcomes in, a budget out; knows proposers by name, no families."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from itertools import accumulate
from math import inf
from typing import TYPE_CHECKING

from engine.costs import COUNTS, MOST_ROWS, CostModel
from engine.draft import NO_DRAFT, Draft
from engine.prospects import Backoff, Prospects
from engine.survival import first_grades, judged_places

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from engine.events import Outcome

_FIRST_DRAFT = 2
"""How far a proposer drafts that nobody knows yet."""

_RATE_MEMORY = 0.97
_RATE_WEIGHT = 5.0
"""How many plain rounds a reply's rate counts for at its beginning."""

_PRIOR_WEIGHT = 0.2
"""What the outcomes of earlier replies weigh in the next."""

_PROBE_GAP = 16
_REMEMBERED_ROUNDS = 16


def _as_it_is(draft: Draft) -> tuple[Draft, float]:
    return draft, 0.0


@dataclass(frozen=True, slots=True)
class Budget:
    """How far a draft may go: depth of its longest path, and nodes in all; 0 means no draft.

    worth: the tokens that drafting so far gains over plain decoding, as far as can be told before.
    shares: where several may propose, the budget of each by name.
    judge: what to keep of a draft, and what that is worth; nothing else may shorten a draft.
    """

    depth: int
    nodes: int
    worth: float = 0.0
    shares: Mapping[str, Budget] = field(default_factory=dict[str, "Budget"])
    judge: Callable[[Draft], tuple[Draft, float]] = _as_it_is

    def share(self, proposer: str) -> Budget:
        """The budget of one of several proposers; where the length is forced, the same for all."""
        return self.shares.get(proposer, self)


NO_BUDGET = Budget(0, 0)


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds a round's draft.

    draft_length: the length the user chose, None for as far as it pays. A pass commits its accepted
    path and one token more, so a path stays one short of the tokens that remain.
    """

    draft_length: int | None
    tree_nodes: int
    remaining_tokens: int
    cache_tokens: int


@dataclass(frozen=True, slots=True)
class Played:
    """A round's outcome. outcomes: one a node; seconds: the whole round's."""

    draft: Draft
    outcomes: Sequence[Outcome]
    tokens: int
    rows: int
    draft_seconds: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Note:
    """What is remembered of a round for words: who was asked, and who drafted how far.

    tokens, spent: what it brought and took, the latter in plain rounds.
    """

    asked: tuple[str, ...]
    proposer: str | None
    found: int
    drafted: int
    tokens: int
    spent: float


class Planner:
    """Decides round by round, for one session, by what rounds have cost and brought so far.

    The aim is the largest rate over the whole reply, tokens a second: a row is worth scoring when
    it is expected to bring more than the same time brings on average.
    """

    def __init__(self, costs: CostModel | None = None) -> None:
        self.costs = costs or CostModel()
        self._notes: deque[Note] = deque(maxlen=_REMEMBERED_ROUNDS)
        self._noted: tuple[Sequence[str], bool] = (), False
        self._known: dict[str, Prospects] = {}
        self._round = 0
        self._probes = Backoff(_PROBE_GAP)
        self._asked: dict[str, Budget] = {}
        self._found: dict[str, int] = {}
        self._expected = inf
        self._probing = False
        self._tokens = self._rounds = _RATE_WEIGHT
        self._cache_tokens = 0

    @property
    def rate(self) -> float:
        """Tokens that a plain round's time brings in this reply; never less than plain decoding."""
        return max(1.0, self._tokens / self._rounds)

    def begin_reply(self) -> None:
        """What earlier replies have taught goes on counting, but for less."""
        self._tokens = self._rounds = _RATE_WEIGHT
        self._notes.clear()
        for prospects in self._known.values():
            prospects.survival.fade(_PRIOR_WEIGHT)
            prospects.trials.begin_anew(self._round)

    def budget(self, proposers: Sequence[str], limits: Limits) -> Budget:
        """How far each of the proposers may draft in the next round."""
        noted = tuple(proposers), limits.draft_length is not None
        if noted != self._noted:
            # What others did, or these were made to do, tells nothing of what they choose to do.
            self._noted = noted
            self._notes.clear()
        self._asked, self._found, self._expected = {}, {}, inf
        self._cache_tokens, self._probing = limits.cache_tokens, False
        most = max(0, limits.remaining_tokens - 1)
        if limits.draft_length is not None:
            depth = min(limits.draft_length, most)
            forced = Budget(depth, max(depth, limits.tree_nodes) if depth else 0)
            self._asked = dict.fromkeys(proposers, replace(forced, worth=inf))
            return forced
        most = min(most, MOST_ROWS - 1)
        if not proposers or not most or self.costs.is_empty:
            return NO_BUDGET
        if self._probes.is_due(self._round):
            self._probing = True
            return NO_BUDGET
        self._asked = dict.fromkeys(proposers, NO_BUDGET)
        for name in proposers:
            self._asked[name] = self._share(name, most, limits.tree_nodes)
            if not self.prospects(name).is_known:
                break  # One stranger at a time, so that it is known what asking it took.
        if len(proposers) == 1:
            return replace(self._asked[proposers[0]], judge=self._judge)
        return Budget(
            depth=max(share.depth for share in self._asked.values()),
            nodes=max(share.nodes for share in self._asked.values()),
            shares=self._asked,
            judge=self._judge,
        )

    def observe(self, played: Played) -> None:
        """Learn from a round, whoever decided about it."""
        cost = played.seconds - played.draft_seconds
        self.costs.observe(played.rows, self._cache_tokens, cost)
        plain = self.costs.seconds(1, self._cache_tokens)
        ratio = self.costs.seconds(played.rows, self._cache_tokens) / plain
        spent = ratio + played.draft_seconds / plain
        gain = played.tokens - 1 - self.rate * (spent - 1.0)
        self._tokens = _RATE_MEMORY * self._tokens + played.tokens
        self._rounds = _RATE_MEMORY * self._rounds + spent
        self._round += 1
        self._observe_draft(played, gain, spent)
        if played.rows == 1:
            self._observe_plain()

    def notes(self, proposers: Sequence[str], *, is_forced: bool) -> Sequence[Note]:
        """The last rounds, if these were in charge and their length was forced, or was not."""
        return tuple(self._notes) if self._noted == (tuple(proposers), is_forced) else ()

    def prospects(self, proposer: str) -> Prospects:
        """What is known of a proposer."""
        if proposer not in self._known:
            self._known[proposer] = Prospects()
        return self._known[proposer]

    @property
    def ratios(self) -> tuple[float, ...]:
        """What 1, 2, ... rows cost at the length the cache has now, in rounds of one row."""
        return self.costs.ratios(self._cache_tokens)

    def expected_rate(self, proposer: str, depth: int) -> float:
        """Tokens to expect in a plain round's time where it drafts so far."""
        prospects = self.prospects(proposer)
        token_cost = prospects.token_cost(self.costs.seconds(1, self._cache_tokens))
        tokens = 1.0 + sum(prospects.survival.reach([None] * depth))
        return tokens / (self.ratios[depth] + token_cost * depth)

    def gain(self, proposer: str) -> float:
        """Tokens that a draft of the best length gains over plain decoding; negative is a loss."""
        return -inf if self.costs.is_empty else self._best(proposer, MOST_ROWS - 1)[1]

    def _share(self, proposer: str, most: int, tree_nodes: int) -> Budget:
        """One proposer's budget, before it is asked."""
        prospects = self.prospects(proposer)
        if tree_nodes:
            most = max(1, min(most, tree_nodes - 1))  # A tree has more nodes than it is deep.
        if not prospects.is_known:
            depth, worth = min(_FIRST_DRAFT, most), -inf
        elif prospects.is_cheap(self.costs.seconds(1, self._cache_tokens)):
            depth, worth = most, inf
        else:
            depth, worth = self._best(proposer, most, tree_nodes)
            if worth <= 0.0 and not prospects.trials.is_due(self._round):
                return NO_BUDGET
        return Budget(depth, max(depth, tree_nodes), worth)

    def _best(self, proposer: str, most: int, tree_nodes: int = 0) -> tuple[int, float]:
        """The draft length that gains most as far as can be told before, and its gain."""
        prospects = self.prospects(proposer)
        depths = [n for n in range(1, most + 1) if tree_nodes or n + 1 in COUNTS or n == most]
        place, gain = prospects.best(
            [None] * most,
            ((max(depth, tree_nodes), depth) for depth in depths),
            self.ratios,
            self.rate,
            token_cost=prospects.token_cost(self.costs.seconds(1, self._cache_tokens)),
        )
        return depths[place], gain

    def _judge(self, draft: Draft) -> tuple[Draft, float]:
        """The beginning of a draft that gains most now that it is there, and its gain.

        Of a tree the best nodes come first, so that its beginning is a tree worth having too.
        """
        if not len(draft):
            return draft, 0.0
        proposer = draft.drafters[0]
        prospects = self.prospects(proposer)
        self._found[proposer] = max(len(draft), self._found.get(proposer, 0))
        cheap = prospects.is_cheap(self.costs.seconds(1, self._cache_tokens))
        # A drawn node is never dropped for what it is, and who was asked at a price decided before.
        may_cut = cheap and draft.is_deterministic
        sizes = _beginnings(draft) if may_cut else [(len(draft), max(draft.depths))]
        place, gain = prospects.best(first_grades(draft), sizes, self.ratios, self.rate)
        self._expected = gain
        if may_cut and gain <= 0.0 and not prospects.trials.is_due(self._round):
            return NO_DRAFT, 0.0
        return draft.first(sizes[place][0]) if may_cut else draft, gain

    def _observe_draft(self, played: Played, gain: float, spent: float) -> None:
        draft = played.draft
        proposer = draft.drafters[0] if len(draft) else None
        asked = tuple(name for name, share in self._asked.items() if share.depth)
        riders = played.rows - 1 - len(draft)
        if len(asked) == 1:
            self.prospects(asked[0]).riders = riders
        if proposer is not None:
            found = max(len(draft), self._found.get(proposer, 0))
            prospects = self.prospects(proposer)
            share = self._asked.get(proposer, NO_BUDGET)
            expected = min(self._expected, share.worth)
            if prospects.is_known and expected <= 0.0:
                prospects.trials.tried(self._round, paid=gain >= 0.0, loss=-expected)
            prospects.asked(played.draft_seconds, found)
            prospects.survival.add(judged_places(draft, played.outcomes))
        elif len(asked) == 1:
            self.prospects(asked[0]).asked(played.draft_seconds, 0)
            if riders:
                self.prospects(asked[0]).trials.tried(self._round, paid=False, loss=-gain)
        found = sum(self._found.values())
        self._notes.append(Note(asked, proposer, found, len(draft), played.tokens, spent))

    def _observe_plain(self) -> None:
        if self._probing:
            loss = max(0.0, self.rate - 1.0)
            self._probes.tried(self._round, paid=False, loss=loss)
        else:
            self._probes.put_off(self._round)


def _beginnings(draft: Draft) -> list[tuple[int, int]]:
    """Nodes and depth of the beginnings of a draft that end at a step's edge, and of the whole."""
    depths = accumulate(draft.depths, max)
    whole = len(draft)
    return [(n, depth) for n, depth in enumerate(depths, 1) if n + 1 in COUNTS or n == whole]
