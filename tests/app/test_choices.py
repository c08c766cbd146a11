"""Choices: kept soon after a change, and a settings file that cannot be written is told once."""

from __future__ import annotations

from app.choices import Choices
from app.settings import SettingsStore
from tests.app.widgets import heard


def test_several_changes_are_due_to_be_kept_once(qtbot, store):
    choices = Choices(store)
    due = heard(choices.due)

    choices.change(colours=False)
    choices.change(drafter="off")
    assert due == []

    qtbot.waitUntil(lambda: due == [None])
    assert (choices.now.colours, choices.now.drafter) == (False, "off")


def test_what_is_saved_is_there_at_the_next_start(qapp, store):
    choices = Choices(store)
    choices.change(draft_length=9)

    choices.save(maximised=True)

    assert (Choices(store).now.draft_length, Choices(store).now.maximised) == (9, True)


def test_a_file_that_cannot_be_written_is_told_once(qapp, tmp_path):
    (tmp_path / "file").write_text("no folder")
    choices = Choices(SettingsStore(tmp_path / "file" / "settings.ini"))
    told = heard(choices.refused)

    choices.save()
    choices.save()

    assert len(told) == 1
    assert "cannot be written" in told[0]
