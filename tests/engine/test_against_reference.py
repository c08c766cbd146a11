"""Heads read from every published format, against what an independent computation says."""

from __future__ import annotations

import pytest
import torch

from engine.drafters.eagle_loading import load_eagle, load_eagle3
from engine.drafters.eagle_memory import EagleMemory
from engine.drafters.medusa_heads import load_medusa
from engine.models.causal_lm import FINAL
from engine.models.transformers_lm import TransformersLM
from tests.engine import models_for_tests as tiny
from tests.engine.heads_reference.reference_heads import (
    write_eagle,
    write_eagle3,
    write_medusa,
    write_speculators,
)

IDS = [3, 1, 4, 1, 5, 9, 2, 6]
DRAFTED = [7, 8, 2]
VOCABULARY = 50


@pytest.fixture(scope="module")
def model():
    return tiny.llama(1, vocabulary=VOCABULARY, layers=8)


@pytest.fixture(scope="module")
def lm(model):
    return TransformersLM(model)


@pytest.fixture(scope="module")
def states(model):
    """The target's states for IDS, as transformers gives them."""
    with torch.no_grad():
        return model(torch.tensor([IDS]), output_hidden_states=True).hidden_states


def same(ours, theirs):
    """The files are in float32, so the two read the very same numbers."""
    torch.testing.assert_close(ours.double(), theirs, rtol=1e-6, atol=1e-6)


# Medusa.


@pytest.mark.parametrize("spelling", ["pt", "safetensors"])
@pytest.mark.parametrize("own_head", [True, False])
@pytest.mark.parametrize("blocks", [1, 2])
def test_medusa_heads_say_what_the_reference_says(
    tmp_path, model, lm, states, spelling, own_head, blocks
):
    reference = write_medusa(
        tmp_path,
        model,
        heads=5,
        layers_per_head=blocks,
        spelling=spelling,
        own_head=own_head,
        configured_heads=2,
    )

    heads = load_medusa(str(tmp_path), lm, "medusa")

    assert len(heads) == 5
    expected = reference(states[-1][0, -1])
    for head in range(5):
        same(heads.logits(states[-1][0, -1], head)[0], expected[head])


# EAGLE.


def chain_of(head, lm):
    """What a head says after IDS and along DRAFTED, by way of the drafter's own memory."""
    memory = EagleMemory(head, lm)
    guess = memory.catch_up(IDS)
    logits, fed_back = [head.logits(guess)], [guess]
    for place, token in enumerate(DRAFTED):
        row = len(IDS) - 1 + place
        guess = head.step(guess, [token], [row], memory.cache, row)
        fed_back.append(guess)
        logits.append(head.logits(guess))
    return torch.cat(fed_back), torch.cat(logits)


EAGLE_FILES = {
    "as published": {},
    "without a bias": {"bias": False},
    "with biases on queries, keys and values": {"qkv_bias": True},
    "without embeddings": {"embeddings": "absent"},
    "with other embeddings": {"embeddings": "own"},
    "safetensors": {"file": "model.safetensors"},
    "another rotation": {"rope_theta": 500_000.0},
    "as many keys as queries": {"kv_heads": 4},
}


@pytest.mark.parametrize("options", EAGLE_FILES.values(), ids=EAGLE_FILES.keys())
def test_an_eagle_head_says_what_the_reference_says(tmp_path, model, lm, states, options):
    reference = write_eagle(tmp_path, model, **options)

    fed_back, logits = chain_of(load_eagle(str(tmp_path), lm, "eagle"), lm)

    features, following = states[-1][0, :-1], torch.tensor(IDS[1:])
    last, last_logits = reference(features, following)
    drafted, drafted_logits = reference.chain(features, following, torch.tensor(DRAFTED))
    same(fed_back, torch.cat([last[-1:], drafted]))
    same(logits, torch.cat([last_logits[-1:], drafted_logits]))


EAGLE3_FILES = {
    "official": (write_eagle3, {}),
    "official, reduced": (write_eagle3, {"draft_vocabulary": 20}),
    "official, narrower": (write_eagle3, {"hidden": 24, "head_dim": 6, "embeddings": "own"}),
    "official, own embeddings": (write_eagle3, {"embeddings": "own", "kv_heads": 4}),
    "SpecForge": (write_eagle3, {"spelling": "specforge", "draft_vocabulary": 20}),
    "SpecForge, whole": (write_eagle3, {"spelling": "specforge", "rope_theta": 1_000_000.0}),
    "SpecForge, taps": (write_eagle3, {"spelling": "specforge", "taps": (1, 3, 7)}),
    "SpecForge, 3.1": (
        write_eagle3,
        {"spelling": "specforge", "fc_norm": True, "norm_output": True, "head_dim": 12},
    ),
    "DeepSpec": (write_eagle3, {"spelling": "deepspec"}),
    "DeepSpec, taps": (write_eagle3, {"spelling": "deepspec", "taps": (1, 2, 4, 5, 7)}),
    "speculators": (write_speculators, {"draft_vocabulary": 20}),
    "speculators, norm before residual": (write_speculators, {"norm_before_residual": True}),
    "speculators, norm before fc": (write_speculators, {"norm_before_fc": True}),
    "speculators, norm of each": (write_speculators, {"fc_norm": True, "norm_output": True}),
    "speculators, taps": (write_speculators, {"taps": (1, 4, 7), "embeddings": "absent"}),
    "speculators, Qwen3": (write_speculators, {"layer_model": "qwen3", "head_dim": 12}),
}


@pytest.mark.parametrize(("written", "options"), EAGLE3_FILES.values(), ids=EAGLE3_FILES.keys())
def test_an_eagle3_head_says_what_the_reference_says(tmp_path, model, lm, states, written, options):
    reference = written(tmp_path, model, **options)

    head = load_eagle3(str(tmp_path), lm, "eagle3")
    fed_back, logits = chain_of(head, lm)

    taps, following = reference.taps_of(states)[:-1], torch.tensor(IDS[1:])
    last = reference(taps, following)
    drafted = reference.chain(taps, following, torch.tensor(DRAFTED))
    same(fed_back, torch.cat([last.fed_back[-1:], drafted.fed_back]))
    same(logits, torch.cat([last.logits[-1:], drafted.logits]))
    assert head.vocabulary.tokens(torch.arange(logits.shape[1])) == last.target_ids.tolist()


def test_the_final_state_is_the_one_that_the_targets_head_takes(lm, states):
    hidden = lm.score(lm.new_memo(), IDS, taps=(FINAL,)).hidden[FINAL]

    same(hidden[0], states[-1][0, -1])
