"""The panel: its parts from the top, at its width, fed by a reply's events."""

from __future__ import annotations

from typing import Any

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QPushButton, QRadioButton, QSpinBox

from app.engine_host import Outlook
from app.lab.drafter_list import DrafterRow
from app.lab.panel import PANEL_PIXELS, LabPanel
from app.settings import Settings
from app.theme import load_theme, style_sheet
from engine.plan_words import Estimates
from engine.stats import BaselineReading
from tests.app.events import ended, judged
from tests.app.fakes import LOOKAHEAD, Choice, FakeSetting


@pytest.fixture
def panel(qtbot, theme) -> LabPanel:
    made = LabPanel(theme)
    qtbot.addWidget(made)
    made.resize(PANEL_PIXELS, 900)
    made.show()
    return made


STAIRCASE = (1.0, 1.1, 1.2, 1.4, 2.0, 2.0, 2.0, 2.0)


def kind(label: QLabel) -> str:
    return label.property("kind")


def folds(panel: LabPanel) -> list[str]:
    return [button.text() for button in panel.findChildren(QPushButton)]


def labels(panel: LabPanel) -> list[str]:
    return [label.text() for label in panel.findChildren(QLabel)]


def test_the_parts_stand_in_their_order(panel):
    parts = [panel.drafters, panel.speed, panel.acceptance, panel.rounds, panel.sampling]
    tops = [part.mapTo(panel.widget(), part.rect().topLeft()).y() for part in parts]

    assert tops == sorted(tops)
    assert panel.width() == PANEL_PIXELS


def test_the_panel_itself_is_no_stop_of_the_tab_key(panel):
    assert panel.focusPolicy() is Qt.FocusPolicy.NoFocus


def test_a_row_that_an_arrow_leads_to_is_scrolled_to(panel):
    rows = [DrafterRow(f"d{number}", f"Drafter {number}") for number in range(30)]
    panel.drafters.set_choices(rows)
    panel.resize(PANEL_PIXELS, 300)
    panel.activateWindow()
    QApplication.processEvents()
    first, *_, last = panel.drafters.findChildren(QRadioButton)
    first.setFocus()

    for _ in rows[1:]:
        QTest.keyClick(panel.focusWidget(), Qt.Key.Key_Down)

    assert panel.focusWidget() is last
    assert panel.viewport().rect().contains(last.mapTo(panel.viewport(), QPoint(0, 0)))


def usual_rows() -> list[DrafterRow]:
    settings = tuple(FakeSetting(words, 1, 31, 7) for words in ("Window", "N-gram", "Guesses"))
    lookahead: Any = Choice("lookahead", "Lookahead", grows_trees=True, settings=settings)
    names = ("Off", "Auto", "N-gram", "Layer skip", "Suffix")
    in_fold = DrafterRow("draft-model", "Draft model…", needs="a model")
    return [*(DrafterRow(name, name) for name in names), DrafterRow.of(lookahead), in_fold]


@pytest.mark.parametrize("name", ["light", "dark"])
def test_in_a_window_of_820_pixels_both_plots_are_seen_without_scrolling(panel, name):
    panel.setStyleSheet(style_sheet(load_theme(name)))
    panel.drafters.set_choices(usual_rows())
    panel.drafters.select("lookahead")
    plan = "Drafting up to 3 ahead, mostly 2, with lookahead: 1.4 × plain of late; 3 rows cost 1.1"
    numbers = Estimates("lookahead", (0.5,) * 6, STAIRCASE, (1.5,) * 6, draft_length=3)
    panel.set_outlook(Outlook(f"{plan} passes here, 5 would cost 1.9.", None, numbers))
    panel.resize(PANEL_PIXELS, 820)
    QApplication.processEvents()

    for card in (panel.speed, panel.acceptance):
        lowest = card.mapTo(panel.viewport(), card.rect().bottomLeft()).y()
        assert lowest < panel.viewport().height()
    assert panel.widget().width() <= panel.viewport().width()


def test_the_plan_is_shown_literally(panel):
    panel.set_plan("Drafting 4 ahead with <b>n-gram</b>.")

    assert "Drafting 4 ahead with <b>n-gram</b>." in labels(panel)


def test_what_the_planner_goes_by_stands_below_its_sentence(panel):
    holds, gains = (0.62, 0.7, 0.8, 0.8, 0.8, 0.8), (1.5, 1.7, 1.8, 1.4, 1.5, 1.6)
    estimates = Estimates("ngram", holds, STAIRCASE, gains, draft_length=3)

    panel.set_outlook(Outlook("Drafting.", None, estimates))

    assert {"Drafting.", "62 %", "70 %", "1.4", "2.0"} <= set(labels(panel))
    bold = [label.text() for label in panel.findChildren(QLabel) if kind(label) == "pill-value"]
    assert sorted(bold) == ["1.4", "1.8 ×", "3", "80 %"]
    assert panel._estimates.isVisible()


def test_without_estimates_their_table_takes_no_room(panel):
    panel.set_outlook(Outlook("Decoding plainly.", None))

    assert not panel._estimates.isVisible()


def test_events_reach_every_part(panel):
    panel.apply([*(judged(drafted=3, accepted=2) for _ in range(60)), ended()])

    panel.speed.show_words()
    panel.acceptance.show_words()
    panel.rounds.show_state()

    assert {"60", "67 %"} <= set(labels(panel))
    assert "Round 0 · 2 kept, 1 turned down ▸" in folds(panel)


def test_reset_empties_every_part(panel):
    panel.apply([*(judged(drafted=3, accepted=2) for _ in range(60)), ended()])
    panel.set_outlook(Outlook("Drafting.", BaselineReading(74.0, "calibration", 40.0)))

    panel.reset()

    assert labels(panel).count("—") == 2
    assert "Nothing decoded yet ▸" in folds(panel)


def test_what_was_chosen_before_comes_back(panel):
    kept = Settings(
        drafters={"lookahead": "lookahead@9x5"},
        draft_length=3,
        tree_nodes=15,
        sampling={"temperature": 0.25},
    )

    panel.restore(kept)
    panel.drafters.set_choices([DrafterRow.of(LOOKAHEAD)])
    panel.drafters.select("lookahead@9x5")

    shown = {box.accessibleName(): box.value() for box in panel.drafters.findChildren(QSpinBox)}
    assert shown == {
        "Draft length": 3,
        "Lookahead: Window": 9,
        "Lookahead: Guesses": 5,
        "Lookahead: Tree nodes": 15,
    }
    assert panel.sampling.params().sampling.temperature == 0.25


def right_edges(panel: LabPanel) -> list[int]:
    return [card.mapTo(panel, card.rect().topRight()).x() for card in (panel.speed, panel.drafters)]


def test_long_words_and_the_scroll_bar_widen_nothing_and_move_nothing(panel, qtbot):
    panel.widget().layout().activate()
    before = right_edges(panel)
    reasons = [DrafterRow("medusa", "Medusa", reason="not trained for this model " * 5)]
    panel.drafters.set_choices(reasons)
    panel.acceptance._number.setText("100 %")
    panel.acceptance._fact.setText("16.0 tokens per pass · so far, and then some more words")
    panel.sampling.set_values({"top_k": 40, "top_p": 0.95, "min_p": 0.05})
    panel.resize(panel.width(), 300)

    qtbot.waitUntil(panel.verticalScrollBar().isVisible)

    assert panel.widget().width() <= panel.viewport().width()
    assert right_edges(panel) == before


def test_a_narrow_part_never_needs_to_scroll_sideways(panel, qtbot):
    panel.sampling.findChildren(type(panel.sampling._fold))[0].setChecked(True)
    panel.set_theme(load_theme("dark"))

    qtbot.waitUntil(lambda: panel.verticalScrollBar().maximum() > 0)
    assert panel.widget().width() <= panel.viewport().width()
