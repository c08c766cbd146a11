"""Trouble is told in words; what a bug report needs is a click away."""

from __future__ import annotations

import logging
import sys

import pytest
from PySide6.QtWidgets import QPlainTextEdit, QPushButton

from app.errors import Banner, Failure, failure_of, install_excepthook
from app.text_dialog import TextDialog
from app.text_view import TextView
from engine.errors import ModelError
from tests.app.widgets import part_of


def test_the_worlds_mistakes_speak_for_themselves():
    assert failure_of(ModelError("a.txt is no model.")) == Failure("a.txt is no model.")


def test_what_lies_behind_one_of_them_is_logged(caplog):
    error = ModelError("a.txt can't be read.")
    error.__cause__ = PermissionError("not yours")

    with caplog.at_level(logging.INFO):
        failure_of(error)

    assert "PermissionError: not yours" in caplog.text


def test_our_own_mistakes_are_logged_whole_and_shown_without_jargon(caplog):
    with caplog.at_level(logging.ERROR):
        failure = failure_of(ZeroDivisionError("division by zero"))

    assert "ZeroDivisionError" in caplog.text
    assert "ZeroDivisionError" in failure.details
    assert "Zero" not in failure.sentence


@pytest.fixture
def banner(qtbot) -> Banner:
    made = Banner()
    qtbot.addWidget(made)
    return made


def test_a_banner_shows_its_sentence_literally(banner):
    banner.show_failure(Failure("<b>no</b> model & no <img src=x>"))

    assert part_of(banner, TextView).toPlainText() == "<b>no</b> model & no <img src=x>"
    assert not banner.isHidden()


def test_a_word_too_long_for_its_line_is_broken_and_the_sentence_goes_on(banner, qtbot):
    sentence = f"{'/a-folder-with-a-name' * 20} is no model. Choose another."
    banner.resize(400, 100)
    banner.show()

    banner.show_failure(Failure(sentence))

    view = part_of(banner, TextView)
    assert banner.sentence == sentence
    qtbot.waitUntil(lambda: view.height() > 5 * view.fontMetrics().height())
    assert view.document().idealWidth() <= view.width()


def test_details_are_offered_only_where_there_are_any(banner):
    more = next(b for b in banner.findChildren(QPushButton) if b.text() == "Details…")

    banner.show_failure(Failure("No memory left."))
    without = more.isHidden()
    banner.show_failure(Failure("Something went wrong.", "Traceback"))

    assert without
    assert not more.isHidden()


def test_a_failure_hides_no_note_and_a_newer_failure_replaces_the_older(banner):
    banner.show_note("This model has no chat template.")

    banner.show_failure(Failure("No such draft model."))
    banner.show_failure(Failure("Another vocabulary."))

    assert banner.sentence == "Another vocabulary.\nThis model has no chat template."


def test_a_note_comes_beneath_a_failure_and_only_once(banner):
    banner.show_failure(Failure("No such draft model."))

    banner.show_note("This model has no chat template.")
    banner.show_note("This model has no chat template.")

    assert banner.sentence == "No such draft model.\nThis model has no chat template."


def test_a_banner_goes_when_it_is_dismissed(banner):
    banner.show_note("This model has no chat template.")

    next(b for b in banner.findChildren(QPushButton) if b.text() == "Dismiss").click()

    assert banner.isHidden()
    assert banner.sentence == ""


def test_details_are_shown_with_the_versions(banner):
    banner.show_failure(Failure("Something went wrong.", "Traceback: KeyError"))

    next(b for b in banner.findChildren(QPushButton) if b.text() == "Details…").click()

    shown = part_of(part_of(banner, TextDialog), QPlainTextEdit).toPlainText()
    assert "PySide6" in shown
    assert "Traceback: KeyError" in shown


def test_what_nobody_caught_is_shown_and_an_interrupt_is_not(monkeypatch):
    shown: list[Failure] = []
    passed_on: list[type] = []
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr(sys, "__excepthook__", lambda kind, *_: passed_on.append(kind))
    install_excepthook(shown.append)

    sys.excepthook(KeyError, KeyError("lost"), None)
    sys.excepthook(KeyboardInterrupt, KeyboardInterrupt(), None)

    assert ["KeyError" in failure.details for failure in shown] == [True]
    assert passed_on == [KeyboardInterrupt]
