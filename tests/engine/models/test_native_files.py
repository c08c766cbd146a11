"""GGUF files of every block type, and as converters of other times wrote them."""

from __future__ import annotations

import pytest

from engine.models.gguf import GgufFile
from engine.models.native.gguf_source import GgufSource, knows
from tests.engine.models.gguf_models import FAMILIES, gemma3, llama, phi3, qwen2
from tests.engine.models.gguf_writer import contents
from tests.engine.models.native_pairs import distance, error, ids_of, native, pair, reference


def rewritten(path, model, *, without=(), values=None):
    """How far the native decoder of a file with keys left out or added is from the model."""
    written = contents(model)
    for key in without:
        del written.values[f"{written.architecture}.{key}"]
    for key, value in (values or {}).items():
        written.values[f"{written.architecture}.{key}"] = value
    return distance(model, native(written.write(path)))


# Block types.


@pytest.mark.parametrize("family", ["llama", "phi3", "gemma3"])
@pytest.mark.parametrize("kind", ["F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1"])
def test_matrices_of_every_type_of_32_columns(tmp_path, family, kind):
    assert distance(*pair(tmp_path / "model.gguf", FAMILIES[family](), kind)) < 0.03


@pytest.mark.parametrize("kind", ["Q4_K", "Q5_K", "Q6_K"])
@pytest.mark.parametrize("family", [llama, qwen2, phi3])
def test_matrices_of_every_type_of_256_columns(tmp_path, family, kind):
    wide = family(hidden_size=256, intermediate_size=256, num_hidden_layers=2)

    assert distance(*pair(tmp_path / "wide.gguf", wide, kind)) < 0.03


def as_q4_k_m(name):
    """What llama.cpp's usual mixture has: more bits where they matter most."""
    return "Q6_K" if any(part in name for part in ("attn_v", "ffn_down", "token_embd")) else "Q4_K"


def all_mixed(name):
    """Another type for each of a layer's projections."""
    kinds = {"attn_q": "Q4_0", "attn_k": "F16", "attn_v": "Q8_0", "ffn_gate": "Q5_1"}
    return next((kind for part, kind in kinds.items() if part in name), "Q4_1")


@pytest.mark.parametrize("mixture", [as_q4_k_m, all_mixed])
@pytest.mark.parametrize("family", [llama, qwen2])
def test_types_may_differ_between_the_parts_of_one_projection(tmp_path, family, mixture):
    wide = family(hidden_size=256, intermediate_size=256, num_hidden_layers=2)
    model, lm = pair(tmp_path / "mixed.gguf", wide, mixture)
    ids, memo = ids_of(300), lm.new_memo()

    for _ in lm.read(memo, ids):
        pass
    read = lm.score(memo, ids).logits

    assert all(memo.by_prompt)
    assert error(read, reference(model, ids)[-1:]) < 0.03
    assert distance(model, lm) < 0.03


# Other converters.


def test_gemmas_sliding_layers_turn_by_the_base_of_old_where_none_is_given(tmp_path):
    assert rewritten(tmp_path / "old.gguf", gemma3(), without=["rope.freq_base_swa"]) < 0.03


def test_gemmas_sliding_layers_turn_by_the_base_that_is_given(tmp_path):
    assert rewritten(tmp_path / "new.gguf", gemma3(local_base=100.0)) < 0.03


def test_gemma_without_a_window_has_full_layers_alone(tmp_path):
    full = gemma3(layer_types=["full_attention"] * 7)

    assert rewritten(tmp_path / "full.gguf", full, without=["attention.sliding_window"]) < 0.03


def test_gemmas_full_layers_may_come_more_often(tmp_path):
    types = ["sliding_attention", "sliding_attention", "full_attention"] * 2
    often = gemma3(layer_types=types, num_hidden_layers=6)
    pattern = {"attention.sliding_window_pattern": 3}

    assert rewritten(tmp_path / "often.gguf", often, values=pattern) < 0.03


def attentions(model):
    return [module for module in model.modules() if hasattr(module, "scaling")]


def test_the_largest_gemma_scales_its_scores_by_another_width(tmp_path):
    sizes = {"num_hidden_layers": 62, "hidden_size": 32, "intermediate_size": 32}
    largest = gemma3(query_pre_attn_scalar=32 // 4, **sizes)

    file = GgufFile(contents(largest).write(tmp_path / "27b.gguf"))

    [scale] = {attention.scaling for attention in attentions(largest)}
    assert GgufSource(file).config.score_scale == scale


def test_what_older_converters_left_out_has_its_default(tmp_path):
    plain = llama(num_key_value_heads=4, rope_parameters={"rope_type": "default"})
    left_out = ["attention.head_count_kv", "attention.key_length", "attention.value_length"]
    left_out += ["rope.freq_base", "rope.dimension_count"]

    assert rewritten(tmp_path / "old.gguf", plain, without=left_out) < 0.03


def test_positions_stretched_under_an_old_key_are_stretched(tmp_path):
    stretched, left_out = FAMILIES["llama, stretched"](), ["rope.scaling.type"]
    left_out.append("rope.scaling.factor")
    old = {"rope.scale_linear": 4.0}

    assert rewritten(tmp_path / "old.gguf", stretched, without=left_out, values=old) < 0.03


def test_positions_are_not_stretched_where_the_rule_is_none(tmp_path):
    rule = {"rope.scaling.type": "none", "rope.scaling.factor": 4.0}

    assert rewritten(tmp_path / "none.gguf", llama(), values=rule) < 0.03


# What is left to transformers.


@pytest.mark.parametrize(
    ("family", "key", "value"),
    [
        ("llama", "attention.sliding_window", 24),
        ("qwen2", "attention.sliding_window", 24),
        ("qwen2", "attention.causal", False),
        ("llama", "expert_count", 8),
        ("llama", "logit_scale", 0.5),
        ("llama", "attention.scale", 0.5),
        ("gemma3", "final_logit_softcapping", 30.0),
        ("qwen3", "rope.scaling.type", "yarn"),
        ("phi3", "rope.scaling.attn_factor", 1.2),
    ],
)
def test_a_file_with_anything_beyond_its_family_is_not_known(tmp_path, family, key, value):
    written = contents(FAMILIES[family]())
    assert knows(GgufFile(written.write(tmp_path / "plain.gguf")))

    written.values[f"{family}.{key}"] = value

    assert not knows(GgufFile(written.write(tmp_path / "beyond.gguf")))


def test_biases_elsewhere_are_not_known(tmp_path):
    path = contents(llama(attention_bias=True)).write(tmp_path / "biased.gguf")

    assert not knows(GgufFile(path))
