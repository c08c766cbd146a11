"""What the planner does and why, in plain words and as numbers to show beside them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.costs import COUNTS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engine.planning import Note, Planner

PLAINLY = "Decoding plainly: one token a pass."
_DEPTHS = 6
_STEP = 1.15
"""A count of rows that costs this much more than the one before begins a step worth a word."""

_MOSTLY = 0.5
_SELDOM = 0.25


@dataclass(frozen=True, slots=True)
class Estimates:
    """What the planner goes by now.

    proposer: whose drafts these are. survival: per depth the share kept of what was judged there.
    costs: what 1, 2, ... rows cost, in rounds of one row. gains: per draft length 1, 2, ... the
    tokens to expect in a plain round's time; 1 is plain decoding. draft_length: how far most drafts
    go now, 0 where there are hardly any.
    """

    proposer: str
    survival: tuple[float, ...]
    costs: tuple[float, ...]
    gains: tuple[float, ...]
    draft_length: int


def estimates(planner: Planner, proposers: Sequence[str]) -> Estimates | None:
    """The numbers of whoever drafted last; None before anything is known."""
    notes = planner.notes(proposers, is_forced=False) or planner.notes(proposers, is_forced=True)
    proposer = _spokesman(notes, proposers)
    if proposer is None or planner.costs.is_empty or not planner.prospects(proposer).is_known:
        return None
    depths = range(1, _DEPTHS + 1)
    return Estimates(
        proposer=proposer,
        survival=tuple(planner.prospects(proposer).survival.shares([None] * _DEPTHS)),
        costs=planner.ratios,
        gains=tuple(planner.expected_rate(proposer, depth) for depth in depths),
        draft_length=_usual(_lengths(notes)),
    )


def sentence(
    planner: Planner,
    proposers: Sequence[str],
    draft_length: int | None,
    label: Callable[[str], str],
) -> str:
    """What the next rounds will do, and why. label: a proposer's name as it stands in a text."""
    if not proposers:
        return PLAINLY
    if draft_length is not None:
        ahead = f"Drafting up to {draft_length} ahead in every round, as you chose"
        return f"{ahead}; {_cost_words(planner, draft_length)}."
    notes = planner.notes(proposers, is_forced=False)
    asked = [note for note in notes if note.asked]
    proposer = _spokesman(notes, proposers)
    if not asked or proposer is None:
        return "Drafting as far as it pays; the next rounds will show how far that is."
    name = label(proposer)
    if _lengths(notes):
        return _drafting_words(planner, name, notes)
    found = sum(note.found > 0 for note in asked)
    if found <= _MOSTLY * len(asked):
        nothing = f"{name} found nothing in {len(asked) - found} of the last {len(asked)} rounds"
        return _capital(f"{nothing}; decoding plainly.")
    kept = next(iter(planner.prospects(proposer).survival.shares([None])))
    return _capital(
        f"{name} is right about the next token {kept:.0%} of the time, too seldom to pay; decoding "
        "plainly, and trying again ever more rarely."
    )


def _drafting_words(planner: Planner, name: str, notes: Sequence[Note]) -> str:
    lengths = _lengths(notes)
    usual, most = _usual(lengths), max(lengths)
    rate = sum(note.tokens for note in notes) / sum(note.spent for note in notes)
    mostly = "" if usual == most else f", mostly {usual}"
    done = f"Drafting up to {most} ahead{mostly}, with {name}"
    return f"{done}: {rate:.1f} × plain of late; {_cost_words(planner, usual)}."


def _cost_words(planner: Planner, depth: int) -> str:
    """What the rows of such a draft cost here, and what the next step would."""
    if planner.costs.is_empty:
        return "what that costs here is not known yet"
    ratios, rows = planner.ratios, min(1 + depth, COUNTS[-1])
    words = f"{rows} rows cost {ratios[rows - 1]:.1f} passes here"
    further = [count for count in COUNTS if count > rows]
    dearer = next((n for n in further if ratios[n - 1] > _STEP * ratios[rows - 1]), None)
    return words if dearer is None else f"{words}, {dearer} would cost {ratios[dearer - 1]:.1f}"


def _lengths(notes: Sequence[Note]) -> list[int]:
    """The lengths of the last drafts; none where drafts were few, as trials are."""
    lengths = [note.drafted for note in notes if note.drafted]
    return lengths if len(lengths) > _SELDOM * len(notes) else []


def _usual(lengths: Sequence[int]) -> int:
    return Counter(lengths).most_common(1)[0][0] if lengths else 0


def _spokesman(notes: Sequence[Note], proposers: Sequence[str]) -> str | None:
    """Whoever of them drafted in most of the last rounds, or else was asked."""
    drafted = Counter(note.proposer for note in notes if note.proposer in proposers)
    asked = Counter(name for note in notes for name in note.asked if name in proposers)
    ranked = drafted.most_common(1) or asked.most_common(1)
    return ranked[0][0] if ranked else None


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]
