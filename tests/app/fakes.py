"""An engine without a model: its sessions play scripts, which may wait at gates."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from engine.errors import DrafterMismatch, EngineError, LoadCancelled
from engine.events import (
    Drafted,
    Event,
    Finished,
    FinishReason,
    Node,
    Origin,
    Outcome,
    Prefilled,
    Round,
    Token,
)
from engine.stats import Baseline, ReplyStats

if TYPE_CHECKING:
    from app.engine_host import Progress
    from engine.engine import Engine
    from engine.params import ReplyParams
    from engine.plan_words import Estimates

ACCEPTED, RESAMPLED, TARGET_ONLY = Origin.DRAFT_ACCEPTED, Origin.RESAMPLED, Origin.TARGET_ONLY
Script = Callable[["FakeSession", threading.Event], Iterator[Event]]


@dataclass(frozen=True)
class FakeSetting:
    label: str
    least: int
    most: int
    default: int


@dataclass(frozen=True)
class Choice:
    spec: str
    label: str
    reason: str | None = None
    needs: str | None = None
    ships: bool = False
    grows_trees: bool = False
    settings: tuple[FakeSetting, ...] = ()
    note: str | None = None


LOOKAHEAD: Any = Choice(
    "lookahead",
    "Lookahead",
    grows_trees=True,
    settings=(FakeSetting("Window", 1, 31, 7), FakeSetting("Guesses", 1, 31, 5)),
)


@dataclass(frozen=True)
class FakeDevice:
    id: str = "cpu"
    label: str = "CPU, 2 cores"
    memory_bytes: int = 4 * 2**30


@dataclass(frozen=True)
class FakeMessage:
    role: str
    content: str
    ids: tuple[int, ...] | None = None


@dataclass
class FakeDrafting:
    drafter: str = "off"
    draft_length: int | None = 4
    tree_nodes: int = 16


@dataclass
class FakeSession:
    script: Script
    messages: list[FakeMessage] = field(default_factory=list)
    system_prompt: str = ""
    drafting: FakeDrafting = field(default_factory=FakeDrafting)
    thread: threading.Thread | None = None
    params: list[ReplyParams] = field(default_factory=list)
    stopped_after: int | None = None
    estimates: Estimates | None = None

    def reply(
        self, text: str | None, params: ReplyParams, stop: threading.Event
    ) -> Iterator[Event]:
        self.thread = threading.current_thread()
        self.params.append(params)
        yield from self.script(self, stop)
        if text is not None:
            self.messages.append(FakeMessage("user", text, (1, 2)))

    def context_tokens(self, draft_text: str = "") -> int:
        if draft_text == "untokenisable":
            raise EngineError("The model's chat template fails.")
        return 10 * len(self.messages) + len(draft_text.split())

    def plan_sentence(self) -> str:
        return f"Drafting {self.drafting.draft_length} ahead with {self.drafting.drafter}."

    def plan_estimates(self) -> Estimates | None:
        return self.estimates


class FakeEngine:
    name, source, device, dtype = "Fake 1M", "default", "cpu", "float32"
    context_length, bit_exact, notes = 2048, False, ()

    def __init__(self, script: Script) -> None:
        self.script = script
        self.baseline = Baseline()
        self.baseline.calibrate(0.01)
        self.sessions: list[FakeSession] = []
        self.gate = threading.Event()

    def drafter_choices(self) -> tuple[Choice, ...]:
        return (
            Choice("off", "Off"),
            Choice("auto", "Auto"),
            Choice("ngram", "N-gram"),
            Choice("layer-skip", "Layer skip", reason="not for this model"),
            LOOKAHEAD,
            Choice("draft-model", "Draft model…", needs="a model"),
        )

    def drafter(self, spec: str) -> str:
        if spec == "draft-model:/slow":
            assert self.gate.wait(10)
        if spec == "draft-model:/bad":
            raise DrafterMismatch("The draft model has another vocabulary.")
        if spec == "lookahead@31x5":
            raise DrafterMismatch("Lookahead needs at most 64 rows.")
        return spec

    def new_session(self, system_prompt: str = "") -> FakeSession:
        self.sessions.append(FakeSession(self.script, system_prompt=system_prompt))
        return self.sessions[-1]

    def devices(self) -> tuple[FakeDevice, ...]:
        return (FakeDevice(),)


class FakeLoad:
    """What EngineThread loads with. gate: set unless a test wants loading to hang."""

    def __init__(self, script: Script, error: Exception | None = None) -> None:
        self.engines: list[FakeEngine] = []
        self.targets: list[str] = []
        self.gate = threading.Event()
        self.gate.set()
        self.error = error
        self.script = script

    def __call__(
        self, target: str, *, device: str, progress: Progress, stop: threading.Event
    ) -> Engine:
        self.targets.append(target)
        progress("Reading weights", 0.5)
        assert self.gate.wait(10)
        if stop.is_set():
            raise LoadCancelled("Loading was cancelled.")
        if self.error is not None:
            raise self.error
        self.engines.append(FakeEngine(self.script))
        return cast("Engine", self.engines[-1])


def says(*texts: str) -> Script:
    """A reply of one round a text: an accepted token, and a full stop of the target's own."""

    def script(session: FakeSession, stop: threading.Event) -> Iterator[Event]:
        yield Prefilled(8, 8)
        for index, text in enumerate(texts):
            yield Drafted(text, "ngram")
            yield round_of(index, (text, ACCEPTED), (".", TARGET_ONLY))
        yield finished(len(texts), session)

    return script


def talks_until_stopped(go_on: threading.Semaphore) -> Script:
    """One word a round, each at a gate, until Stop; the session notes the number of rounds."""

    def script(session: FakeSession, stop: threading.Event) -> Iterator[Event]:
        yield Prefilled(8, 8)
        rounds = 0
        while not stop.is_set():
            yield round_of(
                rounds, (f" word{rounds}", TARGET_ONLY), drafter=session.drafting.drafter
            )
            rounds += 1
            assert go_on.acquire(timeout=10)
        session.stopped_after = rounds
        yield finished(rounds, session, FinishReason.STOPPED)

    return script


def waits_for_stop(session: FakeSession, stop: threading.Event) -> Iterator[Event]:
    """One word, and then a round that lasts until Stop."""
    yield round_of(0, (" word0", TARGET_ONLY))
    assert stop.wait(10)
    session.stopped_after = 1
    yield finished(1, session, FinishReason.STOPPED)


def stopped_before_a_word(session: FakeSession, stop: threading.Event) -> Iterator[Event]:
    """A conversation of which only the beginning is read, as Stop comes then."""
    yield Prefilled(2, 8)
    assert stop.wait(10)
    yield finished(0, session, FinishReason.STOPPED)


def fails_with(error: Exception, *texts: str) -> Script:
    """A reply that says some texts and then raises."""

    def script(session: FakeSession, stop: threading.Event) -> Iterator[Event]:
        for index, text in enumerate(texts):
            yield round_of(index, (text, TARGET_ONLY))
        raise error

    return script


def in_turn(*scripts: Script) -> Script:
    """Plays the scripts one after the other, one a reply."""
    left = iter(scripts)

    def script(session: FakeSession, stop: threading.Event) -> Iterator[Event]:
        yield from next(left)(session, stop)

    return script


def round_of(index: int, *tokens: tuple[str, Origin], drafter: str = "ngram") -> Round:
    """A round that commits these tokens; the accepted ones are also its nodes."""
    made = tuple(
        Token(100 + depth, text, origin, 8 + 10 * index + depth, depth, 0.5, None, 0.25)
        for depth, (text, origin) in enumerate(tokens, start=1)
    )
    nodes = tuple(
        Node(token.id, token.depth - 2, token.depth, drafter, 0.5, None, Outcome.KEPT)
        for token in made
        if token.origin is ACCEPTED
    )
    return Round(index, made, nodes, drafter, 1 + len(nodes), 0.001, 0.009, 0.0)


def finished(
    rounds: int, session: FakeSession, reason: FinishReason = FinishReason.END_OF_TURN
) -> Finished:
    """The end of a reply of that many rounds."""
    stats = ReplyStats(
        target="Fake 1M",
        drafters=(session.drafting.drafter,),
        params=session.params[-1],
        tokens=2 * rounds,
        rounds=rounds,
        drafted=rounds,
        accepted=rounds,
        resampled=0,
        survival_by_depth=(1.0,),
        prompt_tokens=8,
        prefill_seconds=0.01,
        decode_seconds=0.01 * rounds,
        first_token_seconds=0.02,
        baseline=None,
    )
    return Finished(reason, stats)


async def until(condition: Callable[[], object], seconds: float = 10) -> None:
    """Let the app go on until something holds."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.002)
