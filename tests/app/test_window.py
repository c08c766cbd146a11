"""The window with a played engine: what the user does, and what is then to be seen."""

from __future__ import annotations

import asyncio
import threading

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from app.engine_thread import EngineThread
from app.theme import load_theme
from app.window import MainWindow
from engine.errors import OutOfMemory, PromptTooLong
from engine.events import FinishReason, Origin
from tests.app.fakes import (
    FakeLoad,
    fails_with,
    in_turn,
    says,
    talks_until_stopped,
    until,
    waits_for_stop,
)
from tests.app.opened import (
    box_of,
    button,
    last_reply,
    opened,
    origins_shown,
    type_and_send,
)


def test_what_is_typed_while_the_model_loads_goes_into_the_message(run, store):
    async def scenario():
        async with EngineThread(FakeLoad(says("one"))) as engine:
            window = MainWindow(engine, store, load_theme("light"))
            window.show()
            QTest.keyClicks(window.focusWidget() or window, "first words")
            typed = box_of(window).toPlainText()
            window.close()
            await window.finish()
            window.deleteLater()
            return typed

    assert run(scenario()) == "first words"


def test_typing_and_enter_bring_an_answer_in_the_colours_of_its_origins(run, store):
    async def scenario():
        async with opened(FakeLoad(says("one", " two")), store) as window:
            type_and_send(window, "hello")
            await until(lambda: window.chat.replies and not window.chat.busy)
            return window.transcript.reply_text(), origins_shown(window)

    text, shown = run(scenario())

    assert text == "one. two."
    assert shown[0] == ("o", Origin.DRAFT_ACCEPTED)
    assert shown[3] == (".", Origin.TARGET_ONLY)


def test_stop_takes_sends_place_and_ends_the_reply_within_one_round(run, store):
    gate = threading.Semaphore(1)
    load = FakeLoad(talks_until_stopped(gate))

    async def scenario():
        async with opened(load, store) as window:
            type_and_send(window, "hello")
            await until(lambda: "word1" in window.transcript.reply_text())
            (await button(window, "Stop")).click()
            gate.release()
            await until(lambda: not window.chat.busy)
            await button(window, "Send")
            return window.chat.replies[0].reason

    assert run(scenario()) is FinishReason.STOPPED
    assert load.engines[0].sessions[0].stopped_after == 2


def test_escape_stops_wherever_the_focus_is(run, store):
    gate = threading.Semaphore(0)
    load = FakeLoad(talks_until_stopped(gate))

    async def scenario():
        async with opened(load, store) as window:
            type_and_send(window, "hello")
            await until(lambda: "word0" in window.transcript.reply_text())
            QTest.keyClick(window.panel, Qt.Key.Key_Escape)
            gate.release()
            await until(lambda: not window.chat.busy)

    run(scenario())

    assert load.engines[0].sessions[0].stopped_after == 1


@pytest.mark.parametrize(
    "error", [PromptTooLong(needed=9000, context_length=2048), OutOfMemory("No memory left.")]
)
def test_an_error_reaches_the_user_in_words_and_the_chat_goes_on(run, store, error):
    load = FakeLoad(in_turn(fails_with(error), says("better")))

    async def scenario():
        async with opened(load, store) as window:
            type_and_send(window, "my long prompt")
            await until(lambda: not window.chat.busy)
            after_error = (
                window.banner.sentence,
                window.banner.isVisible(),
                window.composer.text(),
            )
            QTest.keyClick(box_of(window), Qt.Key.Key_Return)
            await until(lambda: window.chat.replies and not window.chat.busy)
            return after_error, window.transcript.reply_text(), window.banner.isVisible()

    after_error, text, still_there = run(scenario())

    assert after_error == (str(error), True, "my long prompt")
    assert text == "better."
    assert not still_there


def test_closing_during_a_reply_leaves_nothing_running(run, store):
    load = FakeLoad(waits_for_stop)

    async def scenario():
        async with opened(load, store) as window:
            type_and_send(window, "hello")
            await until(lambda: "word0" in window.transcript.reply_text())
        return asyncio.all_tasks() - {asyncio.current_task()}

    left = run(scenario())

    assert left == set()
    assert load.engines[0].sessions[0].stopped_after == 1
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("engine")]


def test_a_new_chat_empties_the_transcript(run, store):
    async def scenario():
        async with opened(FakeLoad(says("one")), store) as window:
            type_and_send(window, "hello")
            await until(lambda: window.chat.replies and not window.chat.busy)
            window.sidebar.new_chat_requested.emit()
            await until(lambda: window.transcript._last_reply() is None)
            return window.transcript.reply_text()

    assert run(scenario()) == ""


def test_regenerating_with_the_same_seed_and_with_a_new_one(run, store):
    load = FakeLoad(says("one"))

    async def scenario():
        async with opened(load, store) as window:
            type_and_send(window, "hello")
            await until(lambda: len(window.chat.replies) == 1 and not window.chat.busy)
            (await button(window, "Same seed")).click()
            await until(lambda: len(window.chat.replies) == 2 and not window.chat.busy)
            (await button(window, "Regenerate")).click()
            await until(lambda: len(window.chat.replies) == 3 and not window.chat.busy)

    run(scenario())

    seeds = [params.sampling.seed for params in load.engines[0].sessions[0].params]
    assert seeds[0] == seeds[1] != seeds[2]


@pytest.mark.parametrize("words", ["Regenerate", "Same seed"])
@pytest.mark.parametrize("by_mouse", [True, False])
def test_after_a_reply_is_asked_for_again_the_composer_has_the_focus(run, store, words, by_mouse):
    async def scenario():
        async with opened(FakeLoad(says("one")), store) as window:
            type_and_send(window, "hello")
            await until(lambda: len(window.chat.replies) == 1 and not window.chat.busy)
            asked = await button(window, words)
            if by_mouse:
                QTest.mouseClick(asked, Qt.MouseButton.LeftButton)
            else:
                asked.setFocus()
                QTest.keyClick(asked, Qt.Key.Key_Space)
            await until(lambda: len(window.chat.replies) == 2 and not window.chat.busy)
            return box_of(window).hasFocus()

    assert run(scenario())


@pytest.mark.parametrize("words", ["Copy", "New chat"])
def test_a_click_on_a_button_gives_it_no_focus(run, store, words):
    async def scenario():
        async with opened(FakeLoad(says("one")), store) as window:
            type_and_send(window, "hello")
            await until(lambda: window.chat.replies and not window.chat.busy)
            window.resize(1200, 700)
            clicked = await button(window, words)
            QTest.mouseClick(clicked, Qt.MouseButton.LeftButton)
            return clicked.hasFocus()

    assert not run(scenario())


def test_what_the_model_writes_is_shown_and_not_obeyed(run, store):
    markup = "<img src=x onerror=alert(1)><b>bold</b> &amp; **stars**"

    async def scenario():
        async with opened(FakeLoad(says(markup)), store) as window:
            type_and_send(window, "hello")
            await until(lambda: window.chat.replies and not window.chat.busy)
            return last_reply(window).toPlainText()

    assert run(scenario()) == f"{markup}."


def test_the_theme_can_change_while_a_reply_is_being_written(run, store):
    gate = threading.Semaphore(0)

    async def scenario():
        async with opened(FakeLoad(talks_until_stopped(gate)), store) as window:
            type_and_send(window, "hello")
            await until(lambda: "word0" in window.transcript.reply_text())
            window.set_theme(load_theme("dark"))
            window.chat.stop()
            gate.release()
            await until(lambda: not window.chat.busy)
            dark = load_theme("dark").color("surface").name()
            await until(lambda: window.grab().toImage().pixelColor(600, 500).name() == dark)
            return window.transcript.reply_text()

    assert run(scenario()) == " word0"
