"""The command `python -m engine train`: from options to a drafter, and what is said meanwhile."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.training.job import Job, Training
from engine.training.loop import Budget
from engine.training.recipe import RECIPES, DrafterKind

if TYPE_CHECKING:
    import argparse
    import threading
    from collections.abc import Callable

    from engine.engine import Engine
    from engine.training.loop import Learnt
    from engine.training.reading_pace import Reading
    from engine.training.writing import Progress

_SAY_SECONDS = 10.0
_MINUTE = 60


def run(options: argparse.Namespace, engine: Engine, stop: threading.Event) -> None:
    """Train as asked; what has been done before is gone on with.

    Raises:
        EngineError: something can't be read, written or learnt; the sentence says what.
    """
    training, say = Training(engine, _job(options)), _Teller()
    training.write(lambda at: say.share("Writing", at.share, at.seconds_left, _pace(at)), stop)
    if not stop.is_set():
        training.read(lambda at: say.share("Reading", at.share, at.seconds_left, _pace(at)), stop)
    if not stop.is_set():
        for learnt in training.learn(stop):
            say.learnt(learnt)
    if stop.is_set():
        print("Stopped; the same command goes on from here.", file=sys.stderr)
        return
    print(f"The drafter is in {training.finish()}.")


def _job(options: argparse.Namespace) -> Job:
    recipe = replace(RECIPES[DrafterKind(options.kind)], seed=options.seed, layers=options.layers)
    if options.vocabulary is not None:
        recipe = replace(recipe, vocabulary=options.vocabulary)
    budget = None
    if options.minutes is not None:
        budget = Budget(seconds=_MINUTE * options.minutes)
    elif options.tokens is not None:
        budget = Budget(tokens=options.tokens)
    return Job(
        out=options.out,
        work=options.work or options.out / "work",
        recipe=recipe,
        text_tokens=options.text,
        budget=budget,
        prompts=options.prompts,
        disk_bytes=int(options.disk_gb * 1e9),
    )


class _Teller:
    """A line now and then on standard error."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._said = -_SAY_SECONDS

    def share(self, what: str, share: float, left: float | None, more: str) -> None:
        """How much of something is done."""
        if self._is_time() or share >= 1.0:
            print(f"{what} {share:.0%} · {more} · {_left(left)}", file=sys.stderr, flush=True)

    def learnt(self, at: Learnt) -> None:
        """How learning goes."""
        if not self._is_time() and at.acceptance is None:
            return
        parts = [f"Learning {at.share:.0%}", f"step {at.step:,}", f"loss {at.loss:.3f}"]
        parts += [f"{name} {value:.3f}" for name, value in at.parts.items()]
        if at.acceptance is not None:
            parts.append(f"accepted length {at.acceptance.length:.3f}")
        print(" · ".join([*parts, _left(at.seconds_left)]), file=sys.stderr, flush=True)

    def _is_time(self) -> bool:
        now = self._clock()
        if now - self._said < _SAY_SECONDS:
            return False
        self._said = now
        return True


def _pace(at: Progress | Reading) -> str:
    return f"{at.texts:,} texts, {at.tokens:,} tokens, {at.tokens_per_second:.0f}/s"


def _left(seconds: float | None) -> str:
    if seconds is None:
        return "time left not known yet"
    return f"{seconds / _MINUTE:.0f} min left" if seconds >= _MINUTE else f"{seconds:.0f} s left"
