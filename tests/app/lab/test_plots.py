"""The plot cards: what they say, how seldom they draw, and that no data is no trouble."""

from __future__ import annotations

import pyqtgraph as pg
import pytest
from PySide6.QtWidgets import QLabel

from app.lab.plot_card import REDRAW_MS, WORDS_MS
from app.lab.plots import AcceptancePlot, SpeedPlot, age_words, round_up
from app.lab.rates import POINTS
from app.theme import load_theme
from engine.stats import BaselineReading
from tests.app.events import ended, judged

REPLY = [*(judged(drafted=3, accepted=2, seconds=0.05) for _ in range(60)), ended()]


@pytest.fixture(params=[SpeedPlot, AcceptancePlot])
def plot(request, qtbot, theme):
    made = request.param(theme)
    qtbot.addWidget(made)
    made.show()
    return made


@pytest.fixture
def speed(qtbot, theme) -> SpeedPlot:
    made = SpeedPlot(theme)
    qtbot.addWidget(made)
    return made


@pytest.fixture
def acceptance(qtbot, theme) -> AcceptancePlot:
    made = AcceptancePlot(theme)
    qtbot.addWidget(made)
    return made


def labels(card) -> list[str]:
    return [label.text() for label in card.findChildren(QLabel)]


def curve_of(card) -> pg.PlotDataItem:
    items = card.findChild(pg.PlotWidget).getPlotItem().listDataItems()
    return items[0]


def drawn_points(card) -> int:
    points = curve_of(card).xData
    return 0 if points is None else len(points)


def words_on(card) -> list[str]:
    items = card.findChild(pg.PlotWidget).getPlotItem().items
    return [
        item.toPlainText() for item in items if isinstance(item, pg.TextItem) and item.isVisible()
    ]


def test_without_data_a_card_shows_no_figure(plot):
    plot.redraw()
    plot.show_words()
    plot.grab()

    assert "—" in labels(plot)


def test_a_burst_of_batches_is_drawn_once(plot, qtbot):
    drawn = []
    curve_of(plot).sigPlotChanged.connect(lambda: drawn.append(1))

    for event in REPLY:
        plot.apply([event])

    assert drawn == []
    qtbot.waitUntil(lambda: len(drawn) == 1)


def test_drawing_and_words_keep_their_pace():
    assert REDRAW_MS >= 100
    assert WORDS_MS >= 500


def test_once_the_news_is_drawn_nothing_more_is_planned(plot, qtbot):
    plot.apply(REPLY)
    assert plot._redraw_pause.isActive()

    qtbot.waitUntil(lambda: not plot._words_pause.isActive())

    assert not plot._redraw_pause.isActive()


def test_an_hour_of_points_draws_a_fixed_number(plot):
    plot.apply([judged(drafted=3, accepted=2, seconds=0.1)] * 36_000)

    plot.redraw()

    assert drawn_points(plot) == POINTS


def test_reset_empties_the_card(plot):
    plot.apply(REPLY)
    plot.redraw()
    plot.show_words()

    plot.reset()

    assert "—" in labels(plot)
    assert drawn_points(plot) == 0


def test_speed_shows_the_rate_of_the_last_seconds(speed):
    speed.apply(REPLY)

    speed.show_words()

    assert "60" in labels(speed)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("calibration", "plain, measured while loading 40 s ago: 74"),
        ("plain rounds", "plain, measured 40 s ago: 74"),
    ],
)
def test_the_baseline_says_how_old_it_is_and_from_when(speed, source, words):
    speed.set_baseline(BaselineReading(74.0, source, 40.0))

    speed.redraw()
    speed.show_words()

    assert words_on(speed) == [words]


def test_an_unknown_baseline_draws_no_line(speed):
    speed.set_baseline(BaselineReading(74.0, "calibration", 40.0))
    speed.set_baseline(None)

    speed.redraw()

    assert words_on(speed) == []


def test_the_baseline_is_inside_the_card_before_anything_is_measured(speed):
    speed.set_baseline(BaselineReading(740.0, "calibration", 40.0))

    speed.redraw()

    low, high = speed._box.viewRange()[1]
    assert low <= 740 <= high


def test_acceptance_shows_the_share_and_the_accepted_length_beside_it(acceptance):
    acceptance.apply(REPLY)

    acceptance.show_words()

    assert "67 %" in labels(acceptance)
    assert "3.0 tokens/pass · so far" in labels(acceptance)


def test_plain_decoding_has_a_length_but_no_share(acceptance):
    acceptance.apply([judged(drafted=0, accepted=0), ended()])

    acceptance.show_words()

    assert {"—", "1.0 tokens/pass"} <= set(labels(acceptance))


def test_a_theme_changes_the_curve_that_is_there(plot):
    dark = load_theme("dark")
    plot.apply(REPLY)
    plot.redraw()

    plot.set_theme(dark)

    roles = {SpeedPlot: "speed_line", AcceptancePlot: "acceptance_line"}
    assert curve_of(plot).opts["pen"].color() == dark.color(roles[type(plot)])


def test_a_card_has_a_name_and_tells_its_figures(acceptance):
    acceptance.apply(REPLY)
    acceptance.show_words()

    assert acceptance.accessibleName() == "Acceptance"
    assert acceptance.accessibleDescription() == "3.0 tokens/pass · so far 67 %"


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.4, "0 s"), (40, "40 s"), (90, "2 min"), (7200, "2 h")]
)
def test_ages_are_as_exact_as_anyone_wants(seconds, words):
    assert age_words(seconds) == words


@pytest.mark.parametrize(
    ("value", "scale"), [(1.0, 1), (1.15, 2), (74, 80), (85, 100), (135.7, 200), (0.3, 0.4)]
)
def test_scales_are_round_numbers(value, scale):
    assert round_up(value) == pytest.approx(scale)
