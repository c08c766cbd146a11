"""The app's test of itself passes where every drafter answers alike, and says why where not."""

from __future__ import annotations

import logging

import pytest

from app.engine_thread import EngineThread
from app.self_test import self_test
from app.theme import load_theme
from app.window import MainWindow
from engine.errors import ModelError, OutOfMemory
from tests.app.fakes import FakeLoad, fails_with, in_turn, says

DRAFTERS = ("ngram", "lookahead")


@pytest.fixture
def tested(run, store, caplog):
    """The exit code, and what was logged."""

    async def scenario(load: FakeLoad, drafters):
        async with EngineThread(load) as engine:
            window = MainWindow(engine, store, load_theme("light"))
            code = await self_test(window, "default", drafters)
            window.close()
            await window.finish()
            window.deleteLater()
            return code

    def test(load: FakeLoad, drafters=DRAFTERS):
        with caplog.at_level(logging.INFO, "app.self_test"):
            return run(scenario(load, drafters)), caplog.text

    return test


def test_drafters_that_answer_alike_pass(tested):
    code, log = tested(FakeLoad(says("one", " two")))

    assert code == 0
    assert "ngram wrote 4 tokens" in log
    assert "lookahead wrote 4 tokens" in log
    assert "Self-test: passed." in log


def test_drafters_that_answer_differently_fail(tested):
    code, log = tested(FakeLoad(in_turn(says("one"), says("two"))))

    assert code == 1
    assert "The texts differ" in log


def test_a_target_that_cannot_be_loaded_fails_in_its_own_words(tested):
    code, log = tested(FakeLoad(says("one"), error=ModelError("a.txt is no model.")))

    assert code == 1
    assert "a.txt is no model." in log


def test_a_reply_that_fails_is_told(tested):
    code, log = tested(FakeLoad(fails_with(OutOfMemory("No memory left."), "one")))

    assert code == 1
    assert "No memory left." in log


def test_a_drafter_that_does_not_fit_is_told(tested):
    code, log = tested(FakeLoad(says("one")), ["draft-model:/bad"])

    assert code == 1
    assert "another vocabulary" in log
