"""Processors against a plain reference, and one token drawn from one row."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from engine.params import Rule, SamplingParams
from engine.sampling import Noise, choose, processed_log_probabilities
from tests.engine.processors import reference_log_probabilities
from tests.engine.reference import toy_law
from tests.engine.uniforms import UniformLaw


def random_logits(rows, vocabulary, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return 3 * torch.randn(rows, vocabulary, generator=generator, dtype=torch.float64)


CHOICES = {
    "greedy": {"temperature": 0.0},
    "greedy, penalty": {"temperature": 0.0, "repetition_penalty": 1.3},
    "greedy, filters": {"temperature": 0.0, "top_k": 2, "top_p": 0.5, "min_p": 0.5},
    "plain": {"temperature": 1.0},
    "hot": {"temperature": 1.7},
    "cold": {"temperature": 0.01},
    "top-k": {"temperature": 1.0, "top_k": 3},
    "top-k above the vocabulary": {"temperature": 1.0, "top_k": 1000},
    "top-p": {"temperature": 1.0, "top_p": 0.8},
    "tiny top-p": {"temperature": 1.0, "top_p": 1e-6},
    "min-p": {"temperature": 1.0, "min_p": 0.1},
    "largest min-p": {"temperature": 1.0, "min_p": 1.0},
    "penalty": {"temperature": 1.0, "repetition_penalty": 1.5},
    "reward": {"temperature": 1.0, "repetition_penalty": 0.7},
    "all": {
        "temperature": 0.8,
        "top_k": 9,
        "top_p": 0.9,
        "min_p": 0.05,
        "repetition_penalty": 1.2,
    },
}


@pytest.mark.parametrize("choice", CHOICES)
def test_processors_do_what_their_definitions_say(choice):
    params = SamplingParams(**CHOICES[choice])
    logits = random_logits(4, 20)
    prefixes = [(1, 2, 3), (1, 2, 3, 3, 3, 19), (0,), (5, 4)]

    processed = processed_log_probabilities(logits, prefixes, params)

    for row, scores, prefix in zip(processed, logits, prefixes, strict=True):
        expected = reference_log_probabilities(scores.tolist(), prefix, params)
        assert row.tolist() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("choice", CHOICES)
def test_a_row_does_not_depend_on_the_rows_beside_it(choice):
    params = SamplingParams(**CHOICES[choice])
    logits = random_logits(5, 20, seed=1)
    prefixes = [tuple(range(length)) for length in (4, 1, 9, 2, 6)]

    together = processed_log_probabilities(logits, prefixes, params)

    for row, scores, prefix in zip(together, logits, prefixes, strict=True):
        [alone] = processed_log_probabilities(scores[None], [prefix], params)
        assert torch.equal(row, alone)


@pytest.mark.parametrize("choice", CHOICES)
def test_processing_leaves_the_logits_alone(choice):
    logits = random_logits(2, 20)
    before = logits.clone()

    processed_log_probabilities(logits, [(1,), (2, 3)], SamplingParams(**CHOICES[choice]))

    assert torch.equal(logits, before)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("choice", ["greedy", "plain", "all"])
def test_rows_are_normalised_in_at_least_single_precision(dtype, choice):
    logits = random_logits(3, 50).to(dtype)

    processed = processed_log_probabilities(
        logits, [(1,), (2, 3), (4,)], SamplingParams(**CHOICES[choice])
    )

    assert processed.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    assert processed.exp().sum(-1).tolist() == pytest.approx([1.0] * 3, abs=1e-5)


def test_equal_logits_all_survive_top_k():
    logits = torch.tensor([[1.0, 2.0, 2.0, 2.0, 0.0]])

    [row] = processed_log_probabilities(logits, [(0,)], SamplingParams(temperature=1.0, top_k=2))

    assert row.exp().tolist() == pytest.approx([0, 1 / 3, 1 / 3, 1 / 3, 0])


def test_an_impossible_token_stays_impossible():
    logits = torch.tensor([[1.0, -math.inf, 2.0, -math.inf]])
    params = SamplingParams(**CHOICES["all"])

    [row] = processed_log_probabilities(logits, [(1, 2)], params)

    assert row[1] == row[3] == -math.inf
    assert row.exp().sum().item() == pytest.approx(1.0)


# One token from one row.


def test_a_rejection_draw_follows_the_row_exactly():
    row = toy_law(3, 6, impossible=(0, 5))(())
    log_p = torch.tensor([float(chance) for chance in row], dtype=torch.float64).log()
    params = SamplingParams(temperature=1.0, rule=Rule.REJECTION)

    law = UniformLaw(lambda noise: choose(log_p, 3, params, noise)).measured()

    assert set(law) == {1, 2, 3, 4}
    for token, chance in law.items():
        assert chance == pytest.approx(float(row[token]), abs=1e-12)


@pytest.mark.parametrize("position", [0, 9])
def test_a_coupled_choice_is_the_best_of_log_p_and_the_positions_noise(position):
    log_p = random_logits(1, 30)[0].log_softmax(-1)
    params = SamplingParams(temperature=1.0, rule=Rule.COUPLED)

    chosen = [choose(log_p, position, params, Noise(seed)) for seed in range(50)]

    noises = [Noise(seed).gumbel(position, None, vocabulary=30) for seed in range(50)]
    assert chosen == [int((log_p + noise).argmax()) for noise in noises]
    assert len(set(chosen)) > 3


@pytest.mark.parametrize(
    ("name", "whole"),
    [("temperature", 1), ("top_p", 1), ("min_p", 1), ("min_p", 0), ("repetition_penalty", 2)],
)
def test_a_whole_number_does_as_well_as_the_float_it_equals(name, whole):
    logits, prefixes = random_logits(1, 20), [(1, 2)]
    plain = SamplingParams(temperature=1.0)

    given, expected = (
        processed_log_probabilities(logits, prefixes, replace(plain, **{name: value}))
        for value in (whole, float(whole))
    )

    assert torch.equal(given, expected)


# Colder than any number can be divided by.


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("rule", Rule)
@pytest.mark.parametrize("temperature", [5e-324, 1e-45, 1e-38, 1e-31, 1e-30, 1e-29])
def test_the_colder_the_surer_and_never_overflowing(temperature, rule, dtype):
    logits = random_logits(4, 20).to(dtype)
    params = SamplingParams(temperature=temperature, top_p=0.9, min_p=0.05, rule=rule)

    rows = processed_log_probabilities(logits, [(1,)] * 4, params)

    chosen = [choose(row, 3, params, Noise(seed)) for seed in range(5) for row in rows]
    assert chosen == logits.argmax(-1).tolist() * 5
    assert not rows.isnan().any()
    assert rows.exp().sum(-1).tolist() == pytest.approx([1.0] * 4, abs=1e-5)
