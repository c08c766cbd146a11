"""The references themselves: right rules leave the target's law alone, wrong ones are caught."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import pytest

from tests.engine import played
from tests.engine.reference import (
    block,
    committed_law,
    completed,
    expected_length,
    fixed,
    joint,
    sampled,
    sequential,
    total_variation,
    toy_law,
    truncated,
)
from tests.engine.uniforms import measured_law

P, Q = toy_law(1, 3), toy_law(2, 3)
WIDE_P, WIDE_Q = toy_law(5, 4), toy_law(6, 4)
TREE = ((0, 1, 1, 2, 0), (-1, -1, 0, 0, 1))


@pytest.mark.parametrize("widths", [[1], [1, 1], [1, 1, 1], [2], [3], [2, 1], [2, 2]], ids=str)
def test_the_sequential_rule_commits_the_targets_law(widths):
    length = len(widths) + 1

    committed = committed_law(sampled(Q, widths), sequential, P)

    assert total_variation(completed(committed, P, length), joint(P, length)) == 0


@pytest.mark.parametrize("length", [1, 2, 3])
def test_block_verification_commits_the_targets_law(length):
    committed = committed_law(sampled(Q, [1] * length), block, P)

    assert total_variation(completed(committed, P, length + 1), joint(P, length + 1)) == 0


def test_block_verification_keeps_more_than_the_sequential_rule():
    lengths = [
        expected_length(committed_law(sampled(Q, [1, 1, 1]), rule, P))
        for rule in (sequential, block)
    ]

    assert lengths[0] < lengths[1]


def test_a_deterministic_tree_commits_the_targets_law():
    committed = committed_law(fixed(*TREE), sequential, P)

    assert total_variation(completed(committed, P, 3), joint(P, 3)) == 0


@pytest.mark.parametrize(
    ("proposals", "rule"),
    [
        (played.argmax_chain_with_made_up_q(Q, 2), sequential),
        (played.argmax_chain_with_made_up_q(Q, 2), block),
        (played.chains_cut_at_doubtful_draws(Q, 2, Fraction(1, 3)), sequential),
        (fixed(*TREE), played.one_target_draw_per_path),
    ],
    ids=["made-up q", "made-up q, block", "cut by own draw", "draw per path"],
)
def test_a_wrong_rule_is_far_from_the_targets_law(proposals, rule):
    committed = committed_law(proposals, rule, P)

    assert total_variation(completed(committed, P, 3), joint(P, 3)) > 0.02


def test_siblings_judged_by_a_stale_row_are_far_from_the_targets_law():
    committed = committed_law(played.siblings_with_the_first_row(WIDE_Q, 2), sequential, WIDE_P)

    assert total_variation(completed(committed, WIDE_P, 2), joint(WIDE_P, 2)) > 0.02


def test_truncating_the_residual_only_is_far_from_the_targets_law():
    rule = played.truncated_in_the_residual_only(2)

    committed = committed_law(sampled(WIDE_Q, [1]), rule, WIDE_P)

    target = truncated(WIDE_P, 2)
    assert total_variation(completed(committed, target, 2), joint(target, 2)) > 0.02


@pytest.mark.parametrize(
    ("judge", "rule", "proposals"),
    [
        (played.play_sequential, sequential, list(sampled(Q, [2, 1]))[:4]),
        (played.play_sequential, sequential, fixed(*TREE)),
        (played.play_block, block, list(sampled(Q, [1, 1]))),
    ],
    ids=["sampled tree", "deterministic tree", "block"],
)
def test_measuring_a_rule_finds_its_law(judge, rule, proposals):
    measured = measured_law(proposals, partial(judge, p=P))

    assert total_variation(measured, _floats(committed_law(proposals, rule, P))) < 1e-12


def test_measuring_catches_a_wrong_rule():
    judge = partial(played.play_block_until_the_first_miss, p=P)

    measured = measured_law(sampled(Q, [1, 1]), judge)

    assert total_variation(completed(measured, P, 3), _floats(joint(P, 3))) > 0.01


def _floats(law):
    return {ids: float(weight) for ids, weight in law.items()}
