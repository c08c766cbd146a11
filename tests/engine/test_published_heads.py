"""What a folder of heads is taken for, and every folder that is refused: each in one sentence."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from engine.drafters import FAMILIES
from engine.drafters.eagle_loading import load_eagle, load_eagle3
from engine.drafters.medusa_heads import load_medusa
from engine.drafters.published_heads import Kind, read_heads
from engine.errors import DrafterMismatch
from tests.engine import tiny_heads
from tests.engine.fakes import Bench, TableLM

LM = TableLM.random(3, vocabulary=6)
WIDTH = tiny_heads.width_of(LM)
LOADERS = {"medusa": load_medusa, "eagle": load_eagle, "eagle3": load_eagle3}
MADE = {
    "medusa": tiny_heads.medusa,
    "eagle": tiny_heads.eagle,
    "eagle3": tiny_heads.eagle3,
}

kinds = pytest.mark.parametrize("kind", LOADERS)


def written(folder, kind, *, drop=(), add=None, width=WIDTH, vocabulary=LM.vocabulary, **config):
    """A sound head of a kind but for what is dropped, added, or said otherwise."""
    tensors, said = MADE[kind](width, vocabulary)
    if kind == "eagle3":
        said["eagle_aux_hidden_state_layer_ids"] = [0, 1, 2]
    tensors = {name: held for name, held in tensors.items() if name not in drop}
    return tiny_heads.write(folder, tensors | (add or {}), said | config)


def refused(folder, kind="eagle", match="."):
    with pytest.raises(DrafterMismatch, match=match) as caught:
        LOADERS[kind](str(folder), LM, kind)
    text = str(caught.value)
    assert "\n" not in text
    assert len(text) < 220
    return text


def sentence_about(folder, kind):
    """Why it is refused; empty where it is not."""
    try:
        LOADERS[kind](folder, LM, kind)
    except DrafterMismatch as error:
        return str(error)
    return ""


# What is read.


@kinds
def test_a_sound_folder_is_read_and_described(tmp_path, kind):
    folder = written(tmp_path / "mine", kind, base_model_name_or_path="tiny/table")

    heads = read_heads(str(folder))

    assert heads.kind is {"medusa": Kind.MEDUSA, "eagle": Kind.EAGLE, "eagle3": Kind.EAGLE3}[kind]
    assert heads.name == "mine"
    assert heads.made_for == "tiny/table"
    assert heads.states == WIDTH
    assert heads.vocabulary == LM.vocabulary
    LOADERS[kind](str(folder), LM, kind)


@kinds
def test_one_of_the_folders_files_stands_for_the_folder(tmp_path, kind):
    folder = written(tmp_path, kind)

    assert read_heads(str(folder / "config.json")).name == tmp_path.name


def test_tensors_may_lie_in_several_files(tmp_path):
    written(tmp_path, "eagle")
    whole = load_file(tmp_path / "model.safetensors")
    (tmp_path / "model.safetensors").unlink()
    for name, held in whole.items():
        save_file({name: held}, tmp_path / f"{name}.safetensors")
    index = {"weight_map": {name: f"{name}.safetensors" for name in whole}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")

    assert read_heads(str(tmp_path)).tensors.keys() == whole.keys()


def test_medusa_heads_need_no_config(tmp_path):
    written(tmp_path, "medusa")
    (tmp_path / "config.json").unlink()

    assert len(load_medusa(str(tmp_path), LM, "medusa")) == 4


def test_medusa_heads_may_share_a_reduced_output_and_say_how_often_they_are_right(tmp_path):
    tensors, _ = tiny_heads.medusa(WIDTH, LM.vocabulary, heads=2)
    shared = torch.randn(3, WIDTH, dtype=torch.float64)
    blocks = {name: held for name, held in tensors.items() if "linear" in name}
    own = {"lm_head.weight": shared, "d2t": torch.tensor([1, 1, 3])}
    tiny_heads.write(tmp_path, blocks | own, {"rank_accuracies": [[0.5, 0.2], [0.3]]})

    heads = load_medusa(str(tmp_path), LM, "medusa")

    assert heads.logits(torch.zeros(WIDTH, dtype=torch.float64), 1).shape == (1, 3)
    assert heads.vocabulary.tokens(torch.arange(3)) == [1, 2, 5]
    assert heads.accuracies == [[0.5, 0.2], [0.3]]


@kinds
@pytest.mark.parametrize(
    ("said", "sharpness"), [(1.4, 1.4), (2, 2.0), (0, 1.0), (-1.0, 1.0), ("much", 1.0), (True, 1.0)]
)
def test_heads_may_say_how_much_their_log_q_counts_and_what_is_no_such_number_says_nothing(
    tmp_path, kind, said, sharpness
):
    written(tmp_path, kind, sharpness=said)

    assert LOADERS[kind](str(tmp_path), LM, kind).vocabulary.sharpness == sharpness


def test_an_eagle_head_may_have_a_reduced_output(tmp_path):
    own = {
        "lm_head.weight": torch.randn(2, WIDTH, dtype=torch.float64),
        "d2t": torch.tensor([0, 4]),
    }
    written(tmp_path, "eagle", add=own)

    assert load_eagle(str(tmp_path), LM, "eagle").vocabulary.tokens(torch.arange(2)) == [0, 5]


def test_padding_of_the_vocabulary_is_left_out(tmp_path):
    padded = LM.vocabulary + 40
    written(tmp_path, "eagle3", vocabulary=padded)

    vocabulary = load_eagle3(str(tmp_path), LM, "eagle3").vocabulary

    assert vocabulary.ids is not None
    assert vocabulary.ids.max() < LM.vocabulary


@pytest.mark.parametrize(
    ("said", "taps"),
    [
        ({"eagle_aux_hidden_state_layer_ids": [0, 1, 2]}, (0, 1, 2)),
        ({"eagle_config": {"eagle_aux_hidden_state_layer_ids": [0, 1, 1]}}, (1, 2, 2)),
        ({"target_layer_ids": [0, 0, 1]}, (1, 1, 2)),
        ({"eagle_config": {"use_aux_hidden_state": False}}, ()),
        ({}, None),
    ],
)
def test_layers_are_counted_as_the_writer_of_the_format_counts_them(tmp_path, said, taps):
    tensors, config = tiny_heads.eagle3(WIDTH, LM.vocabulary)
    del config["eagle_aux_hidden_state_layer_ids"]

    assert read_heads(str(tiny_heads.write(tmp_path, tensors, config | said))).taps == taps


@pytest.mark.parametrize(
    ("switch", "speculator", "expected"),
    [(None, False, False), (None, True, True), (False, True, False), (True, False, True)],
)
def test_a_missing_switch_means_what_it_means_to_whoever_runs_the_format(
    tmp_path, switch, speculator, expected
):
    tensors, config = tiny_heads.eagle3(WIDTH, LM.vocabulary)
    if speculator:
        config = {"speculators_model_type": "eagle3", "transformer_layer_config": config}
    if switch is not None:
        config["norm_before_residual"] = switch

    assert read_heads(str(tiny_heads.write(tmp_path, tensors, config))).norm_before_residual is (
        expected
    )


@pytest.mark.parametrize(
    ("rope", "first", "last"),
    [
        ({}, 1.0, 10_000 ** -(2 / 3)),
        ({"rope_theta": 500.0}, 1.0, 500 ** -(2 / 3)),
        ({"rope_parameters": {"rope_theta": 500.0, "rope_type": "default"}}, 1.0, 500 ** -(2 / 3)),
        ({"rope_scaling": {"type": "linear", "factor": 4.0}}, 0.25, 10_000 ** -(2 / 3) / 4),
        (
            {
                "rope_scaling": {
                    "rope_type": "llama3",
                    "factor": 8.0,
                    "low_freq_factor": 1.0,
                    "high_freq_factor": 4.0,
                    "original_max_position_embeddings": 64,
                }
            },
            1.0,
            10_000 ** -(2 / 3) / 8,
        ),
    ],
)
def test_positions_turn_as_the_config_says(tmp_path, rope, first, last):
    speeds = load_eagle(str(written(tmp_path, "eagle", **rope)), LM, "eagle").layer.speeds

    assert speeds[0].item() == pytest.approx(first)
    assert speeds[-1].item() == pytest.approx(last)


# Other models' heads.


@kinds
def test_a_head_for_wider_states_is_refused_with_the_model_it_is_for(tmp_path, kind):
    folder = written(tmp_path, kind, width=WIDTH + 2, _name_or_path="big/model")

    assert "big/model" in refused(folder, kind, match=rf"{WIDTH + 2} wide, and this model's")


@kinds
@pytest.mark.parametrize("vocabulary", [5, 5000])
def test_a_head_for_another_vocabulary_is_refused(tmp_path, kind, vocabulary):
    folder = written(tmp_path, kind, vocabulary=vocabulary)

    refused(folder, kind, match="another model, which it does not name: its vocabulary has 5")


def test_a_head_that_looks_into_layers_beyond_the_last_is_refused(tmp_path):
    folder = written(tmp_path, "eagle3", eagle_aux_hidden_state_layer_ids=[0, 1, 30])

    refused(folder, "eagle3", match="layers that this model, with its 3, has not")


def test_the_usual_layers_of_a_shallow_model_are_none(tmp_path):
    folder = written(tmp_path, "eagle3", eagle_aux_hidden_state_layer_ids=None)

    refused(folder, "eagle3", match="layers that this model, with its 3, has not")


def test_a_head_for_a_deeper_model_is_refused(tmp_path):
    refused(written(tmp_path, "eagle3", num_target_layers=36), "eagle3", match="has 36 layers")


@pytest.mark.parametrize(
    ("kind", "other"), [("eagle", "eagle3"), ("eagle3", "medusa"), ("medusa", "eagle")]
)
def test_a_head_of_another_kind_is_refused(tmp_path, kind, other):
    refused(written(tmp_path, kind), other, match=f"not one for the drafter {other}")


# Folders that are something else.


def test_no_folder_at_all(tmp_path):
    refused(tmp_path / "none", match="no folder at")


def test_a_folder_without_weights(tmp_path):
    refused(tmp_path, match="holds no heads: there is none of model.safetensors")


def test_a_folder_with_something_else_in_it(tmp_path):
    tiny_heads.write(tmp_path, {"vision.weight": torch.ones(2, 2)}, {})

    refused(tmp_path, match="no heads that Draftlight knows")


def test_a_whole_model_with_medusa_heads_of_its_own(tmp_path):
    tensors, config = tiny_heads.medusa(WIDTH, LM.vocabulary)
    heads = {f"medusa_head.{name}": held for name, held in tensors.items()}
    whole = heads | {"model.layers.0.mlp.up_proj.weight": torch.ones(2, 2)}

    refused(tiny_heads.write(tmp_path, whole, config), "medusa", match="whole model")


def test_a_head_that_drafts_in_parallel(tmp_path):
    folder = written(tmp_path, "eagle3", add={"mask_hidden": torch.ones(1, 2)})

    refused(folder, "eagle3", match="P-EAGLE")


@pytest.mark.parametrize("kind", ["dflash", "mtp", "peagle"])
def test_other_speculators(tmp_path, kind):
    folder = written(tmp_path, "eagle3", speculators_model_type=kind)

    refused(folder, "eagle3", match=f"of the kind “{kind}”")


@kinds
def test_a_tensor_that_nobody_knows(tmp_path, kind):
    folder = written(tmp_path, kind, add={"layers.1.extra.weight": torch.ones(2)})

    refused(folder, kind)


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"num_hidden_layers": 2}, "several layers"),
        ({"hidden_act": "gelu"}, "another activation"),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 2.0}}, "turns positions"),
        ({"rope_scaling": {"rope_type": "linear"}}, "no usable scaling"),
        ({"num_attention_heads": 0}, "no usable num_attention_heads"),
        ({"num_attention_heads": "many"}, "no usable num_attention_heads"),
        ({"num_key_value_heads": 3}, "no usable attention heads"),
        ({"head_dim": 5}, "no usable attention heads"),
        ({"hidden_size": None}, "no usable hidden_size"),
    ],
)
@pytest.mark.parametrize("kind", ["eagle", "eagle3"])
def test_a_layer_that_is_not_known_here(tmp_path, kind, said, sentence):
    refused(written(tmp_path, kind, **said), kind, match=sentence)


# Damage.


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("medusa", "0.0.linear.weight"),
        ("medusa", "1.0.linear.bias"),
        ("medusa", "0.1.weight"),
        ("medusa", "3.1.weight"),
        ("medusa", "2.0.linear.weight"),
        ("eagle3", "fc.weight"),
        ("eagle", "layers.0.mlp.down_proj.weight"),
        ("eagle", "layers.0.post_attention_layernorm.weight"),
        ("eagle3", "norm.weight"),
        ("eagle3", "lm_head.weight"),
        ("eagle3", "midlayer.input_layernorm.weight"),
        ("eagle3", "d2t"),
    ],
)
def test_a_missing_tensor_is_named(tmp_path, kind, name):
    folder = written(tmp_path, kind, drop=(name,))

    assert name.replace("midlayer", "layers.0") in refused(folder, kind)


@kinds
def test_every_tensor_must_have_the_shape_that_belongs(tmp_path, kind):
    whole, _ = MADE[kind](WIDTH, LM.vocabulary)

    for name, held in whole.items():
        if name not in ("t2d", "0.0.linear.weight"):
            longer = torch.cat([held, held[:1]])
            refused(written(tmp_path, kind, add={name: longer}), kind)


@pytest.mark.parametrize("offsets", [[0, 0, 90], [0, -1, 0], [0, 0, -9]])
def test_a_map_that_leads_nowhere_or_to_one_token_twice(tmp_path, offsets):
    folder = written(tmp_path, "eagle3", add={"d2t": torch.tensor(offsets)})

    refused(folder, "eagle3", match="its map d2t leads to tokens")


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_what_is_no_number(tmp_path, number):
    damaged = torch.full((WIDTH,), number, dtype=torch.float64)
    folder = written(tmp_path, "eagle", add={"fc.bias": damaged})

    refused(folder, match=r"fc\.bias holds what is no number")


def test_weights_in_codes(tmp_path):
    codes = torch.ones(WIDTH, 2 * WIDTH, dtype=torch.int8)

    refused(written(tmp_path, "eagle", add={"fc.weight": codes}), match="in codes")


@pytest.mark.parametrize("file", ["model.safetensors", "config.json"])
@pytest.mark.parametrize("left", [0, 5, 200])
def test_a_file_cut_short(tmp_path, file, left):
    folder = written(tmp_path, "eagle")
    held = (folder / file).read_bytes()
    (folder / file).write_bytes(held[: min(left, len(held) - 1)])

    refused(folder, match=rf"{file} in .* can't be read")


def test_a_config_that_is_no_table(tmp_path):
    folder = written(tmp_path, "eagle")
    (folder / "config.json").write_text("[]", encoding="utf-8")

    refused(folder, match=r"config\.json")


JSON = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 70),
    st.floats(-1, 9),
    st.text(max_size=3),
    st.lists(st.integers(-2, 9), max_size=3),
    st.dictionaries(
        st.sampled_from(["factor", "rope_type", "rope_theta", "verifier", "norm_before_fc"]),
        st.one_of(st.integers(0, 9), st.sampled_from(["linear", "llama3"]), st.none()),
        max_size=3,
    ),
)
FIELDS = (
    *("hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim", "vocab_size"),
    *("rms_norm_eps", "rope_theta", "rope_scaling", "rope_parameters", "hidden_act"),
    *("num_hidden_layers", "eagle_config", "eagle_aux_hidden_state_layer_ids", "norm_output"),
    *("target_layer_ids", "target_hidden_size", "num_target_layers", "speculators_model_type"),
    *("speculators_config", "transformer_layer_config", "fc_norm", "rank_accuracies"),
)


@settings(deadline=None, max_examples=300)
@given(st.sampled_from([*LOADERS]), st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=3))
def test_a_config_of_any_kind_makes_a_head_or_a_sentence(kind, said):
    with TemporaryDirectory() as folder:
        written(Path(folder), kind, **said)
        assert "\n" not in sentence_about(folder, kind)


@settings(deadline=None, max_examples=100)
@given(st.data())
def test_a_pickle_with_wrong_bytes_makes_a_head_or_a_sentence(data):
    with TemporaryDirectory() as folder:
        file = Path(folder) / "medusa_lm_head.pt"
        torch.save(tiny_heads.medusa(WIDTH, LM.vocabulary, heads=1)[0], file)
        held = bytearray(file.read_bytes())
        for _ in range(data.draw(st.integers(1, 4))):
            held[data.draw(st.integers(0, len(held) - 1))] = data.draw(st.integers(0, 255))
        file.write_bytes(held)
        assert "\n" not in sentence_about(folder, "medusa")


def test_an_index_of_missing_files(tmp_path):
    index = {"weight_map": {"fc.weight": "../elsewhere.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")

    refused(tmp_path, match=r"elsewhere\.safetensors in .* can't be read")


class Opened(Exception):
    """What a pickle must never bring about."""


def boom():
    raise Opened


class Trap:
    def __reduce__(self):
        return boom, ()


def test_a_pickle_that_holds_more_than_weights_is_not_opened(tmp_path):
    torch.save({"fc.weight": torch.ones(2, 2), "trap": Trap()}, tmp_path / "pytorch_model.bin")

    refused(tmp_path, match="could run code; it was not opened")


def test_a_bare_pickle_is_not_opened_either(tmp_path):
    (tmp_path / "medusa_lm_head.pt").write_bytes(pickle.dumps(Trap()))

    refused(tmp_path, "medusa")


@pytest.mark.parametrize("left", [0, 7, 300])
def test_a_pickle_cut_short(tmp_path, left):
    torch.save({"fc.weight": torch.ones(9, 9)}, tmp_path / "pytorch_model.bin")
    held = (tmp_path / "pytorch_model.bin").read_bytes()
    (tmp_path / "pytorch_model.bin").write_bytes(held[:left])

    refused(tmp_path)


def test_a_pickle_of_a_list(tmp_path):
    torch.save([torch.ones(2)], tmp_path / "pytorch_model.bin")

    refused(tmp_path, match="can't be read")


# The families.


@pytest.mark.parametrize("family", [f for f in FAMILIES if f.name in tiny_heads.HEADS])
def test_a_family_of_heads_wants_a_folder(family):
    assert family.needs == "a folder"
    assert family.reason(Bench(LM, LM)) is None
    with pytest.raises(DrafterMismatch, match="Choose a folder with"):
        family.build(Bench(LM, LM), None)
