"""One coroutine per prompt: hands the reply's events on, and catches what goes wrong."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from app.background import Background
from app.chat.pills import compared
from app.errors import failure_of
from engine.errors import EngineError
from engine.events import Finished, FinishReason, Prefilled, Round

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

    from app.engine_thread import EngineThread
    from engine.events import Event
    from engine.params import ReplyParams

_CONTEXT_STEP = 16  # tokens


class ChatController(QObject):
    """The conversation between the window and the engine thread.

    replies: what every finished reply was made with (target, drafters, parameters, seed), and what
        it cost.
    seed: of the last reply that stands in the conversation, also of one that failed half-way.
    drafter: the spec in charge; it changes by `swap` only, so "off" stays off.

    A reply begins with the first of its text. What ends before, by Stop or by an error, leaves the
    conversation as it was: the prompt goes back, and a reply that was to be replaced stays.
    """

    busy_changed = Signal(bool)
    user_turn_added = Signal(str)
    reply_begun = Signal()
    events_arrived = Signal(object)
    reply_failed = Signal(str)
    user_turn_withdrawn = Signal()
    prompt_returned = Signal(str)
    reply_withdrawn = Signal()
    chat_cleared = Signal()
    failed = Signal(object)
    outlook_changed = Signal(object)
    prompt_read = Signal(int, int)
    context_changed = Signal(int)
    swap_started = Signal(str)
    drafter_changed = Signal(str)
    drafter_measured = Signal(str, float, object, int)

    def __init__(self, engine: EngineThread, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.replies: list[Finished] = []
        self.seed = 0
        self.drafter = "off"
        self._engine = engine
        self._tasks = Background()
        self._answering: asyncio.Task[None] | None = None
        self._swapping: asyncio.Task[None] | None = None
        self._context_tokens = self._told_context = 0

    @property
    def busy(self) -> bool:
        """Whether a reply is being written."""
        return self._answering is not None

    def submit(self, text: str, params: ReplyParams, system_prompt: str) -> None:
        """Say something and have it answered; where that cannot be now, the text goes back."""
        if self.busy or not self._engine.is_loaded:
            self.prompt_returned.emit(text)
            return
        self.user_turn_added.emit(text)
        self._start(_Reply(text, params, self.drafter), system_prompt)

    def regenerate(self, params: ReplyParams, system_prompt: str) -> None:
        """Answer the last turn again, in place of the reply it has."""
        if not self.busy and self._engine.is_loaded:
            self._start(_Reply(None, params, self.drafter), system_prompt)

    def stop(self) -> None:
        """End the reply at its next round."""
        self._engine.stop()

    def new_chat(self) -> None:
        """Leave this conversation for an empty one."""
        self.stop()
        self._tasks.start(self._new_chat())

    def swap(self, spec: str) -> None:
        """Draft with another family from the next round on."""
        if self._engine.is_loaded:
            self._swapping = self._tasks.start(self._swap(spec))

    def cancel_swap(self) -> None:
        """Go on with the drafter in charge, where another one takes too long to load."""
        if self._swapping is not None:
            self._swapping.cancel()

    def set_draft_length(self, length: int) -> None:
        """Draft so many tokens ahead from the next round on; 0 leaves it to the planner."""
        if self._engine.is_loaded:
            self._tasks.start(self._set(partial(self._engine.set_draft_length, length)))

    def set_tree_nodes(self, nodes: int) -> None:
        """Draft trees of so many nodes from the next round on, where a drafter can; 0: chains."""
        if self._engine.is_loaded:
            self._tasks.start(self._set(partial(self._engine.set_tree_nodes, nodes)))

    def count_context(self, draft_text: str) -> None:
        """Find out how many tokens the conversation needs with this text in the composer."""
        if not self.busy and self._engine.is_loaded:
            self._tasks.start(self._count_context(draft_text))

    async def finish(self) -> None:
        """End whatever is going on; the window is closing."""
        self.stop()
        await self._tasks.finish()

    def _start(self, reply: _Reply, system_prompt: str) -> None:
        batches = self._engine.reply(reply.text, reply.params, system_prompt=system_prompt)
        self._answering = self._tasks.start(self._answer(batches, reply))
        self.busy_changed.emit(True)

    async def _answer(self, batches: AsyncGenerator[list[Event], None], reply: _Reply) -> None:
        try:
            async with aclosing(batches):
                async for batch in batches:
                    self._take(batch, reply)
        except Exception as error:
            self._fail(error, reply)
        else:
            if not reply.begun:
                self._return(reply)
        finally:
            self._answering = None
            self.busy_changed.emit(False)
        await self._tell_outlook()

    def _take(self, batch: Sequence[Event], reply: _Reply) -> None:
        reply.held += batch
        if not reply.begun and any(map(_is_seen, batch)):
            self._begin(reply)
        if reply.begun:
            held, reply.held = reply.held, []
            self.events_arrived.emit(held)
        for event in batch:
            match event:
                case Prefilled(done, total):
                    self.prompt_read.emit(done, total)
                    self._context_tokens = total
                case Round(tokens=tokens) if tokens:
                    self._context_tokens = tokens[-1].position + 1
                case Finished() if reply.begun:
                    self._keep(event, reply)
                case _:
                    pass
        self._tell_context(exactly=any(isinstance(event, Finished) for event in batch))

    def _begin(self, reply: _Reply) -> None:
        if reply.text is None:
            self.reply_withdrawn.emit()
        self.reply_begun.emit()
        reply.begun = True
        self.seed = reply.params.sampling.seed

    def _tell_context(self, *, exactly: bool) -> None:
        # The line in the composer and the plan need not be redrawn for every token.
        if exactly or abs(self._context_tokens - self._told_context) >= _CONTEXT_STEP:
            self._told_context = self._context_tokens
            self.context_changed.emit(self._context_tokens)
            if self.busy and not exactly:
                self._tasks.start(self._tell_outlook())

    def _keep(self, finished: Finished, reply: _Reply) -> None:
        self.replies.append(finished)
        stats = finished.stats
        if stats.rounds and len(stats.drafters) == 1 and reply.drafter == self.drafter:
            self.drafter_measured.emit(
                reply.drafter, stats.mean_accepted_length, compared(stats), stats.drafted
            )

    def _fail(self, error: Exception, reply: _Reply) -> None:
        failure = failure_of(error)
        if not reply.begun:
            self._return(reply)
            self.failed.emit(failure)
            return
        # The turn and what there is of its reply stay, and the sentence stands beneath.
        self.reply_failed.emit(failure.sentence)
        if failure.details:
            self.failed.emit(failure)

    def _return(self, reply: _Reply) -> None:
        if reply.text is not None:
            self.user_turn_withdrawn.emit()
            self.prompt_returned.emit(reply.text)

    async def _new_chat(self) -> None:
        if self._answering is not None:
            await asyncio.wait({self._answering})
        # At once: the engine may be loading another target, and follows once that is done.
        self.chat_cleared.emit()
        self._context_tokens = 0
        self._tell_context(exactly=True)
        if self._engine.is_loaded:
            await self._engine.new_chat()

    async def _swap(self, spec: str) -> None:
        self.swap_started.emit(spec)
        try:
            await self._engine.swap_drafter(spec)
            self.drafter = spec
        except Exception as error:
            self.failed.emit(failure_of(error))
        finally:
            self.drafter_changed.emit(self.drafter)
        await self._tell_outlook()

    async def _set(self, request: Callable[[], Awaitable[None]]) -> None:
        await request()
        await self._tell_outlook()

    async def _count_context(self, draft_text: str) -> None:
        try:
            tokens = await self._engine.context_tokens(draft_text)
        except EngineError:
            return  # A conversation that cannot be put into tokens is refused when it is sent.
        if not self.busy:
            self._context_tokens = tokens
            self._tell_context(exactly=True)

    async def _tell_outlook(self) -> None:
        self.outlook_changed.emit(await self._engine.outlook(self._context_tokens))


@dataclass
class _Reply:
    """One reply under way. text: the turn it answers, None to answer the last one again.

    held: what came before there was anything to see.
    """

    text: str | None
    params: ReplyParams
    drafter: str
    begun: bool = False
    held: list[Event] = field(default_factory=list)


def _is_seen(event: Event) -> bool:
    """Whether there is a reply once this has come: text, or an end that nobody asked for."""
    match event:
        case Round(tokens=tokens):
            return any(token.text for token in tokens)
        case Finished(reason=reason, text=text):
            return bool(text) or reason is not FinishReason.STOPPED
        case _:
            return False
