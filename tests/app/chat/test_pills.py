"""The figures under a reply: what is known is shown, what is not gives no pill."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QFrame, QLabel, QPushButton

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
        "drafter ngram",
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


def test_a_reply_without_a_token_has_no_speed():
    facts = {"tokens": 0, "rounds": 0, "drafted": 0, "drafters": (), "decode_seconds": 0.0}
    pills = words(ended(FinishReason.LENGTH, **facts))

    assert pills == ["token limit", "seed 42"]


def test_every_drafter_that_was_in_charge_is_named():
    assert "drafter ngram, layer-skip" in words(ended(drafters=("ngram", "layer-skip")))
    assert "drafter off" in words(ended(drafters=("off",)))


def test_at_temperature_0_there_is_no_seed_to_tell():
    greedy = ReplyParams(SamplingParams(temperature=0.0, seed=42))

    assert not any("seed" in pill for pill in words(ended(params=greedy)))


def buttons(row: PillRow) -> dict[str, QPushButton]:
    return {b.text(): b for b in row.findChildren(QPushButton) if not b.isHidden()}


def test_at_temperature_0_no_seed_is_offered_either(qtbot):
    row = PillRow()
    qtbot.addWidget(row)

    row.offer_again(True, sampled=False, refusal="")

    assert list(buttons(row)) == ["Copy", "Regenerate"]
    assert "no seed has an effect" in buttons(row)["Regenerate"].toolTip()


def test_what_cannot_be_had_now_is_disabled_and_says_why(qtbot):
    row = PillRow()
    qtbot.addWidget(row)

    row.offer_again(True, sampled=True, refusal="Wait until the model is loaded")
    refused = {words: (b.isEnabled(), b.toolTip()) for words, b in buttons(row).items()}
    row.offer_again(True, sampled=True, refusal="")

    assert refused["Copy"][0]
    for again in ("Regenerate", "Same seed"):
        assert refused[again] == (False, "Wait until the model is loaded")
        assert buttons(row)[again].isEnabled()
        assert buttons(row)[again].toolTip().startswith("Answer again")


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
    row.offer_again(True, sampled=True, refusal="")
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
