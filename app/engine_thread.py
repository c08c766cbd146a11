"""The one worker thread, where the engine lives; plain asyncio on the caller's side, no Qt.

Short requests (swap a drafter, count tokens) asked during a reply run between two of its events, so
they take effect at the next round; while a drafter is being loaded the reply waits.
"""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Self, TypeVar

from app.engine_host import EngineHost, LoadedTarget, LoadEngine, Outlook, load_engine
from engine.errors import LoadCancelled

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator

    from app.engine_host import Progress
    from engine.events import Event
    from engine.params import ReplyParams

Answer = TypeVar("Answer")


class EngineThread:
    """Owns the worker and what it hosts. Use it as an async context manager."""

    def __init__(self, load_engine: LoadEngine = load_engine) -> None:
        self._host = EngineHost(load_engine)
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="engine")
        self._requests: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._stop_reply = threading.Event()
        self._stop_load = threading.Event()
        self._given_up: asyncio.Future[None] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.stop()
        self.cancel_load()
        self._executor.shutdown(cancel_futures=True)

    @property
    def is_loaded(self) -> bool:
        """Whether there is a target to talk to."""
        return self._host.is_loaded

    async def load(self, target: str, *, device: str, on_progress: Progress) -> LoadedTarget:
        """Load a target and go on with the conversation; the old one stays until that is done.

        Raises:
            EngineError: from the engine, as itself; LoadCancelled at once after `cancel_load`; the
                worker may still be finishing a step whose result is then dropped.
        """
        self.cancel_load()
        loop = asyncio.get_running_loop()
        stop = self._stop_load = threading.Event()
        given_up = self._given_up = loop.create_future()

        def progress(stage: str, share: float | None) -> None:
            with suppress(RuntimeError):  # the loop is gone when the window was closed meanwhile
                loop.call_soon_threadsafe(self._report, stop, on_progress, stage, share)

        work = partial(self._host.load, target, device=device, progress=progress, stop=stop)
        loading = loop.run_in_executor(self._executor, work)
        loading.add_done_callback(_seen)
        try:
            await asyncio.wait({loading, given_up}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not loading.done():
                stop.set()
        if given_up.done():
            raise LoadCancelled("Loading was cancelled.")
        return loading.result()

    def cancel_load(self) -> None:
        """Give up a load in progress; its `load` call returns at once."""
        self._stop_load.set()
        if self._given_up is not None and not self._given_up.done():
            self._given_up.set_result(None)

    def reply(
        self, text: str | None, params: ReplyParams, *, system_prompt: str = ""
    ) -> AsyncGenerator[list[Event], None]:
        """The reply's events in batches: all that came since the last look, never an empty list.

        `stop` ends it from now on, even before the first event is asked for.
        text: the user's turn, or None to answer the last one again.

        Raises:
            EngineError: or whatever else went wrong on the worker, as itself.
        """
        stop = self._stop_reply = threading.Event()
        return self._batches(partial(self._host.reply, text, params, system_prompt, stop), stop)

    async def reply_unseen(self, text: str, params: ReplyParams) -> list[Event]:
        """A whole reply of which nothing crosses until it is done: the yardstick of `--measure`."""
        stop = self._stop_reply = threading.Event()
        loop = asyncio.get_running_loop()
        work = partial(self._host.reply, text, params, "", stop)
        return await loop.run_in_executor(self._executor, lambda: list(work()))

    def stop(self) -> None:
        """End the reply at its next round or prefill chunk; what it has so far is kept."""
        self._stop_reply.set()

    async def new_chat(self) -> None:
        """Begin an empty conversation, drafting as before."""
        await self._ask(self._host.new_chat)

    async def swap_drafter(self, spec: str) -> None:
        """Draft with another family from the next round on; the old one stays if this is cancelled.

        Raises:
            EngineError: it cannot be loaded, or does not fit the target.
        """
        given_up = threading.Event()
        try:
            await self._ask(partial(self._host.swap_drafter, spec, given_up))
        except asyncio.CancelledError:
            given_up.set()
            raise

    async def set_draft_length(self, length: int) -> None:
        """Draft so many tokens ahead from the next round on; 0 leaves it to the planner."""
        await self._ask(partial(self._host.set_draft_length, length))

    async def set_tree_nodes(self, nodes: int) -> None:
        """Draft trees of so many nodes from the next round on, where a drafter can; 0: chains."""
        await self._ask(partial(self._host.set_tree_nodes, nodes))

    async def outlook(self, context_tokens: int) -> Outlook:
        """The planner's sentence and numbers, and the measured plain speed at this length."""
        return await self._ask(partial(self._host.outlook, context_tokens))

    async def context_tokens(self, draft_text: str = "") -> int:
        """Tokens that the conversation needs, with `draft_text` as its next turn."""
        return await self._ask(partial(self._host.context_tokens, draft_text))

    async def _batches(
        self, start: Callable[[], Generator[Event, None, None]], stop: threading.Event
    ) -> AsyncGenerator[list[Event], None]:
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[Event | None] = asyncio.Queue()

        def post(event: Event | None) -> None:
            with suppress(RuntimeError):  # the loop is gone when the window was closed meanwhile
                loop.call_soon_threadsafe(queue.put_nowait, event)

        def work() -> None:
            try:
                with closing(start()) as events:
                    for event in events:
                        post(event)
                        self._run_requests()
            finally:
                post(None)

        working = loop.run_in_executor(self._executor, work)
        working.add_done_callback(_seen)
        try:
            while batch := await _next_batch(queue):
                yield batch
            await working
        finally:
            stop.set()

    async def _ask(self, work: Callable[[], Answer]) -> Answer:
        answer: Future[Answer] = Future()

        def run() -> None:
            if not answer.set_running_or_notify_cancel():
                return
            try:
                answer.set_result(work())
            except Exception as error:
                answer.set_exception(error)

        self._requests.put(run)
        self._executor.submit(self._run_requests)
        return await asyncio.wrap_future(answer)

    def _run_requests(self) -> None:
        with suppress(Empty):
            while True:
                self._requests.get_nowait()()

    @staticmethod
    def _report(
        stop: threading.Event, on_progress: Progress, stage: str, share: float | None
    ) -> None:
        if not stop.is_set():
            on_progress(stage, share)


async def _next_batch(queue: asyncio.Queue[Event | None]) -> list[Event]:
    """Everything in the queue, at least one event; empty once None, the end, is all there is."""
    batch: list[Event] = []
    event = await queue.get()
    while event is not None:
        batch.append(event)
        if queue.empty():
            return batch
        event = queue.get_nowait()
    if batch:
        queue.put_nowait(None)
    return batch


def _seen(done: asyncio.Future[Any]) -> None:
    """Look at the outcome of work that nobody may wait for, so that asyncio stays quiet."""
    if not done.cancelled():
        done.exception()
