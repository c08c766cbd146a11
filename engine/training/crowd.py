"""Many replies written at once on the native decoder: for speed, not for the last bit."""

# torch's own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

from engine.models.native.native_lm import NativeLM
from engine.training.crowd_rows import CrowdRows, seats_that_fit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from torch import Tensor

    from engine.models.causal_lm import CausalLM

SEATS = 128
"""Conversations at once, fewer where memory is short: more would gain little."""

_SEATED_TOGETHER = 8
_MOST_PROMPT_ROWS = 1024


@dataclass(frozen=True, slots=True)
class Job:
    """A conversation whose next reply is wanted.

    key: whatever the asker knows it by. ids: up to where the reply begins.
    """

    key: str
    ids: tuple[int, ...]
    most_tokens: int
    temperature: float

    @property
    def most_ids(self) -> int:
        """How long the conversation may become."""
        return len(self.ids) + self.most_tokens


NextJob = Callable[[], Job | None]


@dataclass(frozen=True, slots=True)
class Written:
    """A job, and its reply's ids with the end id where it came to one.

    hidden: per tap the target's states, (all ids - 1, hidden size), bfloat16 on the CPU; none
    where the model isn't native.
    """

    job: Job
    reply: tuple[int, ...]
    hidden: Mapping[int, Tensor] = field(compare=False)


def write(
    lm: CausalLM,
    next_job: NextJob,
    *,
    seed: int,
    seats: int = SEATS,
    taps: Sequence[int] = (),
) -> Iterator[Written]:
    """Write a reply to each job, and give each as it is done, until there is no next one.

    next_job: asked when there is room, and again later where it has given None. Neighbours should
    become similarly long. What is drawn follows from the seed and a job's key. taps: where the
    states of what is written are wanted.
    """
    if isinstance(lm, NativeLM):
        return _Crowd(lm, next_job, seed=seed, seats=seats, taps=taps).write()
    return _one_by_one(lm, next_job, seed)


@dataclass(slots=True)
class _Seat:
    job: Job
    chance: random.Random
    reply: list[int] = field(default_factory=list[int])

    def has_ended(self, end_ids: frozenset[int]) -> bool:
        return self.reply[-1] in end_ids or len(self.reply) >= self.job.most_tokens

    @property
    def position(self) -> int:
        """Where its last id stands."""
        return len(self.job.ids) + len(self.reply) - 1


class _Crowd:
    """Conversations on the first of the seats; who leaves gives the seat to the last.

    So those who sit beside one another have mostly come together.
    """

    def __init__(
        self, lm: NativeLM, next_job: NextJob, *, seed: int, seats: int, taps: Sequence[int]
    ) -> None:
        self._most_seats = min(seats, seats_that_fit(lm, taps))
        self._rows = CrowdRows(lm, self._most_seats, taps)
        self._end_ids = lm.end_ids
        self._seed = seed
        self._next_job = next_job
        self._left_over: Job | None = None
        self._seated: list[_Seat] = []

    def write(self) -> Iterator[Written]:
        while True:
            free = self._most_seats - len(self._seated)
            enough = free >= _SEATED_TOGETHER or not self._seated
            jobs = self._taken(free) if enough else []
            if jobs:
                self._begin(jobs)
            elif self._seated:
                self._go_on()
            else:
                return
            yield from self._leaving()

    def _taken(self, free: int) -> list[Job]:
        """The next jobs, as many as are read together."""
        taken, longest = list[Job](), 0
        while len(taken) < free and (job := self._left_over or self._next_job()) is not None:
            self._left_over = None
            longest = max(longest, len(job.ids))
            if taken and (len(taken) + 1) * longest > _MOST_PROMPT_ROWS:
                self._left_over = job
                break
            taken.append(job)
        return taken

    def _begin(self, jobs: Sequence[Job]) -> None:
        """Read prompts, the shorter ones filled up, and write the first id of each reply."""
        lengths = torch.tensor([len(job.ids) for job in jobs])
        longest = int(lengths.max())
        ids = torch.tensor([[*job.ids, *[0] * (longest - len(job.ids))] for job in jobs])
        states = self._rows.run(len(self._seated), ids, torch.zeros_like(lengths))
        new = [_Seat(job, _chance_of(self._seed, job)) for job in jobs]
        self._seated += new
        self._write_next(new, states[torch.arange(len(jobs)), lengths - 1])

    def _go_on(self) -> None:
        ids = torch.tensor([[seat.reply[-1]] for seat in self._seated])
        starts = torch.tensor([seat.position for seat in self._seated])
        self._write_next(self._seated, self._rows.run(0, ids, starts)[:, 0])

    def _write_next(self, seats: Sequence[_Seat], residual: Tensor) -> None:
        chosen = _choose(
            self._rows.logits(residual),
            [seat.job.temperature for seat in seats],
            [seat.chance for seat in seats],
        )
        for seat, token in zip(seats, chosen, strict=True):
            seat.reply.append(token)

    def _leaving(self) -> Iterator[Written]:
        for place in reversed(range(len(self._seated))):
            seat = self._seated[place]
            if seat.has_ended(self._end_ids):
                # The reply's last id was never run.
                states = self._rows.states(place, seat.position)
                last = self._seated.pop()
                if last is not seat:
                    self._rows.move(len(self._seated), place)
                    self._seated[place] = last
                yield Written(seat.job, tuple(seat.reply), states)


def _one_by_one(lm: CausalLM, next_job: NextJob, seed: int) -> Iterator[Written]:
    """The same for a model that reads one conversation at a time."""
    while (job := next_job()) is not None:
        seat, memo = _Seat(job, _chance_of(seed, job)), lm.new_memo()
        while not seat.reply or not seat.has_ended(lm.end_ids):
            scores = lm.score(memo, [*job.ids, *seat.reply])
            scores.keep()
            seat.reply += _choose(scores.logits, [job.temperature], [seat.chance])
        yield Written(job, tuple(seat.reply), {})


def _chance_of(seed: int, job: Job) -> random.Random:
    """Where a job's draws come from, whatever stands beside it."""
    return random.Random(f"{seed} {job.key}")


@torch.inference_mode()
def _choose(
    logits: Tensor, temperatures: Sequence[float], chances: Sequence[random.Random]
) -> list[int]:
    """The likeliest id of each row, or at a temperature one drawn by inverse CDF."""
    chosen = logits.argmax(-1)
    drawn = [row for row, temperature in enumerate(temperatures) if temperature > 0]
    if drawn:
        scale = logits.new_tensor([temperatures[row] for row in drawn])
        uniform = logits.new_tensor([chances[row].random() for row in drawn])
        cumulative = (logits[drawn] / scale[:, None]).softmax(-1).cumsum(-1)
        below = uniform[:, None] * cumulative[:, -1:]
        found = torch.searchsorted(cumulative, below, right=True)[:, 0]
        chosen[drawn] = found.clamp(max=logits.shape[-1] - 1)
    return chosen.tolist()
