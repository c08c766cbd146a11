"""Replies that are stopped, had again, or waited for, as the user of the window sees them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QCheckBox, QLineEdit, QPushButton

from app.chat.waiting import WaitingLine
from app.settings import Settings
from engine.errors import OutOfMemory
from tests.app.fakes import (
    FakeLoad,
    fails_with,
    in_turn,
    says,
    stopped_before_a_word,
    until,
)
from tests.app.opened import box_of, button, opened, type_and_send
from tests.app.widgets import part_of

if TYPE_CHECKING:
    from app.window import MainWindow
    from tests.app.fakes import FakeSession


async def answered(window: MainWindow, replies: int) -> None:
    await until(lambda: len(window.chat.replies) == replies and not window.chat.busy)


def seed_field(window: MainWindow) -> QLineEdit:
    fields = window.panel.sampling.findChildren(QLineEdit)
    return next(found for found in fields if found.accessibleName() == "Seed")


def seeds(session: FakeSession) -> list[int]:
    return [params.sampling.seed for params in session.params]


@pytest.mark.parametrize("words", ["Regenerate", "Same seed"])
def test_a_reply_that_is_not_replaced_stays(run, store, words):
    async def scenario():
        async with opened(FakeLoad(in_turn(says("one"), stopped_before_a_word)), store) as window:
            type_and_send(window, "hello")
            await answered(window, 1)
            (await button(window, words)).click()
            QTest.keyClick(box_of(window), Qt.Key.Key_Escape)
            await until(lambda: not window.chat.busy)
            return window.transcript.reply_text(), len(window.chat.replies)

    assert run(scenario()) == ("one.", 1)


def test_a_prompt_stopped_before_its_first_word_comes_back(run, store):
    load = FakeLoad(in_turn(stopped_before_a_word, says("better")))

    async def scenario():
        async with opened(load, store) as window:
            type_and_send(window, "hello")
            QTest.keyClick(box_of(window), Qt.Key.Key_Escape)
            await until(lambda: not window.chat.busy)
            back = window.composer.text(), len(window.transcript._turns)
            QTest.keyClick(box_of(window), Qt.Key.Key_Return)
            await answered(window, 1)
            return back, window.transcript.reply_text()

    assert run(scenario()) == (("hello", 0), "better.")


def test_while_a_long_prompt_is_read_that_is_told_without_the_panel_too(run, store):
    store.save(Settings(panel=False))

    async def scenario():
        async with opened(FakeLoad(stopped_before_a_word), store) as window:
            type_and_send(window, "hello")
            line = part_of(window, WaitingLine)
            await until(lambda: line.isVisible() and line.text().endswith("2 of 8 tokens"))
            panel = window.panel.isVisible()
            window.chat.stop()
            await until(lambda: not window.chat.busy)
            return panel, line.isVisible()

    assert run(scenario()) == (False, False)


def test_a_seed_that_is_to_stay_stays_when_a_reply_is_had_with_another(run, store):
    store.save(Settings(sampling={"seed": 7, "new_seed": False}))
    load = FakeLoad(says("one"))

    async def scenario():
        async with opened(load, store) as window:
            type_and_send(window, "hello")
            await answered(window, 1)
            (await button(window, "Regenerate")).click()
            await answered(window, 2)
            field = seed_field(window).text()
            type_and_send(window, "again")
            await answered(window, 3)
            return field

    assert run(scenario()) == "7"
    first, other, again = seeds(load.engines[0].sessions[0])
    assert first == again == 7 != other


def test_a_seed_that_is_typed_is_used(run, store):
    load = FakeLoad(says("one"))

    async def scenario():
        async with opened(load, store) as window:
            field = seed_field(window)
            field.clear()
            QTest.keyClicks(field, "123")
            type_and_send(window, "hello")
            await answered(window, 1)
            return part_of(window.panel.sampling, QCheckBox).isChecked()

    assert run(scenario()) is False
    assert seeds(load.engines[0].sessions[0]) == [123]


def test_the_same_seed_is_that_of_the_reply_above_also_of_one_that_failed(run, store):
    failing = fails_with(OutOfMemory("No memory left."), "half")
    load = FakeLoad(in_turn(says("one"), failing, says("two")))

    async def scenario():
        async with opened(load, store) as window:
            type_and_send(window, "hello")
            await answered(window, 1)
            type_and_send(window, "again")
            await until(lambda: window.transcript.reply_text() == "half" and not window.chat.busy)
            (await button(window, "Same seed")).click()
            await answered(window, 2)

    run(scenario())

    first, failed, same = seeds(load.engines[0].sessions[0])
    assert same == failed != first


def test_at_temperature_0_no_seed_is_offered(run, store):
    store.save(Settings(sampling={"temperature": 0.0}))

    async def scenario():
        async with opened(FakeLoad(says("one")), store) as window:
            type_and_send(window, "hello")
            await answered(window, 1)
            hint = (await button(window, "Regenerate")).toolTip()
            [same] = [b for b in window.findChildren(QPushButton) if b.text() == "Same seed"]
            offered_at_0 = same.isVisible()
            window.panel.sampling._temperature.setValue(0.5)
            return hint, offered_at_0, same.isVisible()

    hint, offered_at_0, offered_above_0 = run(scenario())

    assert "no seed has an effect" in hint
    assert (offered_at_0, offered_above_0) == (False, True)


async def begin_to_load_another(window, load):
    """Answered once, it waits at the gate."""
    type_and_send(window, "hello")
    await answered(window, 1)
    load.gate.clear()
    window.target_picker.target_chosen.emit("/models/big.gguf")


def test_while_another_model_loads_nothing_is_had_again_and_says_why(run, store):
    load = FakeLoad(says("one"))

    async def scenario():
        async with opened(load, store) as window:
            await begin_to_load_another(window, load)
            again = await button(window, "Regenerate")
            await until(lambda: not again.isEnabled())
            hint = again.toolTip()
            load.gate.set()
            await until(again.isEnabled)
            return hint

    assert "Wait until the model is loaded" in run(scenario())


def test_while_another_model_loads_a_new_chat_begins_at_once(run, store):
    load = FakeLoad(says("one"))

    async def scenario():
        async with opened(load, store) as window:
            await begin_to_load_another(window, load)
            await until(lambda: len(load.targets) == 2)
            window.chat.new_chat()
            await until(lambda: not window.transcript._turns)
            still_at_the_gate = not load.gate.is_set()
            load.gate.set()
            await until(lambda: len(load.engines) == 2 and len(load.engines[1].sessions) == 2)
            return still_at_the_gate

    assert run(scenario())
    assert load.engines[1].sessions[-1].messages == []


@pytest.mark.parametrize("width", [1360, 900, 420])
@pytest.mark.parametrize("by_keys", [True, False])
def test_a_new_chat_can_be_had_at_any_width(run, store, width, by_keys):
    async def scenario():
        async with opened(FakeLoad(says("one")), store) as window:
            window.resize(width, 700)
            await asyncio.sleep(0)
            type_and_send(window, "hello")
            await answered(window, 1)
            if by_keys:
                QTest.keyClick(box_of(window), Qt.Key.Key_N, Qt.KeyboardModifier.ControlModifier)
            else:
                (await button(window, "New chat" if width > 1060 else "+")).click()
            await until(lambda: not window.transcript._turns)
            return window.width()

    assert run(scenario()) == width
