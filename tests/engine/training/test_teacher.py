"""What drafters are taught: the target's distribution, as far as it matters."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from engine.models.causal_lm import FINAL
from engine.training.batches import packed
from engine.training.drafted_ids import DraftedIds
from engine.training.teacher import Taught, Teacher
from tests.engine.fakes import TableLM
from tests.engine.training.made import CPU, example

VOCABULARY = 40


@pytest.fixture
def lm():
    return TableLM.random(3, vocabulary=VOCABULARY)


@pytest.fixture
def batch(lm):
    texts = (range(10), 3), ([5, 4, 3, 2, 1, 0, 7], 2)
    return packed([example(lm, ids, first) for ids, first in texts], (FINAL,), CPU)


def taught_of(batch, drafted, seed=0):
    said = Teacher(drafted, 1.0).said(range(len(batch.examples)), batch)
    return Taught.of(batch, said, drafted, torch.Generator().manual_seed(seed))


def states_behind(rows, drafted, dtype=torch.float64):
    draw = torch.Generator().manual_seed(1)
    return torch.randn(len(rows), drafted.weight.shape[1], generator=draw, dtype=dtype)


def test_where_all_ids_are_likely_it_is_cross_entropy_between_distributions(lm, batch):
    drafted = DraftedIds.of(lm, torch.tensor([0, 2, 3, 7, 9]), torch.float64, CPU)
    rows = batch.index(batch.replies)
    states = states_behind(rows, drafted).requires_grad_()
    shares = torch.rand(len(rows), generator=torch.Generator().manual_seed(2))

    (3 * taught_of(batch, drafted).cross_entropy(states, rows, shares)).backward()

    ours, states.grad = states.grad, None
    target = (batch.hidden[FINAL][rows].double() @ drafted.weight.T).softmax(-1)
    log_q = (states @ drafted.weight.T).log_softmax(-1)
    (3 * (functional.kl_div(log_q, target, reduction="none").sum(-1) @ shares.double())).backward()
    torch.testing.assert_close(ours, states.grad, atol=1e-6, rtol=1e-5)


def test_ids_that_are_drawn_stand_for_the_rest(lm, batch, monkeypatch):
    monkeypatch.setattr("engine.training.teacher.LIKELY", 2)
    monkeypatch.setattr("engine.training.teacher.DRAWN", 3)
    drafted = DraftedIds.of(lm, torch.arange(VOCABULARY), torch.float64, CPU)
    states = states_behind(batch.index(batch.replies), drafted)
    draws = [taught_of(batch, drafted, seed) for seed in range(300)]

    sums = [((states @ each.weight.T) + each.stands_for).exp().sum(dim=-1) for each in draws]

    assert max(len(each.weight) for each in draws) < VOCABULARY
    whole = (states @ drafted.weight.T).exp().sum(dim=-1)
    torch.testing.assert_close(torch.stack(sums).mean(dim=0), whole, rtol=0.1, atol=0.0)


def test_only_likely_ids_are_to_be_said_with_shares_as_the_target_has_them(lm, batch, monkeypatch):
    monkeypatch.setattr("engine.training.teacher.LIKELY", 2)
    drafted = DraftedIds.of(lm, torch.arange(VOCABULARY), torch.float64, CPU)

    said = Teacher(drafted, 1.0).said([0, 1], batch)

    states = batch.hidden[FINAL][batch.index(batch.replies)].double()
    best = (states @ drafted.weight.T).softmax(-1).topk(2)
    assert said.likely.tolist() == best.indices.tolist()
    shares = best.values / best.values.sum(dim=-1, keepdim=True)
    torch.testing.assert_close(said.probabilities.double(), shares, atol=1e-6, rtol=1e-5)


def test_below_temperature_one_what_comes_first_is_taught_more_of(lm, batch):
    drafted = DraftedIds.of(lm, torch.arange(VOCABULARY), torch.float64, CPU)

    said = Teacher(drafted, 0.5).said([0, 1], batch)

    as_it_is = Teacher(drafted, 1.0).said([0, 1], batch).probabilities
    squared = as_it_is.square() / as_it_is.square().sum(dim=-1, keepdim=True)
    torch.testing.assert_close(said.probabilities, squared, atol=1e-6, rtol=1e-5)


def test_who_says_what_the_target_says_has_nothing_to_learn(lm, batch, monkeypatch):
    monkeypatch.setattr("engine.training.teacher.LIKELY", VOCABULARY)
    drafted = DraftedIds.of(lm, torch.arange(VOCABULARY), torch.float64, CPU)
    rows = batch.index(batch.replies)
    said = Teacher(drafted, 0.5).said([0, 1], batch)
    taught = Taught.of(batch, said, drafted, torch.Generator())
    states = batch.hidden[FINAL][rows].double().requires_grad_()
    shares = torch.ones(len(rows))

    taught.cross_entropy(states, rows, shares).backward()

    assert states.grad is not None
    assert states.grad.abs().max() < 1e-5


def test_a_text_is_asked_about_once(lm, batch):
    drafted = DraftedIds.of(lm, torch.arange(VOCABULARY), torch.float64, CPU)
    teacher = Teacher(drafted, 1.0)
    before = teacher.said([7, 4], batch)
    batch.hidden[FINAL].zero_()

    again = teacher.said([7, 4], batch)

    assert again.likely.tolist() == before.likely.tolist()
    assert again.probabilities.tolist() == before.probabilities.tolist()
