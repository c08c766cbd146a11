"""The native decoder against transformers' forward, and row by row against itself, bit for bit."""

from __future__ import annotations

import gguf
import numpy as np
import pytest
import torch
from gguf.constants import GGMLQuantizationType
from gguf.quants import dequantize, quantize
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import LlamaConfig, LlamaForCausalLM

from engine.draft import Draft, Passengers
from engine.models.gguf import GgufFile
from engine.models.native import attention, decoder
from engine.models.native.config import knows
from engine.models.native.loading import load_decoder
from engine.models.native.native_lm import NativeLM
from engine.models.self_check import rows_are_bit_exact

VOCABULARY = 160
NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}


def llama(seed=0, *, tied=False, vocabulary=VOCABULARY):
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
        tie_word_embeddings=tied,
    )
    model = LlamaForCausalLM(config).float().eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() > 1:
                weight.mul_(4.0)
            elif "norm" in name:
                weight.add_(0.2 * torch.randn_like(weight))
    return model


def write_gguf(path, model, kind, head_kind="Q8_0"):
    """The model as a GGUF file; its own weights become what the file holds."""
    config = model.config
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(10_000.0)
    for name, weight in model.named_parameters():
        target, quant = _place(name, kind, head_kind)
        values = weight.detach()
        heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
        turned = next((count for part, count in heads.items() if part in name), None)
        if turned is not None:
            values = _neighbouring(values, turned)
        values = values.numpy()
        if weight.dim() == 1 or quant == "F32":
            writer.add_tensor(target, values)
            continue
        blocks = quantize(values, GGMLQuantizationType[quant])
        writer.add_tensor(target, blocks, raw_dtype=GGMLQuantizationType[quant])
        exact = torch.from_numpy(np.array(dequantize(blocks, GGMLQuantizationType[quant])))
        with torch.no_grad():
            weight.copy_(_half_apart(exact, turned) if turned is not None else exact)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _place(name, kind, head_kind):
    if name == "model.embed_tokens.weight":
        return "token_embd.weight", head_kind
    if name == "lm_head.weight":
        return "output.weight", head_kind
    if name == "model.norm.weight":
        return "output_norm.weight", kind
    _, _, index, rest = name.split(".", 3)
    return f"blk.{index}.{NAMES[rest.removesuffix('.weight')]}.weight", kind


def _neighbouring(weight, heads):
    """Rows of rotary halves to rows of neighbouring pairs, as GGUF has them."""
    return weight.view(heads, 2, -1, weight.shape[1]).transpose(1, 2).reshape(weight.shape)


def _half_apart(weight, heads):
    return weight.view(heads, -1, 2, weight.shape[1]).transpose(1, 2).reshape(weight.shape)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Per type of the projections: a reference model, and the native one of the same file."""
    found = {}

    def make(kind, head_kind="Q8_0", *, tied=False, vocabulary=VOCABULARY):
        key = (kind, head_kind, tied, vocabulary)
        if key not in found:
            model = llama(tied=tied, vocabulary=vocabulary)
            path = tmp_path_factory.mktemp("gguf") / f"{kind}.gguf"
            file = GgufFile(write_gguf(path, model, kind, head_kind))
            lm = NativeLM(load_decoder(file), vocabulary=vocabulary, end_ids=frozenset())
            found[key] = model, lm
        return found[key]

    return make


@pytest.fixture(scope="module")
def lm(made):
    return made("Q4_1")[1]


def ids_of(count, seed=0, *, most=VOCABULARY):
    return np.random.default_rng(seed).integers(0, most, count).tolist()


def reference(model, ids):
    with torch.inference_mode():
        return model(torch.tensor([list(ids)])).logits[0, -1]


def close(ours, theirs):
    return (ours - theirs).norm() / theirs.norm() < 0.03


@pytest.mark.parametrize("kind", ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "F32"])
@pytest.mark.parametrize("length", [1, 40, 150])
def test_logits_are_what_transformers_computes_from_the_files_values(made, kind, length):
    model, lm = made(kind)
    ids = ids_of(length)

    scores = lm.score(lm.new_memo(), ids)

    assert close(scores.logits[0], reference(model, ids))


@pytest.mark.parametrize("head_kind", ["F32", "Q4_1", "Q5_1", "Q8_0"])
@pytest.mark.parametrize("tied", [True, False])
def test_embedding_and_head_of_every_type(made, head_kind, tied):
    model, lm = made("Q4_1", head_kind, tied=tied)
    ids = ids_of(20)

    assert close(lm.score(lm.new_memo(), ids).logits[0], reference(model, ids))


def test_a_trees_nodes_see_their_own_path(made):
    model, lm = made("Q4_1")
    ids = ids_of(90)
    draft = Draft((5, 6, 7, 8, 9), (-1, -1, 0, 1, 2), ("x",) * 5, (None,) * 5, (None,) * 5)

    scores = lm.score(lm.new_memo(), ids, draft)

    for node in range(-1, 5):
        expected = reference(model, [*ids, *draft.path_ids(node)])
        assert close(scores.logits[node + 1], expected)


def test_passengers_ride_along_and_change_no_bit(lm):
    ids = ids_of(70)
    draft = Draft.chain([5, 6], "x")
    passengers = Passengers((7, 8), (1, 2), torch.ones(2, 2, dtype=torch.bool).tril())

    alone = lm.score(lm.new_memo(), ids, draft)
    beside = lm.score(lm.new_memo(), ids, draft, passengers)

    chained = lm.score(lm.new_memo(), ids, Draft.chain([7, 8], "x"))
    assert torch.equal(beside.logits[:3], alone.logits)
    assert torch.equal(beside.logits[3:], chained.logits[1:])


def test_taps_and_head_fit_together(made):
    model, lm = made("Q4_1")
    ids = ids_of(30)

    scores = lm.score(lm.new_memo(), ids, taps=(0, 2, -1))

    with torch.inference_mode():
        states = model(torch.tensor([ids]), output_hidden_states=True).hidden_states
    for tap in (0, 2, -1):
        assert close(scores.hidden[tap][0], states[tap][0, -1])
    assert torch.equal(lm.head(scores.hidden[-1]), scores.logits)
    assert torch.equal(lm.embed(torch.tensor(ids[-1:])), scores.hidden[0])


def test_the_first_layers_alone_are_the_models_own(made):
    model, lm = made("Q4_1")
    ids = ids_of(30)

    cut = lm.first_layers(2)

    with torch.inference_mode():
        states = model.model(torch.tensor([ids]), output_hidden_states=True).hidden_states[2]
        expected = model.lm_head(model.model.norm(states[0, -1]))
    assert close(cut.score(cut.new_memo(), ids).logits[0], expected)


# The same bits.


@given(
    length=st.integers(1, 300),
    parents=st.lists(st.integers(-1, 14), max_size=15),
    seed=st.integers(0, 3),
)
@settings(deadline=None, max_examples=60)
def test_a_row_has_the_same_bits_alone_and_in_any_tree(lm, length, parents, seed):
    ids = ids_of(length, seed)
    tree = tuple(min(parent, at - 1) for at, parent in enumerate(parents))
    count = len(tree)
    draft = Draft(tuple(ids_of(count, 9)), tree, ("x",) * count, (None,) * count, (None,) * count)

    scores = lm.score(lm.new_memo(), ids, draft)

    memo = lm.new_memo()
    for node in range(-1, count):
        alone = lm.score(memo, [*ids, *draft.path_ids(node)])
        assert torch.equal(scores.logits[1 + node], alone.logits[0])


@given(
    steps=st.lists(st.tuples(st.integers(1, 64), st.integers(0, 40)), min_size=1, max_size=8),
    seed=st.integers(0, 3),
)
@settings(deadline=None, max_examples=25)
def test_the_cache_has_the_same_bits_after_any_history_of_passes_and_rewinds(lm, steps, seed):
    ids = ids_of(420, seed)
    memo, at = lm.new_memo(), 1

    for rows, back in steps:
        at = min(max(1, at + rows - back), len(ids))
        lm.score(memo, ids[:at], Draft.chain(ids_of(rows % 12, 5), "x")).keep()

    fresh = lm.new_memo()
    for length in range(1, at + 1):
        lm.score(fresh, ids[:length]).keep()
    for ours, theirs in zip(memo.rows.layers, fresh.rows.layers, strict=True):
        assert torch.equal(ours.keys[:, :at], theirs.keys[:, :at])
        assert torch.equal(ours.values[:, :at], theirs.values[:, :at])


def test_kept_paths_of_trees_leave_the_cache_of_plain_decoding(lm):
    ids = ids_of(200)
    memo, at = lm.new_memo(), 40
    generator = np.random.default_rng(1)

    while at < 190:
        right = ids[at : at + 3]
        tokens, parents, node = [], [], -1
        for token in right:
            tokens += [int(generator.integers(VOCABULARY)), token]
            parents += [node, node]
            node = len(tokens) - 1
        draft = Draft(tuple(tokens), tuple(parents), ("x",) * 6, (None,) * 6, (None,) * 6)
        lm.score(memo, ids[:at], draft).keep((1, 3, 5))
        at += 4

    fresh = lm.new_memo()
    for _ in lm.read(fresh, ids[: len(memo.ids) + 1]):
        pass
    assert memo.ids == ids[: len(memo.ids)]
    for ours, theirs in zip(memo.rows.layers, fresh.rows.layers, strict=True):
        assert torch.equal(ours.keys[:, : len(memo.ids)], theirs.keys[:, : len(memo.ids)])


# The check at load.


def test_the_check_finds_the_native_decoder_exact(lm):
    assert rows_are_bit_exact(lm)


def test_the_check_finds_a_kernel_out_whose_sums_depend_on_the_rows_beside(made, monkeypatch):
    _, lm = made("Q4_1", "F32")

    def unstable(queries, keys, values, where):
        mixed = attention.attend(queries, keys, values, where)
        return mixed * (1.0 + 0.01 * (len(mixed) > 1))

    monkeypatch.setattr(decoder, "attend", unstable)

    assert not rows_are_bit_exact(lm)


# Which files it takes.


def test_a_file_with_anything_beyond_the_family_is_left_to_transformers(tmp_path):
    plain = GgufFile(write_gguf(tmp_path / "plain.gguf", llama(), "Q4_1"))
    stretched = GgufFile(tmp_path / "plain.gguf")
    stretched.metadata["llama.rope.scaling.type"] = "linear"
    windowed = GgufFile(tmp_path / "plain.gguf")
    windowed.metadata["llama.attention.sliding_window"] = 4096
    biased = GgufFile(tmp_path / "plain.gguf")
    biased.tensors["blk.0.attn_q.bias"] = biased.tensors["blk.0.attn_norm.weight"]
    other = GgufFile(tmp_path / "plain.gguf")
    other.metadata["general.architecture"] = "mamba"

    assert knows(plain)
    assert not any(knows(file) for file in (stretched, windowed, biased, other))


def test_a_matrix_whose_rows_do_not_fill_the_packed_layout_is_kept_in_bfloat16(made):
    model, lm = made("Q4_1", "Q8_0", vocabulary=150)
    ids = ids_of(20, most=150)

    assert close(lm.score(lm.new_memo(), ids).logits[0], reference(model, ids))
