"""Rule and sampling: what is chosen, kept and taken back, and what has no effect says so."""

from __future__ import annotations

from typing import Any

import pytest
from PySide6.QtWidgets import QCheckBox, QPushButton, QWidget

from app.lab.sampling import SamplingSection
from engine.params import ReplyParams, Rule, SamplingParams
from tests.app.widgets import heard, part_of


@pytest.fixture
def section(qtbot) -> SamplingSection:
    made = SamplingSection()
    qtbot.addWidget(made)
    made.resize(312, 40)
    made.show()
    return made


def field(section: SamplingSection, name: str) -> Any:
    return next(found for found in section.findChildren(QWidget) if found.accessibleName() == name)


def folded_line(section: SamplingSection) -> str:
    return part_of(section, QPushButton).text().replace("\n", " · ")


def test_the_defaults_are_those_of_a_chat(section):
    params = section.params()

    assert params.sampling.temperature == 0.7
    assert params.sampling.top_p == 0.95
    assert params.sampling.rule is Rule.COUPLED
    assert params.max_new_tokens == 1024


def test_the_folded_line_sums_up_what_matters(section):
    section.set_values({"seed": 42, "new_seed": False})

    assert folded_line(section) == "Coupled · temperature 0.7 · top-p 0.95 · seed 42 ▸"


def test_a_seed_that_the_next_reply_will_not_have_is_not_shown(section):
    section.set_values({"seed": 42, "new_seed": True})

    assert "42" not in folded_line(section)
    assert "new seed each time" in folded_line(section)


def test_the_folded_line_is_never_wider_than_its_place(section):
    section.set_values(
        {"rule": "rejection", "temperature": 1.25, "top_k": 40, "top_p": 0.95, "min_p": 0.05}
    )

    fold = part_of(section, QPushButton)
    assert fold.width() == section.width() == 312
    for line in fold.text().split("\n"):
        assert fold.fontMetrics().horizontalAdvance(line) <= 312 - 16


def test_a_click_unfolds_the_fields(section):
    temperature = field(section, "Temperature")
    assert not temperature.isVisible()

    part_of(section, QPushButton).click()

    assert temperature.isVisible()
    assert folded_line(section).endswith("▾")


def test_what_is_kept_comes_back(section, qtbot):
    kept = {
        "rule": "rejection",
        "temperature": 1.2,
        "top_k": 40,
        "top_p": 0.9,
        "min_p": 0.05,
        "repetition_penalty": 1.1,
        "seed": 2**63 - 1,
        "new_seed": False,
        "max_new_tokens": 77,
        "stop_texts": ["END", "###"],
        "system_prompt": "Be brief.\nBe kind.",
    }

    section.set_values(kept)

    assert section.values() == kept
    assert section.system_prompt() == "Be brief.\nBe kind."
    assert section.params() == ReplyParams(
        SamplingParams(1.2, 40, 0.9, 0.05, 1.1, 2**63 - 1, Rule.REJECTION), 77, ("END", "###")
    )


@pytest.mark.parametrize(
    "bad",
    [
        {},
        {"rule": "majority", "temperature": "hot", "seed": -1, "stop_texts": "x", "new_seed": 3},
        {"temperature": None, "top_k": [], "system_prompt": 5, "unknown": 1},
        {"temperature": float("nan"), "seed": 2**70},
    ],
)
def test_kept_values_that_make_no_sense_change_nothing(section, bad):
    before = section.values()

    section.set_values(bad)

    assert section.values() == before


@pytest.mark.parametrize("value", [-5.0, 1e9, float("inf")])
def test_kept_numbers_outside_their_range_are_drawn_into_it(section, value):
    section.set_values({"temperature": value, "top_p": value, "max_new_tokens": 10**12})

    params = section.params()
    assert 0 <= params.sampling.temperature <= 5
    assert 0 < params.sampling.top_p <= 1


def test_taking_kept_values_tells_nobody(section):
    told = heard(section.changed)

    section.set_values({"temperature": 1.0, "seed": 7})

    assert told == []


def test_a_change_by_hand_is_told(section):
    told = heard(section.changed)

    field(section, "Temperature").stepUp()

    assert told
    assert section.params().sampling.temperature == pytest.approx(0.8)


@pytest.mark.parametrize("name", ["Top-k", "Top-p", "Min-p", "Seed", "Rule"])
def test_at_temperature_0_what_has_no_effect_is_disabled_and_says_why(section, name):
    section.set_values({"temperature": 0.0})
    assert not field(section, name).isEnabled()
    assert "no effect" in field(section, name).toolTip()

    section.set_values({"temperature": 0.5})

    assert field(section, name).isEnabled()
    assert "no effect" not in field(section, name).toolTip()


def test_at_temperature_0_the_penalty_and_the_end_still_count(section):
    section.set_values({"temperature": 0.0})

    assert field(section, "Repetition penalty").isEnabled()
    assert field(section, "Most new tokens").isEnabled()
    assert folded_line(section) == "Temperature 0 ▸"


def test_each_new_reply_gets_a_fresh_seed_only_if_asked_for(section):
    section.set_values({"seed": 42, "new_seed": False})
    assert section.next_params().sampling.seed == 42

    part_of(section, QCheckBox).setChecked(True)
    seeds = {section.next_params().sampling.seed for _ in range(20)}

    assert len(seeds) > 1
    assert section.params().sampling.seed in seeds


def test_an_empty_seed_is_seed_0(section):
    field(section, "Seed").clear()

    assert section.params().sampling.seed == 0


def test_blank_lines_are_no_stop_texts(section):
    field(section, "Stop texts").setPlainText("END\n\n###\n")

    assert section.params().stop_texts == ("END", "###")


def test_every_field_has_a_name(section):
    names = {
        "Rule",
        "Temperature",
        "Top-k",
        "Top-p",
        "Min-p",
        "Repetition penalty",
        "Seed",
        "Most new tokens",
        "Stop texts",
        "System prompt",
    }

    assert names <= {found.accessibleName() for found in section.findChildren(QWidget)}
