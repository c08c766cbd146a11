"""Which folders the native decoder takes, which are left to transformers, and what is refused."""

from __future__ import annotations

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    BloomConfig,
    BloomForCausalLM,
    Gemma3Config,
    Gemma3ForConditionalGeneration,
    SiglipVisionConfig,
)

from engine.devices import chosen_dtype
from engine.engine import Engine
from engine.errors import ModelError
from engine.models.catalog import find_model
from engine.models.loading import load_lm
from engine.models.native.folder_source import FolderSource, knows_folder
from engine.models.native.loading import load_decoder
from engine.models.native.native_lm import NativeLM
from engine.models.transformers_lm import TransformersLM
from tests.engine import models_for_tests as tiny
from tests.engine.models.families import LLAMA3, MODELS, VOCABULARY, random_model, write

FAST = chosen_dtype("auto", "cpu") == torch.bfloat16


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A folder of a family, by name."""
    folders = {}

    def get(name):
        if name not in folders:
            folders[name] = write(tmp_path_factory.mktemp("model"), random_model(name))
        return folders[name]

    return get


@pytest.fixture
def changed(written, tmp_path):
    """A copy of a folder with other fields in its config and other tensors in its file."""

    def change(name="llama", tensors=None, without=(), **fields):
        folder = tmp_path / f"copy {len(list(tmp_path.iterdir()))}"
        shutil.copytree(written(name), folder)
        config = folder / "config.json"
        config.write_text(json.dumps(json.loads(config.read_text()) | fields))
        held = load_file(folder / "model.safetensors") | (tensors or {})
        kept = {key: tensor for key, tensor in held.items() if key not in without}
        save_file(kept, folder / "model.safetensors")
        return folder

    return change


def logits(folder, ids=(3, 1, 4, 1, 5)):
    decoder = load_decoder(FolderSource(folder))
    lm = NativeLM(decoder, vocabulary=VOCABULARY, end_ids=frozenset())
    return lm.score(lm.new_memo(), ids).logits


# What it takes.


@pytest.mark.parametrize("name", MODELS)
def test_every_family_is_known(written, name):
    assert knows_folder(written(name))


def test_a_folder_in_several_files_is_the_same_model(written, tmp_path):
    folder = write(tmp_path, random_model("llama"), max_shard_size="60KB")

    assert len(list(folder.glob("*.safetensors"))) > 1
    assert knows_folder(folder)
    assert torch.equal(logits(folder), logits(written("llama")))


def test_frequencies_that_old_files_hold_are_passed_over(written, changed):
    old = {f"model.layers.{layer}.self_attn.rotary_emb.inv_freq": torch.ones(8) for layer in (0, 2)}

    folder = changed(tensors=old)

    assert knows_folder(folder)
    assert torch.equal(logits(folder), logits(written("llama")))


def test_a_head_beside_a_tied_embedding_is_used_as_transformers_does(changed):
    head = torch.randn(VOCABULARY, 64).bfloat16()

    folder = changed(tensors={"lm_head.weight": head}, tie_word_embeddings=True)

    [row] = logits(folder)
    lm = load(folder, "float32").lm
    assert (row - lm.score(lm.new_memo(), (3, 1, 4, 1, 5)).logits[0]).norm() < 0.03 * row.norm()


@pytest.mark.parametrize("prefix", ["language_model.model.", "model.language_model."])
def test_of_a_model_for_images_too_the_language_model_is_taken(written, tmp_path, prefix):
    text = random_model("gemma3").config
    vision = SiglipVisionConfig(
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        image_size=28,
        patch_size=14,
    )
    text.tie_word_embeddings = True
    config = Gemma3Config(text_config=text.to_dict(), vision_config=vision.to_dict())
    folder = write(tmp_path, Gemma3ForConditionalGeneration(config))
    held = load_file(folder / "model.safetensors")
    ours = load_file(written("gemma3") / "model.safetensors")
    for name in list(held):
        if name.startswith("language_model.model."):
            rest = name.removeprefix("language_model.model.")
            del held[name]
            held[prefix + rest] = ours[f"model.{rest}"]
    held = {
        name if prefix.startswith("language") or name.startswith(prefix) else f"model.{name}": part
        for name, part in held.items()
    }
    save_file(held, folder / "model.safetensors", {"format": "pt"})

    assert knows_folder(folder)
    [row] = logits(folder)
    lm = load(folder, "float32").lm
    assert (row - lm.score(lm.new_memo(), (3, 1, 4, 1, 5)).logits[0]).norm() < 0.03 * row.norm()


# What is left to transformers.


YARN = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0}
LEFT = {
    "a rotation that is stretched by another rule": {"rope_parameters": YARN},
    "a stretching without its numbers": {"rope_parameters": LLAMA3 | {"high_freq_factor": 1.0}},
    "a rotation of part of a head": {"rope_parameters": {"partial_rotary_factor": 0.5}},
    "another activation": {"hidden_act": "relu"},
    "biases in the feed-forward": {"mlp_bias": True},
    "a window that llama does not have": {"sliding_window": 8},
    "another family": {"model_type": "olmo"},
    "a family that nobody knows": {"model_type": "unheard-of"},
    "weights in codes of their own": {"quantization_config": {"quant_method": "awq"}},
    "more layers than the file holds": {"num_hidden_layers": 4},
    "fewer layers than the file holds": {"num_hidden_layers": 2},
    "another width than the file's": {"intermediate_size": 128},
    "no heads at all": {"num_attention_heads": 0},
    "a name for a number": {"hidden_size": "wide"},
}


@pytest.mark.parametrize("fields", LEFT.values(), ids=LEFT)
def test_a_config_with_anything_beyond_the_family_is_left_to_transformers(changed, fields):
    assert not knows_folder(changed(**fields))


LEFT_OF_OTHERS = {
    "kinds of layers in a family of one window": (
        "mistral",
        {"layer_types": ["full_attention"] * 3},
    ),
    "soft caps": ("gemma3", {"final_logit_softcapping": 30.0}),
    "rows that see what follows": ("gemma3", {"use_bidirectional_attention": True}),
    "kinds of layers unheard of": ("qwen3", {"layer_types": ["chunked_attention"] * 3}),
}


@pytest.mark.parametrize(("name", "fields"), LEFT_OF_OTHERS.values(), ids=LEFT_OF_OTHERS)
def test_so_is_what_other_families_have_beyond_theirs(changed, name, fields):
    assert not knows_folder(changed(name, **fields))


def test_a_tensor_too_many_or_too_few_or_of_another_kind_leaves_it_to_transformers(changed):
    bias, norm = "model.layers.0.mlp.up_proj.bias", "model.layers.1.input_layernorm.weight"

    assert not knows_folder(changed(tensors={bias: torch.ones(96)}))
    assert not knows_folder(changed(without=[norm]))
    assert not knows_folder(changed(tensors={norm: torch.ones(64, dtype=torch.int8)}))
    assert not knows_folder(changed(without=["lm_head.weight"]))


def test_a_damaged_file_and_a_folder_with_an_adapter_are_left_to_transformers(changed):
    cut, lost, adapted = changed(), changed(), changed()
    weights = cut / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:5000])
    (lost / "model.safetensors").unlink()
    (lost / "model.safetensors.index.json").write_text('{"weight_map": {"a": "gone.safetensors"}}')
    (adapted / "adapter_config.json").write_text("{}")

    assert not any(map(knows_folder, (cut, lost, adapted)))


def test_a_source_of_an_unknown_model_is_refused(changed):
    folder = changed(model_type="olmo")

    with pytest.raises(ModelError, match="of a kind that the native decoder does not know"):
        FolderSource(folder)


# What a user gets.


@pytest.fixture(scope="module")
def chat_folder(tmp_path_factory):
    return tiny.write(tmp_path_factory.mktemp("chat") / "chat", tiny.llama(1), tiny.tokenizer())


def load(folder, dtype, device="cpu"):
    source = find_model(folder) if (folder / "tokenizer.json").exists() else bare(folder)
    return load_lm(source, device=device, dtype=dtype, vocabulary=VOCABULARY, end_ids=frozenset())


def bare(folder):
    tiny.tokenizer().save_pretrained(folder)
    return find_model(folder)


@pytest.mark.parametrize("dtype", ["auto", "bfloat16"])
def test_a_folder_runs_natively_where_the_machine_is_at_home_in_bfloat16(chat_folder, dtype):
    loaded = load(chat_folder, dtype)

    assert loaded.native == FAST
    assert isinstance(loaded.lm, NativeLM if FAST else TransformersLM)
    assert loaded.dtype == ("bfloat16" if FAST or dtype == "bfloat16" else "float32")


def test_any_other_dtype_of_torch_goes_through_transformers(chat_folder):
    loaded = load(chat_folder, "float32")

    assert (loaded.native, loaded.dtype) == (False, "float32")


def test_the_ids_that_end_a_turn_are_those_of_the_model_too(chat_folder, tmp_path):
    folder = tmp_path / "ends"
    shutil.copytree(chat_folder, folder)
    (folder / "generation_config.json").write_text('{"eos_token_id": [7, 9]}')

    assert load(chat_folder, "int8").lm.end_ids == {tiny.END_ID}
    assert load(folder, "int8").lm.end_ids == {7, 9}


@pytest.mark.parametrize("dtype", ["int8", "int4"])
def test_an_engine_with_packed_weights_passes_its_check(chat_folder, dtype):
    engine = Engine.load(chat_folder, device="cpu", dtype=dtype)

    assert (engine.dtype, engine.bit_exact) == (dtype, True)


def test_a_draft_model_that_cannot_be_packed_keeps_its_own_form(chat_folder, tmp_path):
    config = BloomConfig(vocab_size=tiny.VOCABULARY, hidden_size=32, n_layer=1, n_head=2)
    other = tiny.write(tmp_path / "other", BloomForCausalLM(config), tiny.tokenizer())
    engine = Engine.load(chat_folder, device="cpu", dtype="int4")

    assert isinstance(engine.draft_lm(str(other)), TransformersLM)


def test_what_cannot_be_packed_is_refused_with_the_reason(chat_folder, tmp_path, changed):
    file = tmp_path / "tiny.gguf"
    file.write_bytes(b"GGUF")

    with pytest.raises(ModelError, match=r"tiny can't .* int4, since the weights of a GGUF file"):
        load_lm(find_model(file), device="cpu", dtype="int4", vocabulary=9, end_ids=frozenset())
    with pytest.raises(ModelError, match=r"packed, since there is no product for them on mps\."):
        load_lm(find_model(file), device="mps", dtype="packed", vocabulary=9, end_ids=frozenset())
    with pytest.raises(ModelError, match=r"int8, since weights are packed for the CPU alone\."):
        load(chat_folder, "int8", device="cuda")
    with pytest.raises(ModelError, match=r"int8, since .* does not know models of its kind\."):
        load(changed(hidden_act="relu"), "int8")


def test_a_folder_has_no_codes_to_keep(written):
    with pytest.raises(ModelError, match=r"holds no codes to keep\. Choose auto"):
        load(written("llama"), "packed")
