"""How much log q should count beside shared noise, measured on what was held out."""

import pytest
import torch

from engine.models.causal_lm import FINAL
from engine.training.batches import packed
from engine.training.drafted_ids import DraftedIds
from engine.training.examples import Example, Text
from engine.training.sharpness import best_sharpness

SIZE, LENGTH = 24, 400


@pytest.fixture
def batch():
    """A text whose states are the logits themselves."""
    states = 3.0 * torch.randn(LENGTH - 1, SIZE, generator=torch.Generator().manual_seed(1))
    ids = tuple(row % SIZE for row in range(LENGTH))
    text = Example.of(Text(ids, 5, 0.0), {FINAL: states.bfloat16()})
    return packed([text], (FINAL,), torch.device("cpu"))


@pytest.fixture
def drafted():
    every = torch.arange(SIZE)
    return DraftedIds(every, torch.eye(SIZE), every)


def following(batch, depth):
    """What the target's states are behind the chains of a depth."""
    return batch.hidden[FINAL][batch.index(batch.chains(depth)) + depth + 1].float()


@pytest.mark.parametrize(("spread", "best"), [(1.0, 1.0), (1.4, 1.4), (1.8, 1.8)])
def test_what_spreads_p_wider_is_to_be_sharpened_as_much(batch, drafted, spread, best):
    guesses = [following(batch, depth) / spread for depth in range(3)]

    assert best_sharpness([(batch, guesses)], drafted) == best


def test_without_rows_nothing_is_known(drafted):
    assert best_sharpness([], drafted) is None
