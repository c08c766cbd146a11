"""The target writes the text that its drafters learn from: replies to prompts, greedy and drawn."""

from __future__ import annotations

import math
import random
import time
from collections import deque
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Protocol, TypeVar

from engine.templates import Message
from engine.training.crowd import SEATS, Job, write
from engine.training.examples import Example, Text
from engine.training.prompts import REPLY
from engine.training.store import StoredText
from engine.training.unpacking import unpacked_once

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator, Sequence

    from engine.models.causal_lm import CausalLM
    from engine.training.crowd import Written
    from engine.training.features import FeatureStore
    from engine.training.prompts import TrainingPrompt
    from engine.training.store import TextStore

Number = TypeVar("Number", int, float)

_GREEDY_SHARE = 0.5
_TEMPERATURES = ((0.8, 0.85), (1.0, 0.15))
"""Of what is drawn, with which share."""

_LENGTHS = ((256, 0.85), (448, 0.15))
"""Most tokens of a reply, with which share: drafters must see late places too."""

_MOST_PROMPT_TOKENS = 1536
_SORTED_TOGETHER = 512
_FEWEST_TOKENS = 16
_USUAL_TOKENS = 128
_TEXTS_A_SHARD = 128
_KEEP_SECONDS = 60.0


class Speaker(Protocol):
    """What is needed of an engine."""

    @property
    def lm(self) -> CausalLM:
        """The target."""
        ...

    def prompt_ids(self, messages: Sequence[Message]) -> list[int]:
        """A conversation in the target's tokens, up to where its reply begins."""
        ...

    def text(self, ids: Sequence[int]) -> str:
        """The text of a reply's ids."""
        ...


@dataclass(frozen=True, slots=True)
class Progress:
    """texts, tokens: written by now, and the tokens of replies in them; share: of what is wanted.

    seconds: since the start. tokens_per_second, seconds_left: by the pace since then.
    """

    texts: int
    tokens: int
    share: float
    seconds: float
    tokens_per_second: float
    seconds_left: float | None


@dataclass(frozen=True, slots=True)
class Writing:
    """How much is to be written. tokens: of replies; None for one writing of every prompt."""

    seed: int = 0
    tokens: int | None = None
    seats: int = SEATS


def write_texts(
    speaker: Speaker,
    prompts: Sequence[TrainingPrompt],
    store: TextStore,
    states: FeatureStore,
    writing: Writing,
    *,
    told: Callable[[Progress], None] = lambda progress: None,
    stop: threading.Event,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Have replies written until there are as many as wanted, those in the store counted in.

    A prompt's second writing is drawn where its first was greedy, and the other way round; all
    further ones are drawn. Texts are kept a shard at a time, a minute's at the most: after a kill,
    what was written since the last is written anew. Then the states are kept that a native model
    had as it wrote them; those of other texts, and what a kill left out, are still to be read.

    Raises:
        EngineError: a store can't be read or written.
    """
    _Writer(speaker, prompts, store, states, writing, clock).run(told, stop)


@dataclass(slots=True)
class _Conversation:
    """One writing of a prompt, as far as it has come."""

    prompt: TrainingPrompt
    writing: int
    replies: list[tuple[int, ...]]


class _Writer:
    def __init__(
        self,
        speaker: Speaker,
        prompts: Sequence[TrainingPrompt],
        store: TextStore,
        states: FeatureStore,
        writing: Writing,
        clock: Callable[[], float],
    ) -> None:
        self._speaker = speaker
        self._prompts = prompts
        self._store = store
        self._states = states
        self._writing = writing
        self._clock = clock
        kept = store.read()
        self._replies: dict[tuple[str, int], list[tuple[int, ...]]] = {}
        for each in sorted(kept, key=lambda each: each.turn):
            self._replies.setdefault((each.prompt, each.writing), []).append(each.reply)
        self._texts = len(kept)
        self._tokens = sum(len(each.reply) for each in kept)
        self._open: dict[str, _Conversation] = {}
        self._waiting: list[_Conversation] = []
        self._queue = deque[tuple[Job, _Conversation]]()
        self._queued = 0
        self._beginnings = self._begun()
        self._start, self._tokens_before = clock(), self._tokens

    def run(self, told: Callable[[Progress], None], stop: threading.Event) -> None:
        lm, shard = unpacked_once(self._speaker.lm), list[tuple[StoredText, Example]]()
        choice, kept = self._writing, self._clock()
        for written in write(
            lm, self._next_job, seed=choice.seed, seats=choice.seats, taps=self._states.taps
        ):
            stored = self._taken(written)
            shard.append((stored, Example.of(stored.text, written.hidden)))
            told(self._progress())
            if len(shard) == _TEXTS_A_SHARD or self._clock() - kept >= _KEEP_SECONDS:
                self._keep(shard)
                shard.clear()
                kept = self._clock()
            if stop.is_set():
                break
        if shard:
            self._keep(shard)

    def _keep(self, shard: Sequence[tuple[StoredText, Example]]) -> None:
        """Texts first: states can be read again, but only of texts that there are."""
        self._store.add([stored for stored, _ in shard])
        self._states.add([each for each in shard if each[1].hidden])

    def _taken(self, written: Written) -> StoredText:
        job = written.job
        conversation = self._open.pop(job.key)
        turn = len(conversation.replies)
        conversation.replies.append(written.reply)
        if turn + 1 < len(conversation.prompt.turns):
            self._waiting.append(conversation)
        self._texts += 1
        self._tokens += len(written.reply)
        text = Text((*job.ids, *written.reply), len(job.ids), job.temperature)
        return StoredText(conversation.prompt.key, conversation.writing, turn, text)

    def _next_job(self) -> Job | None:
        """What there is to write, None where that is enough, or others have to be done first."""
        if self._lacking_texts() <= 0:
            return None
        while not self._queue:
            conversations = [*self._waiting, *next(self._beginnings, ())]
            if not conversations:
                return None
            self._waiting.clear()
            found = [(self._job(each), each) for each in conversations]
            jobs = [(job, conversation) for job, conversation in found if job is not None]
            self._queue.extend(sorted(jobs, key=lambda pair: pair[0].most_ids))
            self._queued += len(jobs)
        job, conversation = self._queue.popleft()
        self._open[job.key] = conversation
        return job

    def _begun(self) -> Iterator[list[_Conversation]]:
        """Conversations that lack replies, some hundred at a time; without end if tokens count."""
        for writing in range(1) if self._writing.tokens is None else count():
            missing = list[_Conversation]()
            for prompt in self._prompts:
                replies = self._replies.get((prompt.key, writing), [])
                if len(replies) < len(prompt.turns):
                    missing.append(_Conversation(prompt, writing, list(replies)))
            queued = self._queued
            lacks_some = bool(missing)
            while missing:
                together = math.ceil(min(_SORTED_TOGETHER, max(1, self._lacking_texts())))
                yield missing[:together]
                del missing[:together]
            if lacks_some and self._queued == queued:  # no prompt leaves room for a reply
                return

    def _job(self, conversation: _Conversation) -> Job | None:
        """The next turn as a job, None where its prompt is too long."""
        prompt, writing, seed = conversation.prompt, conversation.writing, self._writing.seed
        ids = self._speaker.prompt_ids(self._messages(conversation))
        chance = random.Random(f"{seed} {prompt.key} {writing}")
        begins_greedy = random.Random(f"{seed} {prompt.key}").random() < _GREEDY_SHARE
        temperature = _drawn(_TEMPERATURES, chance)
        if writing < 2 and begins_greedy == (writing == 0):
            temperature = 0.0
        room = self._speaker.lm.context_length - len(ids)
        most = min(_drawn(_LENGTHS, chance), room)
        if most < _FEWEST_TOKENS or len(ids) > _MOST_PROMPT_TOKENS:
            return None
        key = f"{prompt.key} {writing} {len(conversation.replies)}"
        return Job(key, tuple(ids), most, temperature)

    def _messages(self, conversation: _Conversation) -> list[Message]:
        prompt, replies = conversation.prompt, conversation.replies
        messages = list(prompt.before)
        for turn, text in enumerate(prompt.turns[: len(replies) + 1]):
            if REPLY in text:
                text = text.replace(REPLY, messages[-1].content)
                messages = [each for each in prompt.before if each.role == "system"]
            messages.append(Message("user", text))
            if turn < len(replies):
                messages.append(self._reply(replies[turn]))
        return messages

    def _reply(self, ids: tuple[int, ...]) -> Message:
        own = ids[:-1] if ids[-1] in self._speaker.lm.end_ids else ids
        return Message("assistant", self._speaker.text(own), own)

    def _lacking_texts(self) -> float:
        """About how many more there should be, besides those that are being written."""
        if self._writing.tokens is None:
            return math.inf
        usual = self._tokens / self._texts if self._texts else _USUAL_TOKENS
        return (self._writing.tokens - self._tokens) / usual - len(self._open)

    def _progress(self) -> Progress:
        seconds = self._clock() - self._start
        pace = (self._tokens - self._tokens_before) / max(seconds, 1e-9)
        if self._writing.tokens is None:
            share = self._texts / sum(len(prompt.turns) for prompt in self._prompts)
        else:
            share = self._tokens / self._writing.tokens
        share = min(1.0, share)
        left = self._tokens * (1 / share - 1) / pace if share and pace else None
        return Progress(self._texts, self._tokens, share, seconds, pace, left)


def _drawn(choices: Sequence[tuple[Number, float]], chance: random.Random) -> Number:
    values, shares = zip(*choices, strict=True)
    return chance.choices(values, shares)[0]
