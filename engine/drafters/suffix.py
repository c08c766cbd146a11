"""Suffix decoding: what most often followed the longest ending of the text that stood in it before.

SuffixDecoding, arXiv 2411.04975; the automaton instead of a tree as in SAM Decoding, 2411.10666.
Where the last token is new, the draft goes on as if it had been what stood in its place before.
"""

from __future__ import annotations

from heapq import heappop, heappush, nlargest
from itertools import count
from typing import TYPE_CHECKING

from engine.draft import NO_DRAFT, NO_PASSENGERS, ROOT, Draft, Passengers
from engine.drafters.family import Family, Target, needs_rewind, refuse_choice
from engine.drafters.suffix_automaton import SuffixAutomaton
from engine.models.kv_memo import common_prefix

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.drafters.drafter import Context, Observation
    from engine.params import SamplingParams
    from engine.planning import Budget
    from engine.sampling import Noise

_DEPTH_PER_MATCH = 8
"""How far a draft goes for each token of its match."""

_LEAST_SHARE = 0.1
"""A path is left where it followed in fewer of the places than this."""

_MOST_SIBLINGS = 4
_DEEPEST_TREE = 16
_LONGEST_GRADE = 8


class SuffixDrafter:
    """Drafts from the conversation, and from the past where that matches more.

    end_ids: a path stops after one of these. past: earlier replies, as ids.
    """

    name = "suffix"
    proposers: tuple[str, ...] = (name,)
    taps: tuple[int, ...] = ()

    def __init__(
        self, *, end_ids: frozenset[int] = frozenset(), past: Sequence[Sequence[int]] = ()
    ) -> None:
        self._end_ids = end_ids
        self._conversation = SuffixAutomaton()
        self._past = SuffixAutomaton()
        for place, reply in enumerate(past):
            for token in (*reply, -1 - place):  # no run reaches over an id that stands once
                self._past.add(token)
        self._past_match = 0, 0

    def propose(
        self, context: Context, budget: Budget, params: SamplingParams, noise: Noise
    ) -> Draft:
        """A chain, or a tree where it may have more nodes than depth; its grade is the match."""
        del params, noise
        if not budget.depth:
            return NO_DRAFT
        self._follow(context.ids)
        source, (state, length) = self._conversation, self._conversation.match
        if self._past_match[1] > length:
            source, (state, length) = self._past, self._past_match
        grade = min(length, _LONGEST_GRADE)
        if not length:
            state, length = _had_it_gone_on(source)
        depth, width = min(budget.depth, _DEPTH_PER_MATCH * length), 1
        if budget.nodes > budget.depth:
            depth, width = min(depth, _DEEPEST_TREE), _MOST_SIBLINGS
        ids, parents = self._grown(source, state, depth, budget.nodes, width)
        return Draft(
            ids=tuple(ids),
            parents=tuple(parents),
            drafters=(self.name,) * len(ids),
            q_rows=(None,) * len(ids),
            q=(None,) * len(ids),
            grades=(grade,) * len(ids),
        )

    def passengers(self, context: Context) -> Passengers:
        """None."""
        del context
        return NO_PASSENGERS

    def observe(self, outcome: Observation) -> None:
        """Nothing to learn: the automaton catches up with the ids when it is asked."""

    def _follow(self, ids: Sequence[int]) -> None:
        """Bring the automaton, and the place in the past, to these ids."""
        known = common_prefix(self._conversation.text, ids)
        if known < len(self._conversation.text):
            self._conversation, self._past_match, known = SuffixAutomaton(), (0, 0), 0
        for token in ids[known:]:
            self._conversation.add(token)
            self._past_match = self._past.step(*self._past_match, token)

    def _grown(
        self, source: SuffixAutomaton, state: int, depth: int, most: int, width: int
    ) -> tuple[list[int], list[int]]:
        """Ids and parents of the most frequent paths from a state, the best first."""
        ids, parents, order = list[int](), list[int](), count()
        # What may come next: minus its path's share, its turn among equals, its parent, its depth,
        # its token, and the state that the token follows.
        open_nodes: list[tuple[float, int, int, int, int, int]] = []

        def open_below(parent: int, state: int, share: float, at: int) -> None:
            for token, its_share in _followers(source, state, width) if at <= depth else ():
                if share * its_share >= _LEAST_SHARE:
                    node = (-share * its_share, next(order), parent, at, token, state)
                    heappush(open_nodes, node)

        open_below(ROOT, state, 1.0, 1)
        while open_nodes and len(ids) < most:
            share, _, parent, at, token, before = heappop(open_nodes)
            ids.append(token)
            parents.append(parent)
            if token not in self._end_ids:
                longer, _ = source.step(before, 0, token)
                open_below(len(ids) - 1, longer, -share, at + 1)
        return ids, parents


def _followers(source: SuffixAutomaton, state: int, width: int) -> list[tuple[int, float]]:
    """The tokens that followed a run most often, and their shares; among equals the newest first.

    Where nothing followed it yet, its longest ending that something followed speaks.
    """
    for ending, _ in source.endings(state):
        following = [(token, to) for token, to in source.following(ending).items() if token >= 0]
        if following:
            total = sum(source.counts[to] for _, to in following)
            seen = [(source.counts[to], source.newest[to], token) for token, to in following]
            return [(token, count / total) for count, _, token in nlargest(width, seen)]
    return []


def _had_it_gone_on(source: SuffixAutomaton) -> tuple[int, int]:
    """For a last token that is new: where the text would be with the one that stood in its place.

    A copy goes on behind what was replaced in it. The length is that of the match before.
    """
    state, length = source.match_before
    for token, _ in _followers(source, state, 2):
        if token != source.text[-1]:
            return source.step(state, 0, token)[0], length
    return state, 0


def _build(target: Target, choice: str | None) -> SuffixDrafter:
    refuse_choice(FAMILY.name, choice)
    return SuffixDrafter(end_ids=target.lm.end_ids)


FAMILY = Family(name="suffix", label="Suffix", build=_build, reason=needs_rewind, grows_trees=True)
