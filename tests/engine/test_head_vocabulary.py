"""Heads' logits as log q: what is taken by the noise that the target shares."""

import pytest
import torch

from engine.drafters.head_vocabulary import HeadVocabulary
from engine.params import Rule, SamplingParams
from engine.sampling import Noise, choose

SIZE, PLACES = 40, 300


def found(sharpness, log_q, log_p, *, ids=None):
    """How often the head takes what the target takes, of rows at places of their own."""
    params, noise = SamplingParams(temperature=1.0), Noise(5)
    vocabulary = HeadVocabulary(SIZE, ids, sharpness)
    return sum(
        vocabulary.pick(log_q[place], place, params, noise).token
        == choose(log_p[place], place, params, noise)
        for place in range(PLACES)
    )


@pytest.fixture
def log_p():
    drawn = torch.randn(PLACES, SIZE, generator=torch.Generator().manual_seed(0))
    return (4.0 * drawn).log_softmax(-1)


def test_a_head_that_spreads_p_wider_takes_all_that_the_target_takes_once_it_is_sharpened(log_p):
    spread = (log_p / 1.5).log_softmax(-1)

    assert found(1.5, spread, log_p) == PLACES
    assert found(1.0, spread, log_p) < 0.95 * PLACES


def test_a_head_that_knows_some_ids_alone_shares_their_noise(log_p):
    ids = torch.arange(0, SIZE, 2)
    known = log_p.clone()
    known[:, 1::2] = -torch.inf

    assert found(1.0, log_p[:, ids], known, ids=ids) == PLACES


def test_paths_are_compared_by_sharpened_log_q_and_what_is_drawn_is_drawn_from_q(log_p):
    params = SamplingParams(temperature=1.0, rule=Rule.REJECTION)
    vocabulary = HeadVocabulary(SIZE, None, 1.5)

    pick = vocabulary.pick(log_p[0], 0, params, Noise(5))

    assert torch.equal(vocabulary.scores(log_p[0], 0, params, Noise(5)), 1.5 * log_p[0])
    greedy = vocabulary.scores(log_p[0], 0, SamplingParams(), Noise(5))
    assert torch.equal(greedy, 1.5 * log_p[0])
    assert pick.row is not None
    assert torch.allclose(pick.row, log_p[0].double().exp())
