"""The border between the window's thread and the engine's."""

from __future__ import annotations

import asyncio
import threading
from contextlib import aclosing

import pytest

from app.engine_thread import EngineThread
from engine.errors import DrafterMismatch, LoadCancelled, OutOfMemory
from engine.events import Finished, Round
from engine.params import ReplyParams
from tests.app.fakes import FakeLoad, fails_with, says, talks_until_stopped, waits_for_stop

PARAMS = ReplyParams()


def nobody(stage: str, share: float | None) -> None:
    """Takes progress and does nothing."""


async def loaded(engine: EngineThread):
    return await engine.load("default", device="auto", on_progress=nobody)


async def events_of(engine: EngineThread, text: str | None = "hi"):
    return [event async for batch in engine.reply(text, PARAMS) for event in batch]


def test_a_reply_arrives_whole_and_in_order(run):
    async def scenario():
        async with EngineThread(FakeLoad(says("one", "two", "three"))) as engine:
            await loaded(engine)
            return await events_of(engine)

    events = run(scenario())

    rounds = [event for event in events if isinstance(event, Round)]
    assert [done.tokens[0].text for done in rounds] == ["one", "two", "three"]
    assert isinstance(events[-1], Finished)


def test_the_engine_runs_on_one_thread_that_is_not_the_windows(run):
    load = FakeLoad(says("one"))

    async def scenario():
        async with EngineThread(load) as engine:
            await loaded(engine)
            await events_of(engine)
            first = load.engines[0].sessions[0].thread
            await events_of(engine)
            return first, load.engines[0].sessions[0].thread

    first, second = run(scenario())

    assert first is second
    assert first is not threading.current_thread()


def test_batches_are_never_empty_and_come_on_the_windows_thread(run):
    async def scenario():
        async with EngineThread(FakeLoad(says(*"abcdefgh"))) as engine:
            await loaded(engine)
            return [
                (len(batch), threading.current_thread())
                async for batch in engine.reply("hi", PARAMS)
            ]

    batches = run(scenario())

    assert all(size > 0 for size, _ in batches)
    assert {thread for _, thread in batches} == {threading.current_thread()}


def test_stop_ends_the_reply_within_one_round(run):
    gate = threading.Semaphore(3)
    load = FakeLoad(talks_until_stopped(gate))

    async def scenario():
        async with EngineThread(load) as engine:
            await loaded(engine)
            seen = 0
            async for batch in engine.reply("hi", PARAMS):
                seen += sum(isinstance(event, Round) for event in batch)
                if seen == 4 and not gate.acquire(blocking=False):
                    engine.stop()
                    gate.release()
            return seen

    seen = run(scenario())

    assert load.engines[0].sessions[0].stopped_after == 4
    assert seen == 4


def test_an_error_crosses_as_itself_after_what_came_before_it(run):
    error = OutOfMemory("Not enough memory.")
    seen = []

    async def scenario():
        async with EngineThread(FakeLoad(fails_with(error, "half"))) as engine:
            await loaded(engine)
            async for batch in engine.reply("hi", PARAMS):
                seen.extend(batch)

    with pytest.raises(OutOfMemory) as caught:
        run(scenario())

    assert caught.value is error
    assert [event.tokens[0].text for event in seen] == ["half"]


def test_a_reader_that_leaves_early_stops_the_engine(run):
    load = FakeLoad(waits_for_stop)

    async def scenario():
        async with EngineThread(load) as engine:
            await loaded(engine)
            async with aclosing(engine.reply("hi", PARAMS)) as batches:
                await anext(batches)

    run(scenario())

    assert load.engines[0].sessions[0].stopped_after == 1


def test_a_drafter_swapped_during_a_reply_takes_over_between_two_rounds(run):
    gate = threading.Semaphore(0)
    load = FakeLoad(talks_until_stopped(gate))

    async def scenario():
        async with EngineThread(load) as engine:
            await loaded(engine)
            drafters = []
            swap = asyncio.get_running_loop().create_future()
            async for batch in engine.reply("hi", PARAMS):
                drafters += [event.drafter for event in batch if isinstance(event, Round)]
                if len(drafters) == 1:
                    swap = asyncio.create_task(engine.swap_drafter("ngram"))
                if swap.done():
                    engine.stop()
                gate.release()
            return drafters

    drafters = run(scenario())

    assert drafters == sorted(drafters, reverse=True)
    assert set(drafters) == {"off", "ngram"}


def test_a_drafter_that_does_not_fit_is_refused_and_the_old_one_stays(run):
    load = FakeLoad(says("one"))

    async def scenario():
        async with EngineThread(load) as engine:
            await loaded(engine)
            await engine.swap_drafter("ngram")
            with pytest.raises(DrafterMismatch):
                await engine.swap_drafter("draft-model:/bad")

    run(scenario())

    assert load.engines[0].sessions[0].drafting.drafter == "ngram"


def test_cancelling_a_load_returns_at_once_and_the_old_target_stays(run):
    load = FakeLoad(says("old"))

    async def scenario():
        async with EngineThread(load) as engine:
            await loaded(engine)
            load.gate.clear()
            loading = asyncio.create_task(loaded(engine))
            await asyncio.sleep(0)
            engine.cancel_load()
            with pytest.raises(LoadCancelled):
                await loading
            still_at_the_gate = not load.gate.is_set()
            load.gate.set()
            return still_at_the_gate, await events_of(engine)

    still_at_the_gate, events = run(scenario())

    assert still_at_the_gate
    assert len(load.engines) == 1
    assert events[2].tokens[0].text == "old"


def test_a_failed_load_leaves_the_old_target_in_use(run):
    load = FakeLoad(says("old"))

    async def scenario():
        async with EngineThread(load) as engine:
            await loaded(engine)
            load.error = OutOfMemory("Not enough memory.")
            with pytest.raises(OutOfMemory):
                await loaded(engine)
            return await events_of(engine)

    assert run(scenario())[2].tokens[0].text == "old"


def test_another_target_goes_on_with_the_conversation_but_not_with_its_ids(run):
    load = FakeLoad(says("one"))

    async def scenario():
        async with EngineThread(load) as engine:
            await loaded(engine)
            await engine.set_draft_length(7)
            await events_of(engine)
            await loaded(engine)

    run(scenario())

    session = load.engines[1].sessions[0]
    assert [(message.content, message.ids) for message in session.messages] == [("hi", None)]
    assert session.drafting.draft_length == 7


@pytest.mark.parametrize(("chosen", "forced"), [(7, 7), (0, None)])
def test_a_draft_length_of_0_leaves_it_to_the_planner(run, chosen, forced):
    load = FakeLoad(says("one"))

    async def scenario():
        async with EngineThread(load) as engine:
            await loaded(engine)
            await engine.set_draft_length(chosen)

    run(scenario())

    assert load.engines[0].sessions[0].drafting.draft_length == forced


def test_a_new_chat_is_empty_and_drafts_as_before(run):
    load = FakeLoad(says("one"))

    async def scenario():
        async with EngineThread(load) as engine:
            await loaded(engine)
            await engine.swap_drafter("ngram")
            await events_of(engine)
            await engine.new_chat()
            return await engine.context_tokens(), await engine.outlook(0)

    tokens, outlook = run(scenario())

    assert tokens == 0
    assert outlook.plan == "Drafting 4 ahead with ngram."
    assert outlook.baseline.tokens_per_second == pytest.approx(100)
