"""What rows cost: steps are never smoothed, and live rounds correct the table, not a slow one."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.costs import COUNTS, EDGES_FIRST, LENGTHS, MOST_ROWS, CostModel
from tests.engine.simulated import PASS_SECONDS, measured, staircase

SHORT, MIDDLE, LONG = LENGTHS[:3]


def ratio(costs, rows, cache_tokens=MIDDLE):
    return costs.ratios(cache_tokens)[rows - 1]


def rounds(costs, rows, seconds, *, times, cache_tokens=MIDDLE):
    for _ in range(times):
        costs.observe(rows, cache_tokens, seconds)


# Steps.


def test_a_count_that_was_not_measured_costs_what_the_next_measured_one_above_does():
    costs = CostModel({SHORT: {1: 1.0, 4: 1.4, 5: 2.0, 8: 2.1}})

    seconds = [costs.seconds(rows, SHORT) for rows in range(1, 9)]

    assert seconds == [1.0, 1.4, 1.4, 1.4, 2.0, 2.1, 2.1, 2.1]


def test_beyond_all_that_was_measured_costs_go_on_rising_at_their_pace():
    costs = CostModel({SHORT: {1: 1.0, 5: 2.0, 9: 3.0}})

    assert costs.seconds(17, SHORT) == pytest.approx(5.0)


def test_while_only_one_row_was_measured_further_rows_are_a_guess_that_is_not_free():
    costs = CostModel({SHORT: {1: 1.0}})

    assert 1.0 < costs.seconds(2, SHORT) < costs.seconds(8, SHORT) < 8.0


@given(
    st.dictionaries(st.sampled_from(COUNTS), st.floats(0.001, 1.0), min_size=1),
    st.integers(0, 100_000),
)
def test_ratios_never_fall_with_more_rows(cells, cache_tokens):
    ratios = CostModel({SHORT: cells}).ratios(cache_tokens)

    assert len(ratios) == MOST_ROWS
    assert all(left <= right * (1 + 1e-9) for left, right in pairwise(ratios))


def test_a_count_that_was_timed_in_a_bad_moment_costs_no_more_than_a_larger_one():
    costs = CostModel({SHORT: {1: 1.0, 3: 6.0, 4: 1.4, 8: 2.0}})

    assert costs.ratios(SHORT)[:8] == (1.0, 1.4, 1.4, 1.4, 2.0, 2.0, 2.0, 2.0)
    assert CostModel({SHORT: {1: 9.0, 8: 1.0}}).ratios(SHORT)[:8] == (1.0,) * 8


def test_the_edges_of_steps_of_four_come_first():
    assert EDGES_FIRST[:7] == (1, 4, 5, 8, 9, 2, 3)
    assert sorted(EDGES_FIRST) == [*range(1, 17), 24, 32, 48, 64]


# Lengths.


def test_between_two_lengths_costs_lie_between():
    costs = CostModel({SHORT: {1: 1.0, 4: 2.0}, MIDDLE: {1: 2.0, 4: 3.0}})
    halfway = (SHORT + MIDDLE) // 2

    assert costs.seconds(1, halfway) == pytest.approx(1.5)
    assert costs.seconds(4, halfway) == pytest.approx(2.5)


def test_a_count_measured_at_another_length_is_taken_in_proportion():
    costs = CostModel({SHORT: {1: 1.0, 4: 1.4}, MIDDLE: {1: 2.0}})

    assert costs.seconds(4, MIDDLE) == pytest.approx(2.8)
    assert costs.seconds(4, 1_000_000) == pytest.approx(2.8)


def test_a_live_round_between_two_lengths_leaves_the_ratios_as_they_are():
    costs = CostModel({SHORT: {1: 1.0, 4: 1.4}, MIDDLE: {1: 2.0}})
    between = (SHORT + 2 * MIDDLE) // 3

    costs.observe(4, between, 1.4 * costs.seconds(1, between))

    assert ratio(costs, 4) == pytest.approx(1.4)


# Live rounds.


def test_a_cell_that_nobody_measured_is_filled_by_a_live_round():
    costs = CostModel({MIDDLE: {1: 1.0, 8: 2.0}})

    costs.observe(2, MIDDLE, 1.1)

    assert ratio(costs, 2) == pytest.approx(1.1)
    assert ratio(costs, 3) == pytest.approx(2.0)


def test_a_slow_first_round_of_a_count_is_made_good_by_the_next_ones():
    costs = CostModel({MIDDLE: {1: 1.0, 8: 9.0}})

    costs.observe(2, MIDDLE, 6.0)
    rounds(costs, 2, 1.2, times=12)

    assert ratio(costs, 2) == pytest.approx(1.2, rel=0.2)


@pytest.mark.parametrize("wrong", [0.5, 2.0])
def test_a_count_that_was_measured_wrongly_is_told_from_a_machine_of_another_pace(wrong):
    readings = measured(staircase).readings()
    readings[MIDDLE][4] *= wrong
    costs = CostModel(readings)

    for rows in [1, 1, 1, *[4, 1] * 8]:
        costs.observe(rows, MIDDLE, PASS_SECONDS * staircase(rows))

    assert ratio(costs, 4) == pytest.approx(staircase(4), rel=0.1)
    assert ratio(costs, 16) == pytest.approx(staircase(16), rel=0.1)


@pytest.mark.parametrize("slow", [2.0, 10.0, 1000.0])
def test_one_slow_round_hardly_matters(slow):
    costs = measured(staircase)
    before = ratio(costs, 4)

    costs.observe(4, MIDDLE, slow * PASS_SECONDS)
    rounds(costs, 1, PASS_SECONDS, times=16)

    assert ratio(costs, 4) == pytest.approx(before, rel=0.03)
    assert costs.seconds(1, MIDDLE) == pytest.approx(PASS_SECONDS, rel=0.03)


@pytest.mark.parametrize("slower", [0.5, 2.0, 3.0])
def test_a_machine_of_another_pace_moves_all_cells_alike(slower):
    costs = measured(staircase)
    before = ratio(costs, 4)

    for _ in range(20):
        costs.observe(1, MIDDLE, slower * PASS_SECONDS)
        costs.observe(4, MIDDLE, slower * PASS_SECONDS * staircase(4))

    assert costs.seconds(1, MIDDLE) == pytest.approx(slower * PASS_SECONDS, rel=0.05)
    assert ratio(costs, 4) == pytest.approx(before, rel=0.02)
    assert ratio(costs, 16) == pytest.approx(staircase(16), rel=0.25)


def test_a_machine_of_another_pace_that_only_plain_rounds_show_keeps_the_ratios_nearly():
    costs = measured(staircase)

    rounds(costs, 1, 2 * PASS_SECONDS, times=100)

    assert costs.seconds(1, MIDDLE) == pytest.approx(2 * PASS_SECONDS, rel=0.01)
    assert ratio(costs, 4) == pytest.approx(staircase(4), rel=0.15)


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("inf"), float("nan")])
def test_a_clock_that_makes_no_sense_is_ignored(seconds):
    costs = measured(staircase)
    before = costs.readings()

    costs.observe(1, MIDDLE, seconds)

    assert costs.readings() == before


def test_nothing_is_known_before_anything_was_measured():
    costs = CostModel()
    assert costs.is_empty
    assert costs.readings() == {}

    costs.observe(1, LONG, 0.5)

    assert not costs.is_empty
    assert costs.seconds(1, 0) == 0.5


def test_readings_make_the_same_model_again():
    costs = measured(staircase)
    rounds(costs, 4, 0.03, times=30)

    again = CostModel(costs.readings())

    assert again.ratios(MIDDLE) == pytest.approx(costs.ratios(MIDDLE))
    assert again.seconds(1, MIDDLE) == pytest.approx(costs.seconds(1, MIDDLE))
