"""The noise: its law, its independence, and its sameness for one seed."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.sampling import Noise

LARGEST_SEED = 2**63 - 1

seeds = st.integers(0, LARGEST_SEED) | st.sampled_from([0, 1, 2**32, LARGEST_SEED])
positions = st.integers(-(2**40), 2**40) | st.sampled_from([-1, 0, 1, 2**31, 2**62])


@settings(deadline=None)
@given(seed=seeds, position=positions)
def test_noise_is_a_finite_pure_function_in_single_precision(seed, position):
    noise = Noise(seed)
    first = noise.gumbel(position, None, vocabulary=300)
    noise.gumbel(position + 1, None, vocabulary=10)
    noise.uniform()

    again = noise.gumbel(position, None, vocabulary=300)

    assert first.dtype == torch.float32
    assert first.shape == (300,)
    assert torch.isfinite(first).all()
    assert torch.equal(first, again)
    assert torch.equal(first, Noise(seed).gumbel(position, None, vocabulary=300))


@settings(deadline=None)
@given(seed=seeds, position=positions, ids=st.lists(st.integers(0, 299), min_size=1, max_size=20))
def test_a_subset_of_the_ids_gets_the_same_noise(seed, position, ids):
    wanted = torch.tensor(ids)
    noise = Noise(seed)

    whole = noise.gumbel(position, None, vocabulary=300)

    assert torch.equal(noise.gumbel(position, wanted, vocabulary=300), whole[wanted])
    row = noise.gumbel(position, wanted[None], vocabulary=300)
    assert torch.equal(row, whole[wanted][None])


def test_a_larger_vocabulary_begins_with_the_same_noise():
    noise = Noise(4)

    small, large = (noise.gumbel(6, None, vocabulary=size) for size in (100, 151_936))

    assert torch.equal(large[:100], small)
    assert torch.isfinite(large).all()


LENGTH = 20_000
ONE_ID = torch.tensor([17])
STREAMS = {
    "ids": lambda: Noise(1).gumbel(1, None, vocabulary=LENGTH),
    "ids, largest seed": lambda: Noise(LARGEST_SEED).gumbel(2**31, None, vocabulary=LENGTH),
    "positions": lambda: torch.cat(
        [Noise(2).gumbel(place, ONE_ID, vocabulary=100) for place in range(LENGTH // 4)]
    ),
    "seeds": lambda: torch.cat(
        [Noise(seed).gumbel(5, ONE_ID, vocabulary=100) for seed in range(LENGTH // 4)]
    ),
}


@pytest.mark.parametrize("stream", STREAMS)
def test_noise_is_gumbel_distributed(stream):
    ordered = STREAMS[stream]().double().sort().values
    count = len(ordered)

    law = (-(-ordered).exp()).exp()

    steps = torch.arange(count + 1, dtype=torch.float64) / count
    distance = max((law - steps[:-1]).max().item(), (steps[1:] - law).max().item())
    assert distance * math.sqrt(count) < 1.95  # Kolmogorov and Smirnov, one in a thousand


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("lag", [1, 2, 64])
def test_neighbours_along_a_key_are_uncorrelated(stream, lag):
    values = STREAMS[stream]().double()

    assert abs(correlation(values[:-lag], values[lag:])) < 3.5 / math.sqrt(len(values))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((1, 1), (1, 2)),
        ((1, 1), (2, 1)),
        ((1, 2), (2, 1)),
        ((1, 1), (2, 0)),
        ((0, 0), (LARGEST_SEED, 0)),
        ((0, 5), (0, -5)),
        ((0, 0), (2**32, 0)),
        ((0, 0), (0, 2**32)),
    ],
    ids=str,
)
def test_noise_of_other_places_and_seeds_is_unrelated(left, right):
    first, second = (
        Noise(seed).gumbel(place, None, vocabulary=LENGTH).double() for seed, place in (left, right)
    )

    assert abs(correlation(first, second)) < 3.5 / math.sqrt(LENGTH)
    assert abs(correlation(first[1:], second[:-1])) < 3.5 / math.sqrt(LENGTH)


def correlation(left, right):
    return torch.corrcoef(torch.stack([left, right]))[0, 1].item()


def test_the_best_of_equal_tokens_is_spread_evenly_over_the_positions():
    noise, count, draws = Noise(9), 16, 8000
    rows = [noise.gumbel(place, None, vocabulary=count) for place in range(draws)]
    best = torch.stack(rows).argmax(-1)

    tally = torch.bincount(best, minlength=count).double()

    expected = draws / count
    assert ((tally - expected) ** 2 / expected).sum().item() < 37.7  # 15 degrees of freedom


def test_uniforms_follow_from_the_seed_and_fill_the_unit_interval():
    first, second, other = Noise(3), Noise(3), Noise(4)

    draws = [first.uniform() for _ in range(5000)]

    assert draws == [second.uniform() for _ in range(5000)]
    assert draws[:5] != [other.uniform() for _ in range(5)]
    assert min(draws) >= 0.0
    assert max(draws) < 1.0
    steps = [abs(draw - place / 5000) for place, draw in enumerate(sorted(draws))]
    assert max(steps) * math.sqrt(5000) < 1.95


def test_coupled_noise_does_not_move_the_generator():
    plain, mixed = Noise(8), Noise(8)
    mixed.gumbel(3, None, vocabulary=50)

    assert plain.uniform() == mixed.uniform()


@pytest.mark.parametrize(
    ("seed", "position", "values", "uniform"),
    [
        (0, 0, [-0.466274, -0.081169, 1.188522], 0.8444218515250481),
        (1, 1, [1.435561, 1.731145, 0.099385], 0.13436424411240122),
        (LARGEST_SEED, 100_000, [0.439154, -1.138577, 0.897645], 0.3166448820870279),
    ],
)
def test_a_seed_means_the_same_in_every_version(seed, position, values, uniform):
    noise = Noise(seed)

    gumbel = noise.gumbel(position, torch.tensor([0, 1, 151_935]), vocabulary=151_936)

    assert gumbel.tolist() == pytest.approx(values, abs=2e-6)
    assert noise.uniform() == uniform
