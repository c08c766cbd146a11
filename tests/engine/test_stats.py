"""Counts, lengths and speeds; the measured baseline (cases.md 43, 45, 46)."""

from __future__ import annotations

import pytest

from engine.events import Node, Origin, Outcome, Round, Token
from engine.stats import Baseline, RoundCounter


def token(origin=Origin.TARGET_ONLY):
    return Token(5, "x", origin, position=9, depth=1, p=0.5, q=None, margin=None)


def node(depth, outcome, parent=-1):
    return Node(5, parent, depth, "ngram", p=0.1, q=None, outcome=outcome)


def read(baseline, context_tokens):
    reading = baseline.reading(context_tokens)
    assert reading is not None
    return reading


def a_round(tokens, nodes, seconds=0.1):
    return Round(0, tuple(tokens), tuple(nodes), "ngram", 1 + len(nodes), 0.0, seconds, 0.0)


def test_survival_counts_places_and_not_siblings():
    counter = RoundCounter()
    siblings = [
        node(1, Outcome.TURNED_DOWN),
        node(1, Outcome.KEPT),
        node(2, Outcome.TURNED_DOWN, parent=1),
        node(2, Outcome.NOT_REACHED, parent=0),
    ]

    counter.add(a_round([token(Origin.DRAFT_ACCEPTED), token(Origin.RESAMPLED)], siblings))

    assert counter.survival_by_depth == (1.0, 0.0)
    assert (counter.drafted, counter.accepted, counter.resampled) == (4, 1, 1)


def test_a_round_without_a_draft_counts_as_plain():
    counter = RoundCounter()

    counter.add(a_round([token()], []))

    assert (counter.tokens, counter.rounds, counter.drafted) == (1, 1, 0)
    assert counter.survival_by_depth == ()


def test_the_baseline_is_the_calibration_until_enough_plain_rounds_are_measured():
    now = [0.0]
    baseline = Baseline(clock=lambda: now[0])

    assert baseline.reading(100) is None
    baseline.calibrate(0.5)
    now[0] = 3.0
    calibrated = read(baseline, 100)
    for seconds in (0.1, 0.1, 0.1, 9.0, 0.1):
        baseline.observe(seconds, context_tokens=100)
    now[0] = 10.0
    measured = read(baseline, 120)

    assert (calibrated.tokens_per_second, calibrated.source) == (2.0, "calibration")
    assert calibrated.age_seconds == 3.0
    assert measured.tokens_per_second == pytest.approx(10.0)
    assert (measured.source, measured.age_seconds) == ("plain rounds", 7.0)


def test_plain_rounds_count_for_their_own_context_length_only():
    baseline = Baseline()
    baseline.calibrate(0.5)
    for _ in range(5):
        baseline.observe(0.1, context_tokens=4000)

    assert read(baseline, 100).source == "calibration"
    assert read(baseline, 4000).source == "plain rounds"
