"""The native decoder against transformers' forward, and row by row against itself, bit for bit."""

from __future__ import annotations

from dataclasses import replace

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
from engine.models.native.gguf_source import GgufSource, knows
from engine.models.native.graphs import Captured, GraphedLayer
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
            source = GgufSource(GgufFile(write_gguf(path, model, kind, head_kind)))
            lm = NativeLM(load_decoder(source), vocabulary=vocabulary, end_ids=frozenset())
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


def read(lm, memo, ids, replies=()):
    return list(lm.read(memo, ids, replies=replies))


def same_rows(memo, other):
    count = len(memo.ids)
    return memo.ids == other.ids and all(
        torch.equal(ours.keys[..., :count], theirs.keys[..., :count])
        and torch.equal(ours.values[:, :count], theirs.values[:, :count])
        for ours, theirs in zip(memo.rows.layers, other.rows.layers, strict=True)
    )


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


# A cut drafts behind the whole model's rows, and its rows are not run twice.


class CountingLayer:
    """A layer that counts the rows it is given."""

    def __init__(self, layer):
        self.layer, self.rows = layer, 0

    def project(self, residual, turns):
        self.rows += len(residual)
        return self.layer.project(residual, turns)

    def finish(self, residual, mixed):
        return self.layer.finish(residual, mixed)


@pytest.fixture
def counted(lm):
    counting = [CountingLayer(layer) for layer in lm._decoder.layers]
    decoder = replace(lm._decoder, layers=counting)
    return NativeLM(decoder, vocabulary=VOCABULARY, end_ids=frozenset()), counting


@pytest.mark.parametrize("length", [2, 40, 150])
@pytest.mark.parametrize("drafted", [1, 3])
def test_rows_that_a_cut_has_begun_are_finished_and_not_begun_again(counted, lm, length, drafted):
    whole, layers = counted
    ids, cut = ids_of(length + drafted, 3), whole.first_layers(2)
    memo, plain = whole.new_memo(), lm.new_memo()
    read(whole, memo, ids[:length])
    behind = cut.memo_behind(memo)
    for more in range(drafted):
        cut.score(behind, ids[: length + more]).keep()
    before = [layer.rows for layer in layers]

    scores = whole.score(memo, ids[:length], Draft.chain(ids[length:], "x"))

    expected = lm.score(plain, ids[:length], Draft.chain(ids[length:], "x"))
    scores.keep(range(drafted))
    expected.keep(range(drafted))
    assert torch.equal(scores.logits, expected.logits)
    assert same_rows(memo, plain)
    rows = [layer.rows - past for layer, past in zip(layers, before, strict=True)]
    assert rows == [1, 1, drafted + 1]


def test_a_begun_draft_that_is_not_the_one_scored_changes_nothing(counted, lm):
    whole, _ = counted
    ids, cut = ids_of(60), whole.first_layers(2)
    memo, plain = whole.new_memo(), lm.new_memo()
    read(whole, memo, ids[:40])
    behind = cut.memo_behind(memo)
    for more in range(3):
        cut.score(behind, ids[: 40 + more]).keep()
    other = Draft.chain([1, 2, 3], "x")

    whole.score(memo, ids[:40], other).keep([0, 1, 2])
    again = whole.score(memo, [*ids[:40], 1, 2, 3], Draft.chain(ids[40:43], "x"))

    lm.score(plain, ids[:40], other).keep([0, 1, 2])
    assert torch.equal(again.logits, lm.score(plain, [*ids[:40], 1, 2, 3], again.draft).logits)


def test_only_a_cut_of_the_same_model_drafts_behind_its_rows(made, lm):
    other = made("F32")[1]
    memo = lm.new_memo()

    assert lm.first_layers(2).memo_behind(memo) is not None
    assert other.first_layers(2).memo_behind(memo) is None
    assert other.memo_behind(memo) is None


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
        assert torch.equal(ours.keys[..., :at], theirs.keys[..., :at])
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
    read(lm, fresh, ids[: len(memo.ids) + 1], [range(190)])
    assert memo.ids == ids[: len(memo.ids)]
    assert same_rows(memo, fresh)


# Which path writes which row.


def test_a_long_prompt_is_read_with_weights_unpacked_and_means_the_same(made):
    model, lm = made("Q4_1")
    ids = ids_of(300)
    memo, packed = lm.new_memo(), lm.new_memo()

    read(lm, memo, ids)
    read(lm, packed, ids, [range(300)])

    assert memo.by_prompt == [True] * 299
    assert not any(packed.by_prompt)
    assert not same_rows(memo, packed)
    assert close(lm.score(memo, ids).logits[0], reference(model, ids))


def test_a_conversation_read_again_has_the_rows_that_its_turns_left(lm):
    ids = ids_of(440)
    reply = range(199, 232)
    memo = lm.new_memo()
    read(lm, memo, ids[:200])
    for length in range(200, 232, 4):
        lm.score(memo, ids[:length], Draft.chain(ids[length : length + 3], "x")).keep((0, 1, 2))
    read(lm, memo, ids, [reply])

    fresh = lm.new_memo()
    read(lm, fresh, ids, [reply])

    assert memo.by_prompt == fresh.by_prompt == [True] * 199 + [False] * 33 + [True] * 207
    assert same_rows(memo, fresh)


@pytest.mark.parametrize("held", [0, 1, 100, 128, 200, 256, 299])
def test_rows_that_the_other_path_wrote_are_written_anew(lm, held):
    ids = ids_of(300)
    memo, fresh = lm.new_memo(), lm.new_memo()
    read(lm, memo, ids[: held + 1], [range(300)])

    read(lm, memo, ids)

    read(lm, fresh, ids)
    assert memo.by_prompt == fresh.by_prompt
    assert same_rows(memo, fresh)


@pytest.mark.parametrize("kept", [1, 100, 128, 200])
def test_a_prompt_that_another_cuts_short_goes_on_from_where_they_part(lm, kept):
    ids = ids_of(300)
    other = [*ids[:kept], *ids_of(300 - kept, seed=5)]
    memo, fresh = lm.new_memo(), lm.new_memo()
    read(lm, memo, ids)

    read(lm, memo, other[:290], [range(240, 260)])

    read(lm, fresh, other[:290], [range(240, 260)])
    assert memo.by_prompt == fresh.by_prompt
    assert same_rows(memo, fresh)


@pytest.mark.parametrize("parts", [[97, 299], [100, 101, 299], [250, 299], [96, 180, 181, 299]])
def test_a_long_prompt_leaves_the_same_rows_however_it_is_cut(lm, parts):
    ids = ids_of(300)
    memo, fresh = lm.new_memo(), lm.new_memo()

    for end in parts:
        read(lm, memo, ids[: end + 1])

    read(lm, fresh, ids)
    assert same_rows(memo, fresh)


@pytest.mark.parametrize("length", [95, 96])
def test_short_stretches_are_read_as_replies_are_decoded(lm, length):
    memo = lm.new_memo()

    read(lm, memo, ids_of(300)[: length + 1])

    assert memo.by_prompt == [length == 96] * length


def test_reading_says_how_far_it_is_and_can_stop_between_layers(lm):
    ids = ids_of(300)
    memo, fresh = lm.new_memo(), lm.new_memo()

    chunks = lm.read(memo, ids)
    first = next(chunks)
    chunks.close()

    assert (first.rows, memo.ids) == (0, [])
    assert 0 < first.done < 299
    done = [chunk.done for chunk in read(lm, memo, ids)]
    assert done == sorted(done)
    assert done[-1] == 299
    read(lm, fresh, ids)
    assert same_rows(memo, fresh)


def test_taps_of_a_long_prompt_are_those_of_its_rows(made):
    model, lm = made("Q4_1")
    ids = ids_of(300)

    chunks = [chunk for chunk in lm.read(lm.new_memo(), ids, taps=(0, 2, -1)) if chunk.rows]

    with torch.inference_mode():
        states = model(torch.tensor([ids]), output_hidden_states=True).hidden_states
    for tap in (0, 2, -1):
        assert close(torch.cat([chunk.hidden[tap] for chunk in chunks]), states[tap][0, :-1])


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


# Layers captured once and replayed, as CUDA graphs are.


def captured(function, inputs):
    output = function(*inputs).clone()
    return Captured(inputs, output, lambda: output.copy_(function(*inputs)))


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 8, 33, 64, 65])
def test_a_graphed_layer_does_to_rows_what_the_layer_does(lm, rows):
    layer = lm._decoder.layers[0]
    turned = GraphedLayer(layer, captured)
    generator = torch.Generator().manual_seed(rows)

    for _ in range(2):  # captured the first time, replayed the second
        residual = torch.randn(rows, 64, generator=generator)
        mixed = torch.randn(rows, 64, generator=generator)
        turns = torch.polar(torch.ones(rows, 8, 8), torch.randn(rows, 8, 8, generator=generator))
        with torch.inference_mode():
            heads = turned.project(residual, turns), layer.project(residual, turns)
            ends = turned.finish(residual, mixed), layer.finish(residual, mixed)
        assert torch.equal(*heads)
        assert torch.equal(*ends)


def test_what_a_replay_gave_is_not_overwritten_by_the_next(lm):
    turned = GraphedLayer(lm._decoder.layers[0], captured)
    with torch.inference_mode():
        first = turned.finish(torch.zeros(1, 64), torch.ones(1, 64))
        before = first.clone()
        turned.finish(torch.ones(1, 64), torch.zeros(1, 64))

    assert torch.equal(first, before)


# Which files it takes.


def test_a_file_with_anything_beyond_the_family_is_left_to_transformers(tmp_path):
    plain = GgufFile(write_gguf(tmp_path / "plain.gguf", llama(), "Q4_1"))
    stretched = GgufFile(tmp_path / "plain.gguf")
    stretched.metadata["llama.rope.scaling.type"] = "yarn"
    windowed = GgufFile(tmp_path / "plain.gguf")
    windowed.metadata["llama.attention.sliding_window"] = 4096
    biased = GgufFile(tmp_path / "plain.gguf")
    biased.tensors["blk.0.ffn_down.bias"] = biased.tensors["blk.0.attn_norm.weight"]
    other = GgufFile(tmp_path / "plain.gguf")
    other.metadata["general.architecture"] = "mamba"

    assert knows(plain)
    assert not any(knows(file) for file in (stretched, windowed, biased, other))


def test_a_matrix_whose_rows_do_not_fill_the_packed_layout_is_kept_in_bfloat16(made):
    model, lm = made("Q4_1", "Q8_0", vocabulary=150)
    ids = ids_of(20, most=150)

    assert close(lm.score(lm.new_memo(), ids).logits[0], reference(model, ids))
