"""Folders for transformers whose weights are not what their config speaks of: one sentence each."""

from __future__ import annotations

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import GPT2Config, GPT2LMHeadModel, MixtralConfig, MixtralForCausalLM

from engine.engine import Engine
from engine.errors import ModelError
from engine.models.catalog import find_model
from engine.models.transformers_loading import load_model
from tests.engine import models_for_tests as tiny


def gpt2():
    return GPT2LMHeadModel(
        GPT2Config(
            vocab_size=96, n_embd=32, n_layer=3, n_head=2, bos_token_id=None, eos_token_id=None
        )
    )


def mixtral():
    return MixtralForCausalLM(
        MixtralConfig(
            vocab_size=96,
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=3,
            num_attention_heads=4,
            num_key_value_heads=2,
            num_local_experts=4,
            bos_token_id=None,
            eos_token_id=None,
        )
    )


MODELS = {"llama": lambda: tiny.llama(3), "gpt2": gpt2, "mixtral": mixtral}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A folder of each model, by name."""
    root = tmp_path_factory.mktemp("models")
    return {
        name: tiny.write(root / name, make(), tiny.tokenizer()) for name, make in MODELS.items()
    }


@pytest.fixture
def changed(written, tmp_path):
    """A copy of a folder with other fields in its config and more tensors in its file."""

    def change(name="llama", tensors=None, **fields):
        folder = tmp_path / name
        shutil.copytree(written[name], folder)
        config = folder / "config.json"
        config.write_text(json.dumps(json.loads(config.read_text()) | fields))
        held = load_file(folder / "model.safetensors") | (tensors or {})
        save_file(held, folder / "model.safetensors", {"format": "pt"})
        return folder

    return change


def load(folder):
    return load_model(find_model(folder), device="cpu", dtype=torch.float32)


@pytest.mark.parametrize("name", MODELS)
def test_a_sound_folder_loads(written, name):
    assert load(written[name])


@pytest.mark.parametrize(
    ("name", "field"),
    [("llama", "num_hidden_layers"), ("gpt2", "n_layer"), ("mixtral", "num_hidden_layers")],
)
def test_fewer_layers_than_the_files_hold_are_refused(changed, name, field):
    folder = changed(name, **{field: 2})

    with pytest.raises(ModelError, match=rf"{name} .* has no use for its tensor \w+\.\w+\.2\."):
        load(folder)


def test_they_are_refused_at_the_front_door_too(changed):
    folder = changed(num_hidden_layers=2)

    with pytest.raises(ModelError, match=r"no use for its tensor model\.layers\.2\."):
        Engine.load(folder, device="cpu")


def test_a_bias_that_the_config_says_nothing_of_is_refused(changed):
    folder = changed(tensors={"model.layers.1.self_attn.q_proj.bias": torch.ones(32)})

    with pytest.raises(ModelError, match=r"no use for its tensor model\.layers\.1\..*q_proj\.bias"):
        load(folder)


def test_what_is_of_no_part_of_the_model_does_no_harm(changed):
    more = {
        "score.weight": torch.ones(1, 32),
        "model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(4),
    }

    assert load(changed(tensors=more))


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"intermediate_size": 64}, r"down_proj\.weight is 32 × 48 in place of 32 × 64\. Get"),
        ({"vocab_size": 100}, r"lm_head\.weight is 271 × 32 in place of 100 × 32\. Get"),
    ],
)
def test_weights_of_other_shapes_are_named_in_our_own_words(changed, fields, sentence):
    with pytest.raises(ModelError, match=sentence):
        load(changed(**fields))


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"num_hidden_layers": "three"}, "'num_hidden_layers' expected int"),
        ({"num_attention_heads": 7}, "not a multiple of the number of attention heads"),
    ],
)
def test_of_a_complaint_the_line_that_says_something_is_passed_on(changed, fields, sentence):
    with pytest.raises(ModelError, match=sentence):
        load(changed(**fields))
