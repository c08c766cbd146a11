"""Learning itself, step after step: told and kept as it goes, and gone on with after a kill.

What a step learns from and with which noise follows from its number and the seed, so a run that was
interrupted comes to the same weights as one that was not, where its length is counted in tokens.
"""

# torch's own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Protocol

from engine.errors import DrafterMismatch, EngineError
from engine.training.acceptance import Acceptance, acceptance
from engine.training.batches import Order, generator_of, packed
from engine.training.checkpoint import Point, Standing
from engine.training.optimiser import Optimiser
from engine.training.teacher import Taught, Teacher

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import torch

    from engine.training.batches import Batch
    from engine.training.checkpoint import Checkpoint
    from engine.training.examples import Example
    from engine.training.learner import Learner
    from engine.training.recipe import Recipe

_KEEP_SECONDS = 60.0
_MEASUREMENTS = 25
_PRIME = 7_919
_FEW = 16
_APART = (
    "The numbers have come apart while learning; the last checkpoint is kept. Start anew in "
    "another folder, with other texts or another seed."
)


class Examples(Protocol):
    """Texts beside the target's states, read when they are wanted."""

    def __getitem__(self, place: int, /) -> Example:
        """One of them."""
        ...


@dataclass(frozen=True, slots=True)
class Lessons:
    """What there is to learn from. lengths: ids of each example.

    learnt, held_out: places of the examples to learn from, and of those to measure on, which the
    target wrote greedily. drawn: places of drawn ones to measure on.
    """

    examples: Examples
    lengths: Sequence[int]
    learnt: Sequence[int]
    held_out: Sequence[int]
    drawn: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Budget:
    """How long to learn: tokens that were taught, counted as often as they are met, or seconds."""

    tokens: int | None = None
    seconds: float | None = None

    def share(self, tokens: int, seconds: float) -> float:
        """How much of it is spent."""
        spent = [0.0]
        if self.tokens is not None:
            spent.append(tokens / max(1, self.tokens))
        if self.seconds is not None:
            spent.append(seconds / max(1e-9, self.seconds))
        return min(1.0, max(spent))


@dataclass(frozen=True, slots=True)
class Learnt:
    """After a step: how far learning is. loss: of this step, with its parts.

    acceptance: on what was held out, where it has just been measured.
    """

    step: int
    share: float
    tokens: int
    seconds: float
    loss: float
    parts: Mapping[str, float]
    acceptance: Acceptance | None

    @property
    def seconds_left(self) -> float:
        """What it will take at the speed so far."""
        return self.seconds * (1.0 - self.share) / max(self.share, 1e-9)


class Learning:
    """One run, from its checkpoint if there is one.

    Raises:
        EngineError: the checkpoint is damaged or another's.
    """

    def __init__(
        self,
        learner: Learner,
        recipe: Recipe,
        lessons: Lessons,
        checkpoint: Checkpoint,
        *,
        device: torch.device,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.learner = learner
        self._recipe = recipe
        self._lessons = lessons
        self._checkpoint = checkpoint
        self._device = device
        self._teacher = Teacher(learner.drafted, recipe.temperature)
        self._clock = clock
        self._optimiser = Optimiser(learner.weights, recipe)
        lengths = [lessons.lengths[place] for place in lessons.learnt]
        self._order = Order(lengths, recipe.rows, recipe.seed)
        few = [lessons.examples[place] for place in lessons.learnt[:_FEW]]
        self._first = _shared_beginning(few) if recipe.prompts else None
        self.step, self.tokens, self.seconds = 0, 0, 0.0
        self.curve: tuple[Point, ...] = ()
        self._restore()

    def run(self, budget: Budget, stop: threading.Event) -> Iterator[Learnt]:
        """Learn until the budget is spent or `stop` is set; either way all is kept.

        Raises:
            EngineError: the numbers have come apart, or nothing can be kept any more.
        """
        kept, now = self._clock(), self._clock()
        share = budget.share(self.tokens, self.seconds)
        while share < 1.0 and not stop.is_set():
            loss, parts = self._learn_once(share)
            self.seconds, now = self.seconds + self._clock() - now, self._clock()
            before, share = share, budget.share(self.tokens, self.seconds)
            found = None
            if int(share * _MEASUREMENTS) > int(before * _MEASUREMENTS):
                found = self.measure()
                self.curve += (
                    Point(self.seconds, self.tokens, loss, found.length, found.survival),
                )
            if share >= 1.0 or self._clock() - kept >= _KEEP_SECONDS:
                self.keep()
                kept = self._clock()
            yield Learnt(self.step, share, self.tokens, self.seconds, loss, parts, found)
            now = self._clock()
        if stop.is_set() and self.step:
            self.keep()

    def measure(self) -> Acceptance:
        """What chains would gain on what was held out."""
        hits = [each for batch in self.held_out() for each in self.learner.hits(batch)]
        return acceptance(hits)

    def held_out(self) -> list[Batch]:
        """What was held out, in batches."""
        return self._batches(self._lessons.held_out)

    def drawn(self) -> list[Batch]:
        """What was held out and is drawn, in batches."""
        return self._batches(self._lessons.drawn)

    def keep(self) -> None:
        """Write the checkpoint.

        Raises:
            EngineError: it can't be written.
        """
        tensors = self.learner.weights.state() | self._optimiser.state()
        ids = self.learner.drafted.ids
        self._checkpoint.keep(
            Standing(self.step, self.tokens, self.seconds, self.curve, ids, tensors)
        )

    def _learn_once(self, share: float) -> tuple[float, Mapping[str, float]]:
        places = [self._lessons.learnt[place] for place in self._order(self.step)]
        batch = self._packed(places, taught_from=self._first)
        chance = generator_of(self._recipe.seed * _PRIME + self.step)
        said = self._teacher.said(places, batch)
        taught = Taught.of(batch, said, self.learner.drafted, chance)
        try:
            loss, parts = self.learner.loss(batch, taught, chance, self._recipe.depths_at(share))
        except DrafterMismatch as error:  # weights that are no numbers
            raise EngineError(_APART) from error
        value = float(loss.detach())
        if not math.isfinite(value):
            raise EngineError(_APART)
        loss.backward()
        self._optimiser.step(share)
        self.step += 1
        self.tokens += sum(len(reply) for reply in batch.replies)
        return value, parts

    def _batches(self, wanted: Sequence[int]) -> list[Batch]:
        batches, places, rows = list[list[int]](), list[int](), 0
        for place in wanted:
            rows += self._lessons.lengths[place]
            places.append(place)
            if rows >= self._recipe.rows:
                batches.append(places)
                places, rows = [], 0
        return [self._packed(each) for each in [*batches, places] if each]

    def _packed(self, places: Sequence[int], *, taught_from: int | None = None) -> Batch:
        """Examples in a batch, taught from a place on or behind their replies alone."""
        examples = [self._lessons.examples[place] for place in places]
        if taught_from is not None:
            examples = [example.taught_from(taught_from) for example in examples]
        return packed(examples, self.learner.taps, self._device)

    def _restore(self) -> None:
        standing = self._checkpoint.read()
        if standing is None:
            return
        weights = {
            name: held for name, held in standing.tensors.items() if not name.startswith("exp_avg")
        }
        try:
            if standing.ids.tolist() != self.learner.drafted.ids.tolist():
                raise ValueError
            self.learner.weights.load_state(weights)
            self._optimiser.load_state(standing.tensors, standing.step)
        except (ValueError, KeyError) as error:
            raise EngineError(
                f"The checkpoint {self._checkpoint.path} holds other weights than are to be "
                "learnt. Delete it to learn anew; the texts beside it are kept."
            ) from error
        self.step, self.tokens = standing.step, standing.tokens
        self.seconds, self.curve = standing.seconds, standing.curve


def _shared_beginning(examples: Sequence[Example]) -> int:
    """How many ids all of them begin with: what is the same every time teaches nothing."""
    columns = zip(*(example.ids.tolist() for example in examples), strict=False)
    return len(list(takewhile(lambda column: len(set(column)) == 1, columns)))
