"""The reference against itself, where the sources give identities, and against their shapes."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch.testing import assert_close
from transformers import Qwen3Config, Qwen3ForCausalLM

from tests.engine.heads_reference.blocks import Geometry, decoder_layer, rms_norm
from tests.engine.heads_reference.given import (
    DRAFTED,
    HIDDEN,
    IDS,
    VOCABULARY,
    inputs_of,
    nulled,
)
from tests.engine.heads_reference.reference_heads import (
    write_eagle,
    write_eagle3,
    write_medusa,
    write_speculators,
)

close_to_transformers = partial(assert_close, rtol=1e-5, atol=1e-5)
"""Its norms and rotary tables are in float32 whatever the model is in."""

ROW_HEADS: dict[str, Any] = {
    "eagle": write_eagle,
    "eagle, two layers and biases": partial(write_eagle, layers=2, qkv_bias=True, kv_heads=4),
    "official": partial(write_eagle3, draft_vocabulary=DRAFTED, rope_theta=300.0),
    "specforge": partial(write_eagle3, spelling="specforge", fc_norm=True, norm_output=True),
    "another width": partial(write_eagle3, hidden=24, head_dim=10, embeddings="own"),
    "deepspec": partial(write_eagle3, spelling="deepspec"),
    "speculators": partial(write_speculators, norm_before_residual=True, norm_before_fc=True),
    "speculators, qwen3": partial(write_speculators, layer_model="qwen3", taps=(1, 3, 4, 7)),
}


@pytest.fixture(params=ROW_HEADS.values(), ids=[*ROW_HEADS])
def head(request, tmp_path, target):
    return request.param(tmp_path, target)


def test_the_layers_are_those_of_transformers(target, seen):
    weights = {name: value.detach() for name, value in target.model.layers[0].named_parameters()}
    entered = seen.hidden_states[0][0]
    normed = rms_norm(entered, weights["input_layernorm.weight"], 1e-6)

    left = decoder_layer(
        normed,
        entered,
        {f"l.{name}": value for name, value in weights.items()},
        "l",
        Geometry(heads=4, kv_heads=2, head_dim=8, epsilon=1e-6),
        torch.arange(len(IDS)),
    )

    close_to_transformers(left, seen.hidden_states[1][0])


def test_norms_of_queries_and_keys_are_those_of_qwen3():
    config = Qwen3Config(
        vocab_size=VOCABULARY,
        hidden_size=HIDDEN,
        intermediate_size=48,
        num_hidden_layers=1,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=10,
    )
    model = Qwen3ForCausalLM(config).double().eval()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weight in model.parameters():
            noise = torch.randn(weight.shape, generator=generator, dtype=torch.float64)
            weight.copy_(1 + 0.2 * noise if weight.dim() == 1 else 0.2 * noise)
        entered = model.model.embed_tokens(IDS)
        expected = model(IDS[None]).logits[0]
    weights = {f"l.{name}": value for name, value in model.model.layers[0].named_parameters()}
    normed = rms_norm(entered, weights["l.input_layernorm.weight"], 1e-6)

    left = decoder_layer(
        normed, entered, weights, "l", Geometry(4, 2, 10, epsilon=1e-6), torch.arange(len(IDS))
    )

    final = rms_norm(left, model.model.norm.weight, 1e-6)
    close_to_transformers(final @ model.lm_head.weight.T, expected)


@pytest.mark.parametrize("own_head", [True, False])
def test_a_medusa_head_without_a_residual_is_the_projection_alone(tmp_path, target, seen, own_head):
    head = write_medusa(tmp_path, target, heads=3, layers_per_head=2, own_head=own_head)
    projections = {f"{index}.2.weight": target.lm_head.weight.detach() for index in range(3)}
    still = nulled(head, "linear.weight", "linear.bias", **(projections if own_head else {}))

    logits = still(seen.hidden_states[-1][0])

    assert_close(logits, seen.logits.expand(3, -1, -1))
    assert not torch.allclose(head(seen.hidden_states[-1][0]), logits)


def test_a_medusa_head_reads_each_state_by_itself(tmp_path, target, seen):
    head = write_medusa(tmp_path, target, heads=2, layers_per_head=1)
    states = seen.hidden_states[-1][0]

    alone = head(states[3])

    assert alone.shape == (2, VOCABULARY)
    assert_close(alone, head(states)[:, 3])


@pytest.mark.parametrize("spelling", ["pt", "safetensors"])
def test_a_medusa_folder_is_spelled_as_published(tmp_path, target, spelling):
    write_medusa(
        tmp_path, target, heads=5, layers_per_head=1, spelling=spelling, configured_heads=2
    )

    file = tmp_path / f"medusa_lm_head.{spelling}"
    stored = load_file(file) if spelling == "safetensors" else torch.load(file, weights_only=True)
    config = json.loads((tmp_path / "config.json").read_text())
    assert {name: tuple(value.shape) for name, value in stored.items()} == {
        f"{head}.{name}": shape
        for head in range(5)
        for name, shape in {
            "0.linear.weight": (HIDDEN, HIDDEN),
            "0.linear.bias": (HIDDEN,),
            "1.weight": (VOCABULARY, HIDDEN),
        }.items()
    }
    assert (config["medusa_num_heads"], config["medusa_num_layers"]) == (2, 1)
    assert len(config) == 4


def test_later_positions_change_nothing_before_them(head, seen):
    inputs, ids = inputs_of(head, seen)
    changed, others = inputs.clone(), ids.clone()
    changed[4:] += 1
    others[4:] = 7

    before, after = head(inputs, ids), head(changed, others)

    for one, other in zip(before[:2], after[:2], strict=True):
        assert_close(one[:4], other[:4], rtol=0, atol=0)
        assert not torch.allclose(one[4], other[4])


def test_only_distances_between_positions_count(head, seen):
    inputs, ids = inputs_of(head, seen)

    first, shifted = head(inputs, ids), head(inputs, ids, first_position=1)

    assert_close(first[0], shifted[0])
    assert_close(first[1], shifted[1])


def test_rows_of_a_path_go_on_from_what_was_fed_back(head, seen):
    inputs, ids = inputs_of(head, seen)
    path = torch.tensor([8, 6, 8])

    whole, shorter = head.chain(inputs, ids, path), head.chain(inputs, ids, path[:2])

    assert [len(part) for part in whole[:2]] == [3, 3]
    assert_close(whole[1][:2], shorter[1])
    assert not torch.allclose(whole[1][0], whole[1][2])


def test_a_first_drafted_row_is_a_row_with_the_fed_back_state_for_its_feature(
    tmp_path, target, seen
):
    head = write_eagle(tmp_path, target)
    inputs, ids = inputs_of(head, seen)
    fed_back, _ = head(inputs, ids)

    states, _ = head(torch.cat((inputs, fed_back[-1:])), torch.cat((ids, torch.tensor([8]))))

    assert_close(head.chain(inputs, ids, torch.tensor([8]))[0][0], states[-1])


def test_an_eagle_head_that_hands_its_feature_on_says_what_the_target_said(tmp_path, target, seen):
    head = write_eagle(tmp_path, target, bias=False)
    second_half = torch.cat((torch.zeros(HIDDEN, HIDDEN), torch.eye(HIDDEN)), 1).double()
    passing = nulled(head, "o_proj.weight", "down_proj.weight", **{"fc.weight": second_half})

    features, logits = passing(*inputs_of(head, seen))

    assert_close(features, seen.hidden_states[-1][0, :-1])
    assert_close(logits, seen.logits[0, :-1])


def test_an_eagle_head_reads_the_embedding_of_the_next_token_first(tmp_path, target, seen):
    head = write_eagle(tmp_path, target, bias=False, embeddings="absent")
    first_half = torch.cat((torch.eye(HIDDEN), torch.zeros(HIDDEN, HIDDEN)), 1).double()
    passing = nulled(head, "o_proj.weight", "down_proj.weight", **{"fc.weight": first_half})

    states, _ = passing(*inputs_of(head, seen))

    assert_close(states, seen.hidden_states[0][0, 1:])


@pytest.mark.parametrize("bias", [True, False])
def test_an_eagle_folder_is_spelled_as_published(tmp_path, target, bias):
    write_eagle(tmp_path, target, bias=bias)

    stored = torch.load(tmp_path / "pytorch_model.bin", weights_only=True)
    config = json.loads((tmp_path / "config.json").read_text())
    assert stored["fc.weight"].shape == (HIDDEN, 2 * HIDDEN)
    assert ("fc.bias" in stored) == bias == config.get("bias", True)
    assert set(stored) - {"fc.weight", "fc.bias", "embed_tokens.weight"} == {
        f"layers.0.{name}.weight"
        for name in (
            *(f"self_attn.{kind}_proj" for kind in "qkvo"),
            *(f"mlp.{kind}_proj" for kind in ("gate", "up", "down")),
            "post_attention_layernorm",
        )
    }
