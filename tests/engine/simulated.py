"""Replies without a model: what holds is drawn or recorded, what a round takes is looked up."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from engine.costs import COUNTS, LENGTHS, CostModel
from engine.draft import NO_DRAFT, Draft
from engine.events import Outcome
from engine.planning import Limits, Planner, Played

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

CACHE_TOKENS = 300
PASS_SECONDS = 0.01


# What k rows cost, in passes of one row.


def staircase(rows: int) -> float:
    """The packed decoder on the reference machine (research/measurements.md), steps of four."""
    few = {1: 13.0, 2: 14.0, 3: 15.5, 4: 17.5, 8: 25.0, 12: 33.0, 16: 40.5}
    many = {24: 53.0, 32: 66.0, 48: 98.0, 64: 130.0}
    return next(cost for count, cost in (few | many).items() if rows <= count) / 13.0


def flat(rows: int) -> float:
    """A large GPU: up to 64 rows cost little more than one."""
    return 1.0 + 0.005 * (rows - 1)


def steady(rows: int) -> float:
    """Every row costs a little."""
    return 1.0 + 0.12 * (rows - 1)


def steep(rows: int) -> float:
    """A model that is bound by arithmetic: drafting seldom pays."""
    return 1.0 + 0.55 * (rows - 1)


CURVES = {curve.__name__: curve for curve in (staircase, flat, steady, steep)}
LONGEST_FIXED = (0, 1, 2, 3, 4, 5, 7, 9, 11, 15, 23, 31, 47, 63)


def measured(curve: Callable[[int], float]) -> CostModel:
    """The costs as loading would have measured them."""
    seconds = {rows: PASS_SECONDS * curve(rows) for rows in COUNTS}
    return CostModel(dict.fromkeys(LENGTHS[:3], seconds))


# What is proposed, and how much of it holds.


@dataclass(frozen=True)
class Proposal:
    """At one place of a text: how sure the proposer is, what it finds, how much of that holds."""

    grade: int
    found: int
    holds: int


@dataclass(frozen=True)
class Text:
    """What one proposer would find at each place of a reply, and its price in passes."""

    proposals: Sequence[Proposal]
    name: str = "x"
    asking: float = 0.002
    each: float = 0.0

    def __len__(self) -> int:
        return len(self.proposals)

    def seconds(self, drafted: int) -> float:
        return PASS_SECONDS * (self.asking + self.each * drafted)


def drawn(tokens: int, holds: Callable[[int], float], seed: int, each: float = 0.0) -> Text:
    """A proposer that always finds something; the token at a place holds with its probability."""
    generator = random.Random(seed)
    right = [generator.random() < holds(place) for place in range(tokens)]
    run, proposals = 0, list[Proposal]()
    for is_right in reversed(right):
        run = run + 1 if is_right else 0
        proposals.append(Proposal(0, 63, run))
    return Text(proposals[::-1], each=each)


def recorded() -> dict[str, Text]:
    """Real n-gram proposals: the default model, greedily, on the first prompt of each category.

    Per token of 64: the length of the match, the ids proposed, how many the model said itself.
    """
    path = Path(__file__).parent / "data" / "ngram_rounds.json"
    rows = json.loads(path.read_text(encoding="utf-8"))
    return {name: Text([Proposal(*row) for row in found]) for name, found in rows.items()}


# Who decides.


@dataclass
class Spent:
    """A reply's time by the curve itself, whatever the planner was told."""

    seconds: float = 0.0
    drafted: list[int] = field(default_factory=list)


def planned(
    planner: Planner,
    text: Text,
    curve: Callable[[int], float],
    disturbed: Callable[[int], float] = lambda round_index: 1.0,
) -> Spent:
    """A reply by the planner; disturbed: how much longer a round takes than it should."""
    spent, place = Spent(), 0
    planner.begin_reply()
    while place < len(text):
        left = len(text) - place
        limits = Limits(None, 0, remaining_tokens=left, cache_tokens=CACHE_TOKENS)
        budget = planner.budget((text.name,), limits)
        proposal = text.proposals[place]
        count = min(budget.depth, proposal.found)
        found = Draft.chain([7] * count, text.name, grade=proposal.grade) if count else NO_DRAFT
        draft, _ = budget.judge(found)
        draft_seconds = text.seconds(count) if budget.depth else 0.0
        seconds = draft_seconds + PASS_SECONDS * curve(1 + len(draft))
        tokens = min(1 + min(len(draft), proposal.holds), left)
        slower = disturbed(len(spent.drafted))
        outcomes = outcomes_of(len(draft), proposal.holds)
        planner.observe(
            Played(
                draft, outcomes, tokens, 1 + len(draft), slower * draft_seconds, slower * seconds
            )
        )
        spent.seconds += seconds
        spent.drafted.append(len(draft))
        place += tokens
    return spent


def fixed(length: int, text: Text, curve: Callable[[int], float]) -> float:
    """The seconds of a reply that always drafts so far."""
    seconds, place = 0.0, 0
    while place < len(text):
        proposal = text.proposals[place]
        count = min(length, proposal.found, len(text) - place - 1)
        seconds += PASS_SECONDS * curve(1 + count) + (text.seconds(count) if length else 0.0)
        place += 1 + min(count, proposal.holds)
    return seconds


def best_fixed(text: Text, curve: Callable[[int], float]) -> float:
    """The seconds of the best fixed length, chosen when all is known."""
    return min(fixed(length, text, curve) for length in LONGEST_FIXED)


def outcomes_of(drafted: int, holds: int) -> list[Outcome]:
    """A chain's outcomes when so many of its nodes hold."""
    kept = [Outcome.KEPT] * min(holds, drafted)
    turned_down = [Outcome.TURNED_DOWN] * (holds < drafted)
    return kept + turned_down + [Outcome.NOT_REACHED] * (drafted - len(kept) - len(turned_down))
