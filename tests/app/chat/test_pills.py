"""The figures under a reply: what is known is shown, what is not gives no pill."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QFrame, QLabel

from app.chat.pills import PillRow, figures
from engine.events import FinishReason
from engine.params import ReplyParams, Rule, SamplingParams
from tests.app.events import ended


def words(done) -> list[str]:
    return [" ".join(part for part in parts if part) for parts in figures(done)]


def test_a_full_account_reads_as_in_the_design():
    assert words(ended()) == [
        "118 tokens/s",
        "1.6 × plain",
        "2.3 tokens per pass",
        "61 % accepted",
        "first token 0.2 s",
        "end of turn",
        "seed 42",
    ]


def test_an_unknown_baseline_gives_no_pill():
    assert not any("plain" in pill for pill in words(ended(baseline=None)))


@pytest.mark.parametrize(("tokens", "compared"), [(15, False), (16, True)])
def test_a_few_tokens_are_too_few_to_be_compared_with_plain_speed(tokens, compared):
    assert any("plain" in pill for pill in words(ended(tokens=tokens))) is compared


@pytest.mark.parametrize(("rule", "told"), [(Rule.REJECTION, True), (Rule.COUPLED, False)])
def test_a_text_that_may_depend_on_timing_says_so(rule, told):
    params = ReplyParams(SamplingParams(temperature=0.8, rule=rule))

    done = ended(params=params, planned=True)

    assert ("text may depend on timing" in words(done)) is told


def test_without_a_draft_there_is_no_acceptance():
    assert not any("accepted" in pill for pill in words(ended(drafted=0, accepted=0)))


def test_a_reply_stopped_before_its_first_token_has_no_speed():
    pills = words(ended(FinishReason.STOPPED, tokens=0, rounds=0, drafted=0, decode_seconds=0.0))

    assert pills == ["stopped", "seed 42"]


@pytest.mark.parametrize("reason", list(FinishReason))
def test_every_end_is_named(reason):
    assert str(reason) in words(ended(reason))


def test_slow_replies_keep_a_decimal():
    assert words(ended(tokens=3, decode_seconds=2.0))[0] == "1.5 tokens/s"


def test_pills_wrap_in_a_narrow_row_and_stay_inside(qtbot):
    row = PillRow()
    qtbot.addWidget(row)
    row.resize(680, 24)
    row.show_figures(ended())
    row.set_last(True)
    row.show()
    wide = row.height()

    row.resize(220, wide)

    qtbot.waitUntil(lambda: row.height() > wide)
    for pill in row.findChildren(QFrame):
        assert pill.geometry().right() <= 220 or isinstance(pill, QLabel)


def test_a_pill_has_a_name_for_screen_readers(qtbot):
    row = PillRow()
    qtbot.addWidget(row)

    row.show_figures(ended())

    names = {pill.accessibleName() for pill in row.findChildren(QFrame)}
    assert "61 % accepted" in names
