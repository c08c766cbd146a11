"""The engine and the current conversation as the worker sees them, on the engine thread."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from engine.errors import LoadCancelled

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Generator, Sequence

    from engine.drafters.family import Setting
    from engine.engine import Device, DrafterChoice, Engine
    from engine.events import Event
    from engine.params import ReplyParams
    from engine.plan_words import Estimates
    from engine.session import Session
    from engine.stats import BaselineReading

    Progress = Callable[[str, float | None], None]


def family_of(spec: str) -> str:
    """The spec without its model and numbers."""
    return spec.partition(":")[0].partition("@")[0]


def numbers_of(spec: str) -> list[int]:
    """The numbers that follow a family's name, as in "lookahead@7x5x7"; none where none do."""
    numbers = spec.removeprefix(family_of(spec)).removeprefix("@").replace("x", ",").split(",")
    return [int(number) for number in numbers] if all(map(str.isdecimal, numbers)) else []


def takes(settings: Sequence[Setting], spec: str) -> bool:
    """Whether a spec has no numbers, or one in range for each of these settings."""
    numbers = numbers_of(spec)
    if len(numbers) != len(settings):
        return not numbers
    pairs = zip(settings, numbers, strict=True)
    return all(setting.least <= number <= setting.most for setting, number in pairs)


@dataclass(frozen=True, slots=True)
class LoadedTarget:
    """What the window shows of a loaded target; see `engine.Engine` for the fields."""

    name: str
    source: str
    device: str
    dtype: str
    context_length: int
    bit_exact: bool
    notes: tuple[str, ...]
    choices: tuple[DrafterChoice, ...]
    devices: tuple[Device, ...]

    @property
    def place(self) -> str:
        """Where it comes from and where it runs."""
        source = "Comes with Draftlight" if self.source == "default" else self.source
        return f"{source}\n{self.device}, {self.dtype}"

    def usable_drafter(self, wished: str) -> str:
        """The drafter wished for if this target can use its family, else auto, else none.

        Numbers that this target does not take give way to the family's defaults.
        """
        family = family_of(wished)
        usable = {choice.spec: choice for choice in self.choices if choice.reason is None}
        if family in usable:
            return wished if takes(usable[family].settings, wished) else family
        return "auto" if "auto" in usable and wished != "off" else "off"


@dataclass(frozen=True, slots=True)
class Outlook:
    """The planner's sentence, what it goes by, and plain decoding's speed as measured."""

    plan: str
    baseline: BaselineReading | None
    estimates: Estimates | None = None


class LoadEngine(Protocol):
    """How a target becomes an engine: `load_engine`, or a test's fake."""

    def __call__(
        self, target: str, *, device: str, progress: Progress, stop: threading.Event
    ) -> Engine:
        """Load, or raise EngineError; `stop` ends it early with LoadCancelled."""
        ...


def load_engine(target: str, *, device: str, progress: Progress, stop: threading.Event) -> Engine:
    """`Engine.load`, imported here and so on the worker: the window is up before torch is."""
    progress("Starting the engine", None)
    from engine.engine import Engine

    return Engine.load(target, device=device, progress=progress, stop=stop)


class EngineHost:
    """Holds the engine and the current session; empty until the first load has succeeded."""

    def __init__(self, load_engine: LoadEngine) -> None:
        self._load_engine = load_engine
        self._engine: Engine | None = None
        self._session: Session | None = None

    @property
    def is_loaded(self) -> bool:
        """Whether there is a session; may be asked on any thread."""
        return self._session is not None

    def load(
        self, target: str, *, device: str, progress: Progress, stop: threading.Event
    ) -> LoadedTarget:
        """Load a target and continue the conversation with it; on failure the old one stays."""
        engine = self._load_engine(target, device=device, progress=progress, stop=stop)
        if stop.is_set():
            raise LoadCancelled("Loading was cancelled.")
        self._take_over(engine)
        return LoadedTarget(
            name=engine.name,
            source=engine.source,
            device=engine.device,
            dtype=engine.dtype,
            context_length=engine.context_length,
            bit_exact=engine.bit_exact,
            notes=engine.notes,
            choices=engine.drafter_choices(),
            devices=engine.devices(),
        )

    def reply(
        self, text: str | None, params: ReplyParams, system_prompt: str, stop: threading.Event
    ) -> Generator[Event, None, None]:
        """The current session's reply; closed with it when the reader leaves early."""
        session = self._current()
        session.system_prompt = system_prompt
        yield from session.reply(text, params, stop)

    def new_chat(self) -> None:
        """Begin an empty conversation, drafting as before."""
        session = self._loaded().new_session()
        session.drafting = self._current().drafting
        self._session = session

    def swap_drafter(self, spec: str, given_up: threading.Event) -> None:
        """Draft with another family from the next round on, unless it took too long to load."""
        drafter = self._loaded().drafter(spec)
        if not given_up.is_set():
            self._current().drafting.drafter = drafter

    def set_draft_length(self, length: int) -> None:
        """Draft so many tokens ahead from the next round on; 0 leaves it to the planner."""
        self._current().drafting.draft_length = length or None

    def set_tree_nodes(self, nodes: int) -> None:
        """Draft trees of so many nodes from the next round on, where a drafter can; 0: chains."""
        self._current().drafting.tree_nodes = nodes

    def outlook(self, context_tokens: int) -> Outlook:
        """The planner's sentence and numbers, and the measured plain speed at this length."""
        session = self._current()
        baseline = self._loaded().baseline.reading(context_tokens)
        return Outlook(session.plan_sentence(), baseline, session.plan_estimates())

    def context_tokens(self, draft_text: str) -> int:
        """Tokens that the conversation needs, with `draft_text` as its next turn."""
        return self._current().context_tokens(draft_text)

    def _take_over(self, engine: Engine) -> None:
        """Move the conversation to another target: its words, not the old one's ids and drafter."""
        session = engine.new_session()
        if self._session is not None:
            old = self._session
            session.messages.extend(replace(message, ids=None) for message in old.messages)
            session.drafting.draft_length = old.drafting.draft_length
            session.drafting.tree_nodes = old.drafting.tree_nodes
        self._engine, self._session = engine, session

    def _loaded(self) -> Engine:
        assert self._engine is not None, "asked before a target was loaded"
        return self._engine

    def _current(self) -> Session:
        assert self._session is not None, "asked before a target was loaded"
        return self._session
