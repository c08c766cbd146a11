"""EAGLE-3's reference: taps, switches, reduced vocabularies, and the four spellings."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file
from torch.testing import assert_close

from tests.engine import models_for_tests as tiny
from tests.engine.heads_reference.blocks import rms_norm
from tests.engine.heads_reference.given import (
    DRAFTED,
    HIDDEN,
    IDS,
    VOCABULARY,
    inputs_of,
    nulled,
)
from tests.engine.heads_reference.reference_heads import write_eagle3, write_speculators


def test_taps_are_what_enters_a_low_a_middle_and_a_high_layer(tmp_path, target, seen):
    entered = []
    hooks = [
        target.model.layers[index].register_forward_pre_hook(
            lambda _module, inputs: entered.append(inputs[0][0])
        )
        for index in (2, 4, 5)
    ]
    head = write_eagle3(tmp_path, target)

    with torch.no_grad():
        target(IDS[None])

    for hook in hooks:
        hook.remove()
    assert_close(head.taps_of(seen.hidden_states), torch.cat(entered, -1))


@pytest.mark.parametrize("norm_before_residual", [True, False])
def test_an_idle_layer_hands_on_its_residual(tmp_path, target, seen, norm_before_residual):
    head = write_speculators(tmp_path, target, norm_before_residual=norm_before_residual)
    idle = nulled(head, "o_proj.weight", "down_proj.weight")
    inputs, ids = inputs_of(head, seen)
    state = inputs @ head.weights["fc.weight"].T

    output = idle(inputs, ids)

    normed = rms_norm(state, head.weights["layers.0.hidden_norm.weight"], 1e-5)
    assert_close(output.fed_back, normed if norm_before_residual else state)


def test_attention_reads_the_embedding_of_the_next_token_first(tmp_path, target, seen):
    head = write_eagle3(tmp_path, target, kv_heads=4)
    first_half = torch.cat((torch.eye(HIDDEN), torch.zeros(HIDDEN, HIDDEN)), 1).double()
    copying = nulled(
        head,
        "down_proj.weight",
        **{
            "midlayer.self_attn.v_proj.weight": first_half,
            "midlayer.self_attn.o_proj.weight": torch.eye(HIDDEN).double(),
        },
    )
    inputs, ids = inputs_of(head, seen)

    output = copying(inputs[:1], ids[:1])

    embedded = target.model.embed_tokens.weight.detach()[ids[:1]]
    normed = rms_norm(embedded, head.weights["midlayer.input_layernorm.weight"], 1e-5)
    assert_close(output.fed_back, inputs[:1] @ head.weights["fc.weight"].T + normed)


@pytest.mark.parametrize("norm_output", [True, False])
def test_a_drafted_row_has_the_fed_back_state_in_place_of_fused_taps(
    tmp_path, target, seen, norm_output
):
    head = write_speculators(tmp_path, target, norm_output=norm_output)
    inputs, ids = inputs_of(head, seen)
    drafted = torch.tensor([8])
    fed_back = head(inputs, ids).fed_back

    longer = head.rows(torch.cat((head.fused(inputs), fed_back[-1:])), torch.cat((ids, drafted)))

    assert_close(head.chain(inputs, ids, drafted).logits[0], longer.logits[-1])


def test_a_normed_output_changes_what_is_fed_back_and_not_the_first_logits(tmp_path, target, seen):
    plain = write_speculators(tmp_path, target)
    normed = write_speculators(tmp_path, target, norm_output=True)
    inputs, ids = inputs_of(plain, seen)

    before, after = plain(inputs, ids), normed(inputs, ids)

    assert_close(before.logits, after.logits)
    assert_close(after.fed_back @ plain.weights["lm_head.weight"].T, after.logits)
    assert not torch.allclose(before.fed_back, after.fed_back)


def test_norms_before_fusing_are_one_of_all_taps_or_one_of_each(tmp_path, target, seen):
    joined = write_speculators(tmp_path, target, norm_before_fc=True)
    each = write_speculators(tmp_path, target, fc_norm=True)
    taps = inputs_of(joined, seen)[0]
    scaled = taps * torch.tensor([2.0, 3.0, 4.0]).repeat_interleave(HIDDEN)

    assert_close(joined.fused(taps), joined.fused(2 * taps), rtol=1e-3, atol=1e-3)
    assert_close(each.fused(taps), each.fused(scaled), rtol=1e-3, atol=1e-3)
    assert not torch.allclose(joined.fused(taps), joined.fused(scaled), rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("spelling", ["official", "specforge"])
def test_draft_ids_move_by_their_offsets_to_the_ids_the_mask_has(tmp_path, target, seen, spelling):
    head = write_eagle3(tmp_path, target, spelling=spelling, draft_vocabulary=DRAFTED)

    output = head(*inputs_of(head, seen))

    assert output.logits.shape == (len(IDS) - 1, DRAFTED)
    assert output.target_ids.tolist() == head.weights["t2d"].nonzero()[:, 0].tolist()
    assert output.target_ids.tolist() != list(range(DRAFTED))


def test_a_whole_vocabulary_has_no_offsets_or_offsets_of_zero(tmp_path, target):
    official = write_eagle3(tmp_path / "a", target)
    forge = write_eagle3(tmp_path / "b", target, spelling="specforge")

    assert not {"d2t", "t2d"} & set(official.weights)
    assert not forge.weights["d2t"].any()
    assert forge.weights["t2d"].all()
    assert official.target_ids().tolist() == forge.target_ids().tolist() == [*range(VOCABULARY)]


def test_speculators_names_change_nothing(tmp_path, target, seen):
    official = write_eagle3(tmp_path / "a", target, draft_vocabulary=DRAFTED)
    renamed = write_speculators(tmp_path / "b", target, draft_vocabulary=DRAFTED)
    weights = {
        name.replace("midlayer.", "layers.0."): value for name, value in official.weights.items()
    }

    output = replace(renamed, weights=weights, embeddings=official.embeddings)(
        *inputs_of(renamed, seen)
    )

    assert_close(output.logits, official(*inputs_of(official, seen)).logits)


@pytest.mark.parametrize(
    ("spelling", "layer", "extras"),
    [
        ("official", "midlayer", {"d2t": (DRAFTED,), "t2d": (VOCABULARY,)}),
        ("specforge", "midlayer", {"d2t": (DRAFTED,), "t2d": (VOCABULARY,)}),
        ("deepspec", "layers.0", {"embed_tokens.weight": (VOCABULARY, HIDDEN)}),
    ],
)
def test_an_eagle3_folder_has_the_names_and_shapes_published(
    tmp_path, target, spelling, layer, extras
):
    deepspec = spelling == "deepspec"
    drafted = None if deepspec else DRAFTED
    write_eagle3(tmp_path, target, spelling=spelling, draft_vocabulary=drafted)

    if spelling == "official":
        stored = torch.load(tmp_path / "pytorch_model.bin", weights_only=True)
    else:
        stored = load_file(tmp_path / "model.safetensors")

    norms = ("hidden_norm", "input_layernorm", "post_attention_layernorm")
    expected = {
        "fc.weight": (HIDDEN, (5 if deepspec else 3) * HIDDEN),
        "norm.weight": (HIDDEN,),
        "lm_head.weight": (VOCABULARY if deepspec else DRAFTED, HIDDEN),
        f"{layer}.self_attn.q_proj.weight": (HIDDEN, 2 * HIDDEN),
        f"{layer}.self_attn.k_proj.weight": (HIDDEN // 2, 2 * HIDDEN),
        f"{layer}.self_attn.v_proj.weight": (HIDDEN // 2, 2 * HIDDEN),
        f"{layer}.self_attn.o_proj.weight": (HIDDEN, HIDDEN),
        f"{layer}.mlp.gate_proj.weight": (48, HIDDEN),
        f"{layer}.mlp.up_proj.weight": (48, HIDDEN),
        f"{layer}.mlp.down_proj.weight": (HIDDEN, 48),
        **{f"{layer}.{name}.weight": (HIDDEN,) for name in norms},
        **{f"{layer}.self_attn.{kind}_norm.weight": (8,) for kind in ("qk" if deepspec else "")},
        **extras,
    }
    assert {name: tuple(value.shape) for name, value in stored.items()} == expected
    if not deepspec:
        assert (stored["d2t"].dtype, stored["t2d"].dtype) == (torch.int64, torch.bool)


def test_each_config_counts_the_same_taps_in_its_own_way(tmp_path, target):
    taps = (1, 3, 4, 6, 7)

    def config_of(name, write, **options):
        write(tmp_path / name, target, taps=taps, **options)
        return json.loads((tmp_path / name / "config.json").read_text())

    forge = config_of("forge", write_eagle3, spelling="specforge")["eagle_config"]
    deep = config_of("deep", write_eagle3, spelling="deepspec")
    other = config_of("other", write_speculators)

    assert forge["eagle_aux_hidden_state_layer_ids"] == [0, 2, 3, 5, 6]
    assert deep["target_layer_ids"] == [0, 2, 3, 5, 6]
    assert other["eagle_aux_hidden_state_layer_ids"] == [1, 3, 4, 6, 7]


def test_deepspec_spreads_five_taps_as_its_own_configs_do(tmp_path):
    target = tiny.llama(1, vocabulary=VOCABULARY, layers=36)

    write_eagle3(tmp_path, target, spelling="deepspec")

    config = json.loads((tmp_path / "config.json").read_text())
    assert config["target_layer_ids"] == [1, 9, 17, 25, 33]


def test_a_target_too_shallow_for_the_default_taps_is_refused(tmp_path):
    target = tiny.llama(1, vocabulary=VOCABULARY, layers=4)

    with pytest.raises(ValueError, match="no 3 taps"):
        write_eagle3(tmp_path, target)
