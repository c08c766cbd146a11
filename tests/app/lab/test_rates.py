"""The curves' numbers: windows over rounds, no spikes, fixed length."""

from __future__ import annotations

import math

import pytest

from app.lab.rates import POINTS, AcceptanceCurve, SpeedCurve
from engine.events import Drafted, Prefilled
from tests.app.events import ended, judged


def finite(points) -> list[float]:
    return [point for point in points if not math.isnan(point)]


def test_a_steady_speed_is_a_flat_curve():
    speed = SpeedCurve()

    for _ in range(200):
        speed.add(judged(drafted=0, accepted=0, seconds=0.02))

    assert speed.rate == pytest.approx(50)
    assert set(map(round, speed.points)) == {50}


def test_a_block_of_tokens_at_once_is_no_spike():
    speed = SpeedCurve()
    for _ in range(100):
        speed.add(judged(drafted=0, accepted=0, seconds=0.05))

    speed.add(judged(drafted=7, accepted=7, seconds=0.05))
    for _ in range(100):
        speed.add(judged(drafted=0, accepted=0, seconds=0.05))

    # By the round it would be 160 tokens a second.
    assert max(speed.points) <= 20 * 1.25


def test_the_first_round_of_a_reply_makes_no_figure_yet():
    speed = SpeedCurve()

    speed.add(judged(drafted=7, accepted=7, seconds=0.01))

    assert speed.rate is None
    assert len(speed.points) == 0


def test_a_reply_shorter_than_the_first_point_still_gets_one():
    speed = SpeedCurve()

    speed.add(judged(drafted=1, accepted=1, seconds=0.1))
    speed.add(ended())

    assert list(speed.points) == [pytest.approx(20)]


def test_the_window_forgets_what_was_before_it():
    speed = SpeedCurve()
    for _ in range(100):
        speed.add(judged(drafted=0, accepted=0, seconds=0.1))

    for _ in range(200):
        speed.add(judged(drafted=0, accepted=0, seconds=0.02))

    assert speed.rate == pytest.approx(50)


def test_the_next_reply_begins_behind_a_gap():
    speed = SpeedCurve()
    for _ in range(2):
        speed.add(Prefilled(8, 8))
        for _ in range(30):
            speed.add(judged(drafted=0, accepted=0, seconds=0.1))
        speed.add(ended())

    gaps = [point for point in speed.points if math.isnan(point)]
    assert len(gaps) == 1


def test_rounds_without_any_time_give_no_figure():
    speed = SpeedCurve()

    speed.add(judged(drafted=0, accepted=0, seconds=0.0))
    speed.add(ended())

    assert speed.rate is None


def test_hours_of_rounds_take_no_more_room():
    speed, acceptance = SpeedCurve(), AcceptanceCurve()
    round_ = judged(drafted=4, accepted=2, seconds=0.1)

    for _ in range(36_000):
        speed.add(round_)
        acceptance.add(round_)

    assert len(speed.points) == len(acceptance.points) == POINTS
    assert len(speed._rounds) <= 21
    assert len(acceptance._rounds) <= 9


def test_acceptance_counts_judged_nodes_only():
    acceptance = AcceptanceCurve()

    acceptance.add(Drafted("dropped before its pass", "ngram"))
    acceptance.add(judged(drafted=0, accepted=0))
    acceptance.add(judged(drafted=4, accepted=3))

    assert acceptance.so_far == pytest.approx(0.75)


def test_without_a_draft_there_is_no_acceptance():
    acceptance = AcceptanceCurve()

    acceptance.add(judged(drafted=0, accepted=0))

    assert acceptance.so_far is None
    assert list(acceptance.points) == []


def test_acceptance_rolls_over_the_last_nodes():
    acceptance = AcceptanceCurve()
    for _ in range(20):
        acceptance.add(judged(drafted=4, accepted=0))

    for _ in range(8):
        acceptance.add(judged(drafted=4, accepted=4))

    assert acceptance.points[-1] == pytest.approx(1.0)
    assert acceptance.so_far == pytest.approx(32 / 112)


@pytest.mark.parametrize("draft_length", [2, 4, 8])
def test_the_accepted_length_tells_draft_lengths_apart_where_the_rate_does_not(draft_length):
    acceptance = AcceptanceCurve()

    for _ in range(10):
        acceptance.add(judged(drafted=draft_length, accepted=draft_length // 2))

    assert acceptance.so_far == pytest.approx(0.5)
    assert acceptance.tokens_per_pass == pytest.approx(draft_length // 2 + 1)


def test_figures_so_far_stay_until_the_next_reply_begins():
    acceptance = AcceptanceCurve()
    acceptance.add(judged(drafted=4, accepted=2))
    acceptance.add(ended())
    assert acceptance.so_far == pytest.approx(0.5)

    acceptance.add(judged(drafted=4, accepted=4))

    assert acceptance.so_far == pytest.approx(1.0)
