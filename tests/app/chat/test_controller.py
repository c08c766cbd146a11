"""What the controller says to the window, whatever the engine does."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, cast

import pytest
from PySide6.QtCore import QThread

from engine.errors import OutOfMemory, PromptTooLong
from engine.events import Finished, FinishReason
from engine.params import ReplyParams, SamplingParams
from tests.app.chat.heard import PARAMS, chatting, rounds
from tests.app.fakes import (
    TARGET_ONLY,
    FakeLoad,
    fails_with,
    finished,
    in_turn,
    round_of,
    says,
    stopped_before_a_word,
    talks_until_stopped,
    until,
    waits_for_stop,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.events import Event
    from tests.app.fakes import FakeSession, Script


def test_a_prompt_is_shown_answered_and_kept_with_what_made_the_answer(run):
    async def scenario():
        async with chatting(FakeLoad(says("one", "two"))) as (chat, heard):
            chat.submit("hi", PARAMS, "")
            await until(lambda: not chat.busy)
            return chat, heard

    chat, heard = run(scenario())

    assert heard.names() == ["user_turn_added", "reply_begun", "events_arrived", "drafter_measured"]
    assert heard.of("busy_changed") == [True, False]
    assert [reply.stats.params.sampling.seed for reply in chat.replies] == [42]


def test_events_arrive_on_the_windows_thread(run):
    threads = []

    async def scenario():
        async with chatting(FakeLoad(says("one"))) as (chat, _):
            chat.events_arrived.connect(lambda _: threads.append(QThread.currentThread()))
            chat.busy_changed.connect(lambda _: threads.append(QThread.currentThread()))
            chat.submit("hi", PARAMS, "")
            await until(lambda: not chat.busy)

    run(scenario())

    assert len(threads) > 2
    assert all(thread.isMainThread() for thread in threads)


@pytest.mark.parametrize(
    "error", [PromptTooLong(needed=9000, context_length=2048), OutOfMemory("No memory left.")]
)
def test_an_error_before_the_first_token_takes_the_turn_back_and_returns_the_prompt(run, error):
    async def scenario():
        load = FakeLoad(in_turn(fails_with(error), says("better")))
        async with chatting(load) as (chat, heard):
            chat.submit("my prompt", PARAMS, "")
            await until(lambda: not chat.busy)
            first = heard.names()
            chat.submit("shorter", PARAMS, "")
            await until(lambda: not chat.busy)
            return heard, first

    heard, first = run(scenario())

    assert first == ["user_turn_added", "user_turn_withdrawn", "prompt_returned", "failed"]
    assert heard.of("prompt_returned") == ["my prompt"]
    assert heard.of("failed")[0].sentence == str(error)
    assert isinstance(heard.of("events_arrived")[-1][-1], Finished)


def test_an_error_in_the_middle_keeps_the_turn_and_says_why_the_reply_ends(run):
    async def scenario():
        load = FakeLoad(fails_with(OutOfMemory("No memory left."), "half"))
        async with chatting(load) as (chat, heard):
            chat.submit("my prompt", PARAMS, "")
            await until(lambda: not chat.busy)
            return heard

    heard = run(scenario())

    assert heard.of("reply_failed") == ["No memory left."]
    assert not {"prompt_returned", "user_turn_withdrawn", "failed"} & set(heard.names())


def test_a_mistake_of_our_own_gives_a_plain_sentence_and_details_to_copy(run):
    async def scenario():
        async with chatting(FakeLoad(fails_with(KeyError("lost")))) as (chat, heard):
            chat.submit("my prompt", PARAMS, "")
            await until(lambda: not chat.busy)
            return heard.of("failed")[0]

    failure = run(scenario())

    assert "KeyError" not in failure.sentence
    assert "KeyError: 'lost'" in failure.details


def test_stop_ends_the_reply_within_one_round_and_keeps_it(run):
    gate = threading.Semaphore(2)
    load = FakeLoad(talks_until_stopped(gate))

    async def scenario():
        async with chatting(load) as (chat, heard):
            chat.submit("hi", PARAMS, "")
            await until(lambda: len(rounds(heard)) == 3)
            chat.stop()
            gate.release()
            await until(lambda: not chat.busy)
            return chat, heard

    chat, heard = run(scenario())

    assert load.engines[0].sessions[0].stopped_after == 3
    assert len(rounds(heard)) == 3
    assert chat.replies[0].reason is FinishReason.STOPPED


def test_a_prompt_during_a_reply_comes_back_untouched(run):
    gate = threading.Semaphore(0)

    async def scenario():
        async with chatting(FakeLoad(talks_until_stopped(gate))) as (chat, heard):
            chat.submit("first", PARAMS, "")
            await until(lambda: rounds(heard))
            chat.submit("second", PARAMS, "")
            chat.stop()
            gate.release()
            await until(lambda: not chat.busy)
            return heard

    heard = run(scenario())

    assert heard.of("prompt_returned") == ["second"]
    assert heard.of("user_turn_added") == ["first"]


def test_regenerating_replaces_the_reply_once_the_new_one_begins(run):
    async def scenario():
        async with chatting(FakeLoad(says("one"))) as (chat, heard):
            chat.regenerate(PARAMS, "")
            await until(lambda: not chat.busy)
            return heard

    assert run(scenario()).names()[:3] == ["reply_withdrawn", "reply_begun", "events_arrived"]


def test_stop_before_the_first_word_takes_the_turn_back_and_returns_the_prompt(run):
    async def scenario():
        load = FakeLoad(in_turn(stopped_before_a_word, says("better")))
        async with chatting(load) as (chat, heard):
            chat.submit("my prompt", PARAMS, "")
            chat.stop()
            await until(lambda: not chat.busy)
            first, kept = heard.names(), list(chat.replies)
            chat.submit("again", PARAMS, "")
            await until(lambda: not chat.busy)
            return heard, first, kept

    heard, first, kept = run(scenario())

    assert first == ["user_turn_added", "user_turn_withdrawn", "prompt_returned"]
    assert heard.of("prompt_returned") == ["my prompt"]
    assert kept == []
    assert isinstance(heard.of("events_arrived")[-1][-1], Finished)


def textless(*after: object) -> Script:
    """A round of which nothing can be shown yet, and then an end or an error."""

    def script(session: FakeSession, stop: threading.Event) -> Iterator[Event]:
        yield round_of(0, ("", TARGET_ONLY))
        for each in after:
            if isinstance(each, Exception):
                raise each
            yield finished(1, session, cast("FinishReason", each))

    return script


@pytest.mark.parametrize(
    "script",
    [
        stopped_before_a_word,
        textless(FinishReason.STOPPED),
        fails_with(OutOfMemory("No memory left.")),
        textless(OutOfMemory("No memory left.")),
    ],
)
def test_a_regeneration_without_a_word_leaves_the_old_reply(run, script):
    async def scenario():
        async with chatting(FakeLoad(script)) as (chat, heard):
            chat.regenerate(PARAMS, "")
            chat.stop()
            await until(lambda: not chat.busy)
            return set(heard.names())

    assert run(scenario()) <= {"failed"}


def test_a_model_that_ends_its_turn_without_a_word_has_replied(run):
    async def scenario():
        async with chatting(FakeLoad(textless(FinishReason.END_OF_TURN))) as (chat, heard):
            chat.regenerate(PARAMS, "")
            await until(lambda: not chat.busy)
            return chat, heard

    chat, heard = run(scenario())

    assert heard.names()[:3] == ["reply_withdrawn", "reply_begun", "events_arrived"]
    assert len(chat.replies) == 1


def test_the_seed_is_that_of_the_reply_that_stands_last(run):
    def seeded(seed: int) -> ReplyParams:
        return ReplyParams(SamplingParams(seed=seed))

    async def scenario():
        failing = fails_with(OutOfMemory("No memory left."), "half")
        load = FakeLoad(in_turn(says("one"), failing, stopped_before_a_word))
        async with chatting(load) as (chat, _):
            seeds = []
            for seed in (1, 2, 3):
                chat.submit("hi", seeded(seed), "")
                if seed == 3:
                    chat.stop()
                await until(lambda: not chat.busy)
                seeds.append(chat.seed)
            return seeds

    assert run(scenario()) == [1, 2, 2]


def test_a_new_chat_during_a_reply_ends_it_first(run):
    gate = threading.Semaphore(0)
    load = FakeLoad(talks_until_stopped(gate))

    async def scenario():
        async with chatting(load) as (chat, heard):
            chat.submit("hi", PARAMS, "")
            await until(lambda: rounds(heard))
            chat.new_chat()
            gate.release()
            await until(lambda: len(load.engines[0].sessions) == 2)
            return heard

    heard = run(scenario())

    assert heard.names()[-1] == "chat_cleared"
    assert load.engines[0].sessions[0].stopped_after == 1


def test_leaving_during_a_reply_ends_everything(run):
    load = FakeLoad(waits_for_stop)

    async def scenario():
        async with chatting(load) as (chat, heard):
            chat.submit("hi", PARAMS, "")
            await until(lambda: rounds(heard))
        return asyncio.all_tasks() - {asyncio.current_task()}

    assert run(scenario()) == set()
    assert load.engines[0].sessions[0].stopped_after == 1
