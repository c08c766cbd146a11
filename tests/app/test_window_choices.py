"""What can be chosen in the window, and what it remembers."""

from __future__ import annotations

import asyncio
import threading

from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QPushButton, QRadioButton, QSpinBox

from app.engine_thread import EngineThread
from app.settings import Settings, SettingsStore
from app.theme import load_theme
from app.window import MainWindow
from engine.errors import ModelError
from tests.app.fakes import (
    FakeLoad,
    says,
    talks_until_stopped,
    until,
)
from tests.app.opened import (
    box_of,
    button,
    opened,
    target_of,
    type_and_send,
)


def test_a_drafter_clicked_during_a_reply_drafts_its_next_rounds(run, store):
    gate = threading.Semaphore(0)
    load = FakeLoad(talks_until_stopped(gate))

    async def scenario():
        async with opened(load, store) as window:
            type_and_send(window, "hello")
            await until(lambda: "word0" in window.transcript.reply_text())
            off = next(b for b in window.panel.findChildren(QRadioButton) if b.text() == "Off")
            off.click()
            await until(lambda: gate.release() or window.chat.drafter == "off")
            window.chat.stop()
            gate.release()
            await until(lambda: not window.chat.busy)
            return window.panel.drafters.chosen

    assert run(scenario()) == "off"
    assert load.engines[0].sessions[0].drafting.drafter == "off"


def set_number(window, name, number):
    boxes = window.panel.drafters.findChildren(QSpinBox)
    next(box for box in boxes if box.accessibleName() == name).setValue(number)


def test_a_number_set_during_a_reply_drafts_its_next_rounds(run, store):
    gate = threading.Semaphore(0)
    load = FakeLoad(talks_until_stopped(gate))

    async def scenario():
        async with opened(load, store) as window:
            window.chat.swap("lookahead")
            await until(lambda: window.chat.drafter == "lookahead")
            type_and_send(window, "hello")
            await until(lambda: "word0" in window.transcript.reply_text())
            set_number(window, "Lookahead: Window", 9)
            await until(lambda: gate.release() or window.chat.drafter == "lookahead@9x5")
            window.chat.stop()
            gate.release()
            await until(lambda: not window.chat.busy)

    run(scenario())

    assert load.engines[0].sessions[0].drafting.drafter == "lookahead@9x5"
    assert store.load().drafter == "lookahead@9x5"
    assert store.load().drafters == {"lookahead": "lookahead@9x5"}


def test_numbers_that_the_engine_refuses_are_told_and_what_drafted_stays(run, store):
    load = FakeLoad(says("one"))

    async def scenario():
        async with opened(load, store) as window:
            window.chat.swap("lookahead@9x5")
            await until(lambda: window.chat.drafter == "lookahead@9x5")
            set_number(window, "Lookahead: Window", 31)
            await until(window.banner.isVisible)
            return window.banner.sentence, window.panel.drafters.chosen

    sentence, chosen = run(scenario())

    assert sentence == "Lookahead needs at most 64 rows."
    assert chosen == "lookahead@9x5"
    assert load.engines[0].sessions[0].drafting.drafter == "lookahead@9x5"


def test_tree_nodes_reach_the_session_and_come_back_after_a_restart(run, store):
    def nodes_of(load):
        return load.engines[-1].sessions[0].drafting.tree_nodes

    async def first(load):
        async with opened(load, store) as window:
            window.chat.swap("lookahead")
            await until(lambda: window.chat.drafter == "lookahead")
            set_number(window, "Lookahead: Tree nodes", 15)
            await until(lambda: nodes_of(load) == 15)
            window.target_picker.target_chosen.emit("/another")
            await until(lambda: len(load.engines) == 2 and nodes_of(load) == 15)

    async def second(load):
        async with opened(load, store):
            await until(lambda: nodes_of(load) == 15)

    run(first(FakeLoad(says("one"))))
    run(second(FakeLoad(says("one"))))

    assert store.load().tree_nodes == 15


def test_numbers_that_another_target_does_not_take_give_way_to_the_defaults(run, store):
    store.save(Settings(drafter="lookahead@99x5"))

    async def scenario():
        async with opened(FakeLoad(says("one")), store) as window:
            return window.chat.drafter, window.banner.isVisible()

    assert run(scenario()) == ("lookahead", False)


def test_a_draft_model_that_takes_long_to_load_can_be_given_up_at_once(run, store):
    load = FakeLoad(says("one"))

    async def scenario():
        async with opened(load, store) as window:
            target = target_of(window)
            window.draft_picker.spec_chosen.emit("draft-model:/slow")
            await until(lambda: target.accessibleName() == "Loading the draft model")
            (await button(window, "Cancel")).click()
            await until(lambda: target.text().startswith("Fake 1M"))
            still_at_the_gate = not load.engines[0].gate.is_set()
            load.engines[0].gate.set()
            type_and_send(window, "hello")
            await until(lambda: window.chat.replies and not window.chat.busy)
            return still_at_the_gate, window.chat.drafter

    assert run(scenario()) == (True, "auto")
    assert load.engines[0].sessions[0].drafting.drafter == "auto"


def test_choices_and_place_come_back_after_a_restart(run, store):
    async def first():
        async with opened(FakeLoad(says("one")), store) as window:
            window.move(QPoint(30, 40))
            window.resize(700, 600)
            (await button(window, "Colours")).click()
            window.panel.drafters.drafter_chosen.emit("off")
            window.panel.drafters.draft_length_changed.emit(9)
            window.panel.sampling.set_values({"temperature": 0.25, "system_prompt": "Be brief."})
            await until(lambda: window.chat.drafter == "off")

    async def second():
        async with EngineThread(FakeLoad(says("one"))) as engine:
            window = MainWindow(engine, store, load_theme("light"))
            window.show()
            values = window.panel.sampling.values()
            kept = store.load()
            place = (window.x(), window.y(), window.width(), window.height())
            colours = window.legend.isChecked()
            window.close()
            await window.finish()
            window.deleteLater()
            return values, kept, place, colours

    run(first())
    values, kept, place, colours = run(second())

    assert place == (30, 40, 700, 600)
    assert not colours
    assert (kept.drafter, kept.draft_length) == ("off", 9)
    assert (values["temperature"], values["system_prompt"]) == (0.25, "Be brief.")


def test_a_choice_is_kept_without_the_window_being_closed(run, store):
    async def scenario():
        async with opened(FakeLoad(says("one")), store) as window:
            window.panel.drafters.drafter_chosen.emit("off")
            window.panel.sampling._temperature.setValue(0.25)
            await until(lambda: store.load().drafter == "off")
            return store.load().sampling["temperature"]

    assert run(scenario()) == 0.25


def test_settings_that_cannot_be_written_are_told(run, tmp_path):
    (tmp_path / "file").write_text("no folder")
    store = SettingsStore(tmp_path / "file" / "settings.ini")

    async def scenario():
        async with opened(FakeLoad(says("one")), store) as window:
            await until(window.banner.isVisible)
            return window.banner.sentence

    assert "cannot be written" in run(scenario())


def test_a_target_that_cannot_be_loaded_says_so_and_the_old_one_stays(run, store):
    load = FakeLoad(says("still here"))

    async def scenario():
        async with opened(load, store) as window:
            load.error = ModelError("notes.txt is no model.")
            window.target_picker.target_chosen.emit("/notes.txt")
            await until(lambda: window.banner.isVisible())
            sentence = window.banner.sentence
            type_and_send(window, "hello")
            await until(lambda: window.chat.replies and not window.chat.busy)
            return sentence, window.transcript.reply_text()

    assert run(scenario()) == ("notes.txt is no model.", "still here.")
    assert store.load().target == "default"


def test_without_any_target_the_window_asks_for_one(run, store):
    load = FakeLoad(says("one"), error=ModelError("The default model is not there."))

    async def scenario():
        async with opened(load, store) as window:
            return window.banner.sentence, box_of(window).placeholderText()

    assert run(scenario()) == ("The default model is not there.", "Choose a model first")


def test_cancelling_a_load_gives_the_old_target_back_at_once(run, store):
    load = FakeLoad(says("one"))

    async def scenario():
        async with opened(load, store) as window:
            load.gate.clear()
            window.target_picker.target_chosen.emit("/models/big.gguf")
            await until(
                lambda: any(
                    b.text() == "Cancel" and b.isVisible() for b in window.findChildren(QPushButton)
                )
            )
            (await button(window, "Cancel")).click()
            await until(lambda: target_of(window).isEnabled())
            still_at_the_gate = not load.gate.is_set()
            load.gate.set()
            return still_at_the_gate, target_of(window).text()

    still_at_the_gate, words = run(scenario())

    assert still_at_the_gate
    assert words.startswith("Fake 1M")


def test_a_narrow_window_hides_its_sides_first(run, store):
    store.save(Settings(geometry=(0, 0, 1360, 700)))

    async def scenario():
        async with opened(FakeLoad(says("one")), store) as window:
            seen = []
            for width in (1360, 900, 500, 1360):
                window.resize(width, 700)
                await asyncio.sleep(0)
                seen.append((window.sidebar.isVisible(), window.panel.isVisible()))
            return seen

    assert run(scenario()) == [(True, True), (False, True), (False, False), (True, True)]


def test_a_hidden_panel_stays_hidden_when_there_is_room_again(run, store):
    async def scenario():
        async with opened(FakeLoad(says("one")), store) as window:
            window.resize(1300, 700)
            await until(window.panel.isVisible)
            (await button(window, "Panel")).click()
            assert not window.panel.isVisible()
            window.resize(500, 700)
            window.resize(1300, 700)
            await asyncio.sleep(0)
            return window.panel.isVisible()

    assert not run(scenario())
