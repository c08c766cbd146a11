"""GGUF files whose numbers and tensors don't fit together: each refused with one sentence."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import ModelError
from engine.models.catalog import find_model
from engine.models.gguf import GgufFile
from engine.models.loading import load_lm
from engine.models.native.gguf_source import GgufSource, knows
from engine.models.native.loading import load_decoder
from engine.models.native.native_lm import NativeLM
from tests.engine.models.gguf_models import VOCABULARY, gemma3, llama, phi3, qwen2, qwen3
from tests.engine.models.gguf_writer import contents, some_blocks

FAMILIES = {"llama": llama, "qwen2": qwen2, "qwen3": qwen3, "gemma3": gemma3, "phi3": phi3}
COUNTS = (
    *("block_count", "context_length", "embedding_length", "feed_forward_length"),
    *("attention.head_count", "attention.head_count_kv", "attention.key_length"),
    "rope.dimension_count",
)
REALS = ("attention.layer_norm_rms_epsilon", "rope.freq_base")

families = pytest.mark.parametrize("family", FAMILIES)


def small(family="llama", kind="F32"):
    """What a small, sound file holds."""
    return contents(FAMILIES[family](num_hidden_layers=2), kind)


def read(path):
    file = GgufFile(path)
    assert knows(file)
    return load_decoder(GgufSource(file))


def refused(path, match="."):
    """The one sentence, or two, in which a file is refused."""
    with pytest.raises(ModelError, match=match) as caught:
        read(path)
    text = str(caught.value)
    assert path.name in text
    assert "\n" not in text
    assert len(text) < 200
    return text


def matrix(*shape, kind="F32"):
    return some_blocks(torch.randn(shape, generator=torch.Generator().manual_seed(1)), kind), kind


@families
def test_a_sound_file_is_read(tmp_path, family):
    assert len(read(small(family).write(tmp_path / "sound.gguf")).layers) == 2


def test_a_refusal_is_the_same_at_the_front_door(tmp_path):
    written = small()
    del written.tensors["blk.1.ffn_down.weight"]
    source = find_model(written.write(tmp_path / "short.gguf"))

    with pytest.raises(ModelError, match=r"short\.gguf can't be run: it lacks blk\.1\.ffn_down"):
        load_lm(source, device="cpu", dtype="auto", vocabulary=VOCABULARY, end_ids=frozenset())


def test_a_scale_that_is_no_number_is_found_as_the_weights_are_read(tmp_path):
    held = small(kind="Q4_1")
    blocks, kind = held.tensors["blk.1.ffn_down.weight"]
    damaged = blocks.copy()
    damaged[0, :2] = np.frombuffer(np.float16(np.nan).tobytes(), dtype=np.uint8)
    held.tensors["blk.1.ffn_down.weight"] = damaged, kind

    assert "blk.1.ffn_down.weight" in refused(held.write(tmp_path / "nan.gguf"), "none")


def test_one_part_of_several_is_named_as_that(tmp_path):
    written = small()
    written.values["split.count"] = 3
    del written.tensors["blk.1.ffn_down.weight"]

    refused(written.write(tmp_path / "part.gguf"), match="is one of a model's 3 parts")


# Tensors.


@families
def test_any_missing_tensor_is_named(tmp_path, family):
    whole = small(family)
    needed = [name for name in whole.tensors if name != "output.weight"]

    for name in needed:
        written = small(family)
        del written.tensors[name]
        # Without the gate, what is left looks fused and is too small; fused inputs look apart.
        missed = name.replace("ffn_gate", "ffn_up").replace("attn_qkv", "attn_q")

        refused(written.write(tmp_path / "short.gguf"), match=missed)


@families
@pytest.mark.parametrize("axis", [0, -1])
def test_any_tensor_of_another_shape_is_named(tmp_path, family, axis):
    for name, (blocks, kind) in small(family).tensors.items():
        if (name, axis) == ("token_embd.weight", 0):
            continue  # it is what says how large the vocabulary is
        written = small(family)
        # In float32 a number is four bytes.
        more = np.concatenate([blocks, blocks.take(range(-4, 0), axis=axis)], axis=axis)
        written.tensors[name] = more, kind

        refused(written.write(tmp_path / "odd.gguf"), match=f"tensor {name} is .* in place of")


CASES = {
    "queries of other rows": ("blk.0.attn_q.weight", matrix(48, 64), "is 48 × 64 in place of 64"),
    "a narrow embedding": ("token_embd.weight", matrix(160, 32), "160 × 32 in place of 160 × 64"),
    "a head of another vocabulary": ("output.weight", matrix(128, 64), "is 128 × 64 in place of"),
    "a matrix that is a vector": ("blk.1.ffn_up.weight", matrix(64), "is 64 in place of 96 × 64"),
    "a matrix of three dimensions": ("blk.1.ffn_up.weight", matrix(1, 96, 64), "1 × 96 × 64"),
    "a norm in blocks": ("output_norm.weight", matrix(64, kind="Q8_0"), "stored as a matrix"),
    "another layer": ("blk.2.attn_q.weight", matrix(64, 64), r"no use for its tensor blk\.2"),
    "a norm of another family": ("blk.0.attn_q_norm.weight", matrix(16), "has no use for"),
    "biases of queries alone": ("blk.0.attn_q.bias", matrix(64), r"lacks blk\.0\.attn_k\.bias"),
    "too few stretches": ("rope_freqs.weight", matrix(4), "is 4 in place of 8"),
    "stretches below 0": ("rope_freqs.weight", matrix(8), "rope_freqs.weight makes no sense"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_tensor_that_does_not_fit_is_refused(tmp_path, case):
    name, tensor, match = CASES[case]
    written = small()
    written.tensors[name] = tensor

    refused(written.write(tmp_path / "odd.gguf"), match=match)


# Numbers.


@pytest.mark.parametrize("key", [*COUNTS, *REALS])
@pytest.mark.parametrize("value", [0, -1, 2**40, "three", [1, 2], float("nan"), float("inf")])
def test_a_number_that_makes_no_sense_is_named(tmp_path, key, value):
    written = small()
    written.values[f"llama.{key}"] = value

    if key in REALS and value == 2**40:
        read(written.write(tmp_path / "wide.gguf"))
    else:
        refused(written.write(tmp_path / "odd.gguf"), match=f"its {key} makes no sense")


@pytest.mark.parametrize("key", [*COUNTS[:5], REALS[0]])
def test_a_missing_number_is_named(tmp_path, key):
    written = small()
    del written.values[f"llama.{key}"]

    refused(written.write(tmp_path / "short.gguf"), match=f"it does not say its {key}")


@pytest.mark.parametrize(
    ("key", "value", "match"),
    [
        ("attention.head_count_kv", 3, "its 4 heads can't share 3 key heads evenly"),
        ("attention.head_count_kv", 8, "its 4 heads can't share 8 key heads evenly"),
        ("rope.dimension_count", 18, "heads 16 wide can't turn 18 of their elements"),
        ("rope.dimension_count", 7, "heads 16 wide can't turn 7 of their elements"),
        ("attention.key_length", 15, "heads 15 wide can't turn"),
        ("attention.head_count", 8, "attn_q.weight is 64 × 64 in place of 128 × 64"),
        ("embedding_length", 32, "token_embd.weight is 160 × 64 in place of 160 × 32"),
        ("feed_forward_length", 64, "ffn_gate.weight is 96 × 64 in place of 64 × 64"),
        ("block_count", 1, r"has no use for its tensor blk\.1\."),
        ("block_count", 3, r"it lacks blk\.2\."),
        ("rope.scaling.factor", 0.0, "its rope.scaling.factor makes no sense"),
    ],
)
def test_numbers_that_do_not_fit_are_refused(tmp_path, key, value, match):
    written = small()
    written.values[f"llama.{key}"] = value

    refused(written.write(tmp_path / "odd.gguf"), match=match)


@pytest.mark.parametrize("key", ["attention.sliding_window", "rope.freq_base_swa"])
def test_gemmas_own_numbers_are_checked_too(tmp_path, key):
    written = small("gemma3")
    written.values[f"gemma3.{key}"] = -5

    refused(written.write(tmp_path / "odd.gguf"), match=f"its {key} makes no sense")


@pytest.mark.parametrize("key", COUNTS)
def test_absurd_counts_are_refused_before_anything_is_allocated(tmp_path, key):
    written = small()
    written.values[f"llama.{key}"] = 2**31 - 2
    path = written.write(tmp_path / "absurd.gguf")
    file = GgufFile(path)

    tracemalloc.start()
    try:
        source = GgufSource(file)
    except ModelError:
        source = None
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak_bytes < 1_000_000
    # A context may be as long as it likes: nothing is kept for it beforehand.
    assert (source is None) == (key != "context_length")


ANYTHING = (
    st.integers(-3, 70)
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=True, width=32)
    | st.booleans()
    | st.text(max_size=5)
    | st.lists(st.integers(0, 9), min_size=1, max_size=3)
)


@families
@given(data=st.data())
@settings(deadline=None, max_examples=40)
def test_whatever_the_numbers_are_a_file_is_refused_or_runs(tmp_path_factory, family, data):
    written = small(family)
    numbers = [key for key, value in written.values.items() if type(value) in (int, float)]
    changes = st.dictionaries(st.sampled_from(numbers), ANYTHING, min_size=1, max_size=2)
    written.values |= data.draw(changes)
    path = written.write(tmp_path_factory.getbasetemp() / "any.gguf")

    try:
        decoder = read(path)
    except ModelError:
        return
    lm = NativeLM(decoder, vocabulary=VOCABULARY, end_ids=frozenset())
    assert lm.score(lm.new_memo(), [3, 1, 4]).logits.shape == (1, VOCABULARY)
