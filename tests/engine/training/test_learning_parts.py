"""What learners are built from: the loss, the order, the split, the target's layers, the walk."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import EngineError
from engine.models.causal_lm import FINAL
from engine.training.acceptance import acceptance
from engine.training.batches import Order, packed
from engine.training.chosen_layers import chosen_layers
from engine.training.drafted_ids import frequent_ids
from engine.training.examples import Text
from engine.training.optimiser import Optimiser
from engine.training.recipe import RECIPES, DrafterKind
from engine.training.split import is_held_out, split
from engine.training.target_layers import layer_sizes, layer_weights
from engine.training.weights import Weights
from tests.engine.fakes import TableLM
from tests.engine.models import gguf_models, native_pairs
from tests.engine.training.made import CPU, example, learner_of, loss_of

VOCABULARY = 12


@pytest.fixture
def lm():
    return TableLM.random(3, vocabulary=VOCABULARY)


# The loss.


def test_a_chain_is_not_taught_behind_a_token_that_cannot_be_drafted(lm):
    texts = ([1, 2, 3, 4, 9, 5, 6, 7], 2), ([1, 2, 3, 4, 5, 6, 7, 8], 2)
    made = [example(lm, ids, first) for ids, first in texts]
    known = [token for token in range(VOCABULARY) if token != 9]
    learner = learner_of(DrafterKind.MEDUSA, lm, made, ids=known, depths=2)

    def touched(at):
        loss_of(learner, packed(made[at : at + 1], (FINAL,), CPU), depths=2)[0].backward()
        weight = learner.weights.parameters["1.0.linear.weight"]
        found, weight.grad = weight.grad is not None and bool(weight.grad.any()), None
        return found

    assert touched(0)
    assert touched(1)
    short = [example(lm, [1, 2, 9, 9, 9, 9], 2)]
    loss, parts = loss_of(learner, packed(short, (FINAL,), CPU), depths=2)
    assert float(loss.detach()) == 0.0
    assert {*parts.values()} == {0.0}


def test_the_drafted_ids_are_the_most_frequent_in_replies_and_ends_whatever_they_are():
    texts = [Text((7, 7, 7, 7, 1, 1, 2, 2, 3), 4, 0.0), Text((8, 3, 5), 1, 0.8)]

    assert frequent_ids(texts, 4, always=[11]).tolist() == [1, 2, 3, 11]
    assert frequent_ids(texts, 99, always=[11]).tolist() == [1, 2, 3, 5, 11]


# The order, and the split.


@given(
    lengths=st.lists(st.integers(2, 60), min_size=1, max_size=40),
    rows=st.integers(10, 100),
    seed=st.integers(0, 5),
)
@settings(max_examples=50, deadline=None)
def test_every_epoch_meets_every_example_once_in_batches_that_are_not_too_large(
    lengths, rows, seed
):
    order = Order(lengths, rows, seed)
    steps, met = 0, Counter[int]()
    while sum(met.values()) < 3 * len(lengths):
        batch = order(steps)
        met.update(batch)
        assert len(batch) == 1 or sum(lengths[place] for place in batch) <= rows
        steps += 1

    assert set(met.values()) == {3}
    again = Order(lengths, rows, seed)
    assert again(steps - 1) == order(steps - 1)


def test_any_seed_that_a_reply_may_have_gives_an_order():
    order = Order([3, 4], 4, seed=2**63 - 1)

    assert sorted([*order(0), *order(1)]) == [0, 1]


def test_epochs_and_seeds_differ_in_order():
    orders = [Order([10] * 30, 10, seed) for seed in (0, 1)]
    first, second = ([order(step)[0] for step in range(60)] for order in orders)

    assert first[:30] != first[30:]
    assert first[:30] != second[:30]


@dataclass(frozen=True)
class Fact:
    prompt: str
    temperature: float
    length: int = 40
    first_reply: int = 9


def test_held_out_prompts_are_not_learnt_from_in_any_writing():
    facts = [Fact(f"{key:x}", temperature) for key in range(200) for temperature in (0.0, 0.8)]

    parts = split(facts)

    held = {facts[place].prompt for place in parts.held_out}
    assert len(parts.held_out) == len(held) == 8
    assert all(facts[place].temperature == 0 for place in parts.held_out)
    assert not held & {facts[place].prompt for place in parts.learnt}
    assert {facts[place].prompt for place in parts.drawn} == held
    assert all(facts[place].temperature > 0 for place in parts.drawn)
    assert not any(is_held_out(facts[place].prompt) for place in parts.learnt)


def test_what_is_held_out_of_many_texts_comes_from_everywhere_among_them():
    facts = [Fact(f"{key:x}", 0.0) for key in range(5000)]

    held_out = split(facts).held_out

    assert len(set(held_out)) == 48
    assert held_out[0] < 100
    assert held_out[-1] > 4800


def test_of_few_texts_the_first_greedy_one_is_held_out_and_short_replies_are_left():
    facts = [Fact("1", 0.8), Fact("2", 0.0), Fact("3", 0.0), Fact("4", 0.0, 10), Fact("2", 0.8)]

    parts = split(facts)

    assert parts.held_out == (1,)
    assert parts.learnt == (0, 2)


# The target's layers.


@pytest.mark.parametrize("model", [gguf_models.llama, gguf_models.mistral])
def test_a_draft_model_of_all_layers_of_the_target_is_the_target(model, tmp_path):
    lm = native_pairs.native(native_pairs.contents(model()).write(tmp_path / "target.gguf"))
    made = [example(lm, native_pairs.ids_of(60, seed), 5) for seed in range(3)]
    learner = learner_of(DrafterKind.DRAFT_MODEL, lm, made, layers=tuple(range(lm.num_layers)))
    batch = packed(made, learner.taps, CPU)
    parameters = learner.weights.parameters
    with torch.no_grad():  # the target's own norm, and no map
        whole = learner.weights.tensors()
        width = len(whole["model.norm.weight"])
        norm = lm.decoder.final_norm(torch.full((1, width), 1e4))[0]
        parameters["model.norm.weight"].mul_(norm / whole["model.norm.weight"])
        parameters["output_map.weight"].copy_(torch.eye(width))
        parameters["output_map.weight"].div_(learner.weights.scales["output_map.weight"])

    states = learner.states(batch).detach()

    rows = batch.hidden[FINAL][batch.index(batch.replies)].float()
    assert (states - rows).norm() < 0.03 * rows.norm()


@pytest.mark.parametrize("model", [gguf_models.qwen2, gguf_models.qwen3, gguf_models.gemma3])
def test_layers_of_another_kind_than_llamas_are_not_copied(model, tmp_path):
    lm = native_pairs.native(native_pairs.contents(model()).write(tmp_path / "target.gguf"))

    assert layer_weights(lm, 0) is None
    assert layer_sizes(lm).hidden == lm.decoder.config.hidden


def layers_of(kind, num_layers, *chosen):
    return chosen_layers(replace(RECIPES[kind], layers=chosen), num_layers)


def test_the_usual_layers_are_three_for_eagle3_the_last_among_them_and_the_first_for_a_model():
    assert layers_of(DrafterKind.EAGLE3, 30) == (2, 15, 29)
    assert layers_of(DrafterKind.EAGLE3, 3) == (0, 1, 2)
    assert layers_of(DrafterKind.DRAFT_MODEL, 30) == (0, 1, 2, 3, 4)
    assert layers_of(DrafterKind.DRAFT_MODEL, 2) == (0, 1)
    assert layers_of(DrafterKind.EAGLE, 30) == layers_of(DrafterKind.MEDUSA, 30) == ()


def test_layers_may_be_chosen_where_a_drafter_is_built_on_some():
    assert layers_of(DrafterKind.EAGLE3, 30, 28, 1) == (28, 1)
    assert layers_of(DrafterKind.DRAFT_MODEL, 3, 0, 2, 2) == (0, 2, 2)


@pytest.mark.parametrize(
    ("kind", "num_layers", "chosen", "sentence"),
    [
        ("eagle3", 3, (0, 5, 99), "There is no layer 5: this model has 3, which count from 0"),
        ("eagle3", 3, (3,), "There is no layer 3: this model has 3, which count from 0"),
        ("draft-model", 3, (-1,), "There is no layer -1: this model has 3"),
        ("eagle3", 3, (1, 1), "--layers names a layer twice"),
        ("eagle3", 2, (), "looks into 3 layers, and this model has 2. Train another kind"),
        ("eagle", 3, (1, 2), "--layers is for eagle3 and draft-model; eagle looks at nothing"),
        ("medusa", 3, (1,), "--layers is for eagle3 and draft-model; medusa looks at nothing"),
    ],
)
def test_layers_that_there_are_not_are_refused(kind, num_layers, chosen, sentence):
    with pytest.raises(EngineError) as caught:
        layers_of(DrafterKind(kind), num_layers, *chosen)

    assert sentence in str(caught.value)


# Weights, and how far chains go.


def test_weights_at_a_scale_are_used_and_stored_in_full_and_learnt_before_it():
    start, scale = {"a": torch.ones(2, 3)}, {"a": torch.tensor([[1.0, 10.0, 0.1]])}
    weights = Weights.scaled(start, scale, CPU)

    weights.tensors()["a"].sum().backward()

    assert torch.equal(weights.tensors()["a"], scale["a"].expand(2, 3))
    gradient = weights.parameters["a"].grad
    assert gradient is not None
    assert torch.equal(gradient, scale["a"].expand(2, 3))
    again = Weights.scaled({"a": torch.zeros(2, 3)}, {"a": torch.ones(1, 3)}, CPU)
    again.load_state(weights.state())
    assert torch.equal(again.tensors()["a"], weights.tensors()["a"])
    with pytest.raises(ValueError, match="other tensors"):
        again.load_state({"b": torch.zeros(1)})


@given(seed=st.integers(0, 1000))
@settings(max_examples=30, deadline=None)
def test_the_accepted_length_is_that_of_a_decoding_round_by_round(seed):
    draw = torch.Generator().manual_seed(seed)
    hits = [torch.rand(count, 4, generator=draw) < 0.6 for count in (1, 7, 30)]

    found = acceptance(hits)

    rounds = 0
    for each in hits:
        place = 0
        while place < len(each):
            depth = 0
            while depth < 3 and each[place, depth]:
                depth += 1
            place += depth + 1
            rounds += 1
    assert found.length == 38 / rounds
    alive = torch.cat(hits).long().cumprod(1).double().mean(0).tolist()
    assert found.survival == pytest.approx(alive)


def test_a_recipe_can_be_told_as_data():
    for kind, recipe in RECIPES.items():
        assert recipe.as_data()["kind"] == str(kind)


def test_a_matrix_of_a_slower_pace_moves_by_less():
    start = {"fast": torch.zeros(2, 2), "slow": torch.zeros(2, 2)}
    weights = Weights.scaled(start, {}, CPU, {"slow": 0.25})
    optimiser = Optimiser(weights, replace(RECIPES[DrafterKind.EAGLE3], rate=0.1, warm_up=0.0))
    for held in weights.parameters.values():
        held.sum().backward()

    optimiser.step(share=0.0)

    moved = {name: float(held.detach().abs().max()) for name, held in weights.parameters.items()}
    assert moved["slow"] == pytest.approx(0.25 * moved["fast"])
    assert moved["fast"] == pytest.approx(0.1, rel=1e-3)
