"""Runs a plan and keeps every reply; what fails becomes a sentence, and the others go on."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from engine.benchmark.prompts import check_lengths
from engine.benchmark.records import OFF, record
from engine.errors import EngineError
from engine.events import Finished, Round, Token
from engine.planning import Planner
from engine.speculation import Drafting

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engine.benchmark.prompts import Prompt
    from engine.engine import Engine
    from engine.params import ReplyParams
    from engine.stats import ReplyStats

_WARM_UP_TOKENS = 16


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run: `drafters` as specs; `off` is run whether named or not.

    draft_length: None for as far as it pays.
    """

    prompts: Sequence[Prompt]
    drafters: Sequence[str]
    params: ReplyParams
    draft_length: int | None
    tree_nodes: int
    repeats: int = 1

    @property
    def specs(self) -> tuple[str, ...]:
        """The drafters to run, the baseline first."""
        return tuple(dict.fromkeys((OFF, *self.drafters)))


@dataclass(frozen=True, slots=True)
class Sample:
    """One run of one prompt with one drafter."""

    tokens: tuple[Token, ...]
    text: str
    finished: Finished

    @property
    def ids(self) -> list[int]:
        """The reply's ids, the end of turn included."""
        return [token.id for token in self.tokens]

    @property
    def stats(self) -> ReplyStats:
        """Its numbers."""
        return self.finished.stats


class Findings:
    """What has been measured so far; complete at any moment, also after a failure.

    notes: what could not be measured, and why, a sentence each.
    """

    def __init__(self, engine: Engine, plan: Plan) -> None:
        self.notes: list[str] = []
        self._engine = engine
        self._plan = plan
        self._samples: dict[tuple[Prompt, str], list[Sample]] = {}
        self._failed: set[tuple[Prompt, str]] = set()

    def add(self, prompt: Prompt, spec: str) -> None:
        """Run a prompt with a drafter once more, unless that or the plain run has failed before."""
        if self._failed & {(prompt, spec), (prompt, OFF)}:
            return
        try:
            reply = sample(self._engine, self._plan, prompt, spec)
        except EngineError as error:
            self._failed.add((prompt, spec))
            self.notes.append(f"{prompt.place}, with {spec}: {error}")
        else:
            self._samples.setdefault((prompt, spec), []).append(reply)

    def records(self) -> list[dict[str, Any]]:
        """One record for each prompt and drafter that was measured, in the order of the plan."""
        return [
            record(self._engine, self._plan, prompt, spec, samples, self._samples[prompt, OFF])
            for prompt in self._plan.prompts
            for spec in self._plan.specs
            if (samples := self._samples.get((prompt, spec)))
        ]


def run(engine: Engine, plan: Plan, found: Findings, told: Callable[[str, int, int], None]) -> None:
    """Every prompt with every drafter, repeats interleaved after a warm-up.

    told: (what runs next, runs done, runs in all), for a progress bar.

    Raises:
        EngineError: before anything is measured: a drafter that does not fit, a prompt that is too
        long, no memory left.
    """
    for spec in plan.specs:
        engine.drafter(spec)  # what does not fit is said before anything runs
    check_lengths(engine, plan.prompts)
    for spec in plan.specs:
        told(f"warm-up, {spec}", 0, 0)
        params = replace(plan.params, max_new_tokens=_WARM_UP_TOKENS)
        sample(engine, replace(plan, params=params), plan.prompts[0], spec)
    cells = [(prompt, spec) for prompt in plan.prompts for spec in plan.specs]
    total = plan.repeats * len(cells)
    for repeat in range(plan.repeats):
        for at, (prompt, spec) in enumerate(cells):
            told(f"{prompt.id}, {spec}", repeat * len(cells) + at, total)
            found.add(prompt, spec)
    told("done", total, total)


def sample(engine: Engine, plan: Plan, prompt: Prompt, spec: str) -> Sample:
    """One reply in a conversation of its own, by a drafter that has seen nothing yet."""
    session, planner = prompt.session(engine), Planner(engine.costs)
    session.drafting = Drafting(engine.drafter(spec), plan.draft_length, plan.tree_nodes, planner)
    tokens: list[Token] = []
    for event in session.reply(prompt.question, plan.params, threading.Event()):
        match event:
            case Round():
                tokens += event.tokens
            case Finished():
                text = "".join(token.text for token in tokens) + event.text
                return Sample(tuple(tokens), text, event)
            case _:
                pass
    raise AssertionError("A reply ended without saying so.")
