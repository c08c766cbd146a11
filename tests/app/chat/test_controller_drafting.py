"""Drafters and the context's size, as the controller hands them on."""

from __future__ import annotations

import threading

from tests.app.chat.heard import PARAMS, chatting, rounds
from tests.app.fakes import FakeLoad, says, talks_until_stopped, until


def test_a_refused_drafter_leaves_the_one_before_in_charge(run):
    async def scenario():
        async with chatting(FakeLoad(says("one"))) as (chat, heard):
            chat.swap("ngram")
            chat.swap("draft-model:/bad")
            await until(lambda: len(heard.of("drafter_changed")) == 2)
            return chat, heard

    chat, heard = run(scenario())

    assert chat.drafter == "ngram"
    assert heard.of("drafter_changed") == ["ngram", "ngram"]
    assert heard.of("failed")[0].sentence == "The draft model has another vocabulary."


def test_off_stays_off_when_something_else_is_changed(run):
    load = FakeLoad(says("one"))

    async def scenario():
        async with chatting(load) as (chat, _):
            chat.swap("ngram")
            chat.swap("off")
            chat.set_draft_length(7)
            await until(lambda: load.engines[0].sessions[0].drafting.draft_length == 7)
            chat.new_chat()
            await until(lambda: len(load.engines[0].sessions) == 2)
            return chat

    assert run(scenario()).drafter == "off"
    assert load.engines[0].sessions[-1].drafting.drafter == "off"


def test_the_plan_is_told_again_while_a_long_reply_is_written(run):
    gate = threading.Semaphore(0)
    load = FakeLoad(talks_until_stopped(gate))

    async def scenario():
        async with chatting(load) as (chat, _):
            outlooks = []
            chat.outlook_changed.connect(outlooks.append)
            chat.submit("hi", PARAMS, "")
            await until(lambda: gate.release() or len(outlooks) >= 2)
            busy = chat.busy
            chat.stop()
            gate.release()
            await until(lambda: not chat.busy)
            return busy

    assert run(scenario())


def test_a_reply_with_two_drafters_is_nobodys_measure(run):
    gate = threading.Semaphore(0)
    load = FakeLoad(talks_until_stopped(gate))

    async def scenario():
        async with chatting(load) as (chat, heard):
            chat.submit("hi", PARAMS, "")
            await until(lambda: rounds(heard))
            chat.swap("ngram")
            await until(lambda: gate.release() or heard.of("drafter_changed"))
            chat.stop()
            gate.release()
            await until(lambda: not chat.busy)
            return heard

    assert run(scenario()).of("drafter_measured") == []


def test_text_that_cannot_be_counted_is_no_trouble_until_it_is_sent(run):
    async def scenario():
        async with chatting(FakeLoad(says("one"))) as (chat, heard):
            counts = []
            chat.context_changed.connect(counts.append)
            chat.count_context("untokenisable")
            chat.count_context("three plain words")
            await until(lambda: counts)
            return counts, heard

    counts, heard = run(scenario())

    assert counts == [3]
    assert heard.of("failed") == []
