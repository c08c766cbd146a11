"""The native decoder on folders of safetensors: transformers' numbers, and the same bits."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from engine.draft import Draft
from engine.models.causal_lm import FINAL
from engine.models.native.folder_source import FolderSource
from engine.models.native.linear import linear_of_codes, linear_of_floats, quantised
from engine.models.native.loading import load_decoder
from engine.models.native.native_lm import NativeLM
from engine.models.self_check import rows_are_bit_exact
from tests.engine.models.families import MODELS, VOCABULARY, random_model, write
from tests.engine.models.test_linear import error, inputs, normal

FORMS = [None, 8, 4]


def opened(folder, bits=None):
    return NativeLM(
        load_decoder(FolderSource(folder, bits=bits)), vocabulary=VOCABULARY, end_ids=frozenset()
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """By name and form: transformers' model, and the native one that reads what it wrote."""
    folders, found = {}, {}

    def make(name, bits=None):
        if name not in folders:
            model = random_model(name)
            folders[name] = model, write(tmp_path_factory.mktemp("model"), model)
        model, folder = folders[name]
        if (name, bits) not in found:
            found[name, bits] = opened(folder, bits)
        return model, found[name, bits]

    return make


def ids_of(count, seed=0):
    return np.random.default_rng(seed).integers(0, VOCABULARY, count).tolist()


def reference(model, ids, **options):
    with torch.inference_mode():
        return model(torch.tensor([list(ids)]), **options)


def close(ours, theirs):
    return ((ours - theirs).norm() / theirs.norm()).item() < 0.012


def tree(ids, parents):
    count = len(ids)
    return Draft(tuple(ids), tuple(parents), ("x",) * count, (None,) * count, (None,) * count)


# The numbers.


@pytest.mark.parametrize("length", [1, 40, 150])
@pytest.mark.parametrize("name", MODELS)
def test_logits_are_what_transformers_computes(made, name, length):
    model, lm = made(name)
    ids = ids_of(length)

    scores = lm.score(lm.new_memo(), ids)

    assert close(scores.logits[0], reference(model, ids).logits[0, -1])


@pytest.mark.parametrize("name", MODELS)
def test_a_long_prompt_leaves_what_transformers_computes(made, name):
    model, lm = made(name)
    ids, memo, hidden = ids_of(300), lm.new_memo(), []

    for chunk in lm.read(memo, ids, taps=(FINAL,)):
        hidden += [chunk.hidden[FINAL]] if chunk.hidden else []
    scores = lm.score(memo, ids)

    expected = reference(model, ids, output_hidden_states=True)
    assert close(scores.logits[0], expected.logits[0, -1])
    assert close(torch.cat(hidden).float(), expected.hidden_states[-1][0, :-1])


@pytest.mark.parametrize("name", MODELS)
def test_nodes_of_a_tree_behind_the_window_see_their_own_path(made, name):
    model, lm = made(name)
    ids, draft = ids_of(90), tree((5, 6, 7, 8, 9), (-1, -1, 0, 1, 2))

    scores = lm.score(lm.new_memo(), ids, draft)

    for node in range(-1, 5):
        expected = reference(model, [*ids, *draft.path_ids(node)]).logits[0, -1]
        assert close(scores.logits[node + 1], expected)


@pytest.mark.parametrize("name", MODELS)
def test_taps_are_the_states_between_the_layers(made, name):
    model, lm = made(name)
    ids = ids_of(60)

    scores = lm.score(lm.new_memo(), ids, taps=(0, 1, FINAL))

    states = reference(model, ids, output_hidden_states=True).hidden_states
    for tap in (0, 1, FINAL):
        assert close(scores.hidden[tap][0].float(), states[tap][0, -1])
    assert torch.equal(lm.head(scores.hidden[FINAL]), scores.logits)
    assert torch.equal(lm.embed(torch.tensor(ids[-1:])), scores.hidden[0])


@pytest.mark.parametrize("name", MODELS)
def test_the_first_layers_alone_are_the_models_own(made, name):
    model, lm = made(name)
    ids = ids_of(60)

    cut = lm.first_layers(2)

    states = reference(model, ids, output_hidden_states=True).hidden_states[2]
    with torch.inference_mode():
        expected = model.lm_head(model.model.norm(states[0, -1]))
    assert close(cut.score(cut.new_memo(), ids).logits[0], expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_weights_of_another_dtype_are_read_as_bfloat16(tmp_path, dtype):
    model = random_model("qwen2", dtype=dtype)
    ids = ids_of(50)

    lm = opened(write(tmp_path, model, dtype=dtype))

    assert close(lm.score(lm.new_memo(), ids).logits[0], reference(model, ids).logits[0, -1])


@pytest.mark.parametrize("bits", FORMS)
def test_a_tied_head_is_the_embedding(tmp_path, bits):
    model = random_model("llama", tied=True)
    ids = ids_of(50)

    lm = opened(write(tmp_path, model), bits)

    expected = reference(packed(model, bits), ids).logits[0, -1]
    assert close(lm.score(lm.new_memo(), ids).logits[0], expected)


def packed(model, bits):
    """The model with the weights that packing leaves; the embedding keeps its own."""
    if bits is not None:
        for name, module in model.named_modules():
            if isinstance(module, torch.nn.Linear):
                of = 8 if name == "lm_head" else bits
                weights = quantised(module.weight.detach(), bits=of).weights()
                module.weight = torch.nn.Parameter(weights)
    return model


@pytest.mark.parametrize("length", [40, 300])
@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("name", ["llama, biased", "gemma3", "phi3"])
def test_a_packed_model_computes_with_its_packed_weights(made, name, bits, length):
    _, lm = made(name, bits)
    ids = ids_of(length)

    scores = lm.score(lm.new_memo(), ids)

    expected = reference(packed(random_model(name), bits), ids).logits[0, -1]
    assert close(scores.logits[0], expected)


# The same bits.


@pytest.mark.parametrize("bits", FORMS)
@pytest.mark.parametrize("name", MODELS)
def test_a_row_has_the_same_bits_alone_in_a_chain_and_in_a_tree(made, name, bits):
    _, lm = made(name, bits)
    alone, ids = lm.new_memo(), ids_of(101)
    # A chain as long as a pass takes, and a tree across the boundary of an attention window.
    chain, branches = tree(ids_of(60, 1), range(-1, 59)), tree(ids_of(9, 2), (-1, -1, *range(7)))

    for draft in (chain, branches):
        scores = lm.score(lm.new_memo(), ids, draft)
        for node in range(-1, len(draft)):
            row = lm.score(alone, [*ids, *draft.path_ids(node)])
            row.keep()
            assert torch.equal(scores.logits[1 + node], row.logits[0])
    assert rows_are_bit_exact(lm)


@pytest.mark.parametrize("shape", [(576, 1536), (896, 4864)])
def test_rows_of_unpacked_weights_have_the_same_bits_in_every_number(shape):
    generator = torch.Generator().manual_seed(0)
    multiply = linear_of_floats(torch.randn(shape, generator=generator))
    rows = torch.randn(64, shape[1], generator=generator).bfloat16()

    together = multiply(rows)

    for row in range(64):
        assert torch.equal(multiply(rows[row : row + 1])[0], together[row])
        assert torch.equal(multiply(rows[row:]), together[row:])


# What packing costs.


PACKINGS = [(8, "Q8_0", 0.007, 0.015), (4, "Q4_1", 0.08, 0.13)]


@pytest.mark.parametrize(("bits", "kind", "stated", "with_outliers"), PACKINGS)
def test_packing_costs_no_more_than_the_table_says(bits, kind, stated, with_outliers):
    rows, outliers = (
        inputs(),
        torch.rand(normal().shape, generator=torch.Generator().manual_seed(7)),
    )

    def found(weights):
        return error(linear_of_codes(quantised(weights, bits=bits), kind)(rows), rows, weights)

    assert stated / 2 < found(normal()) <= stated
    assert stated < found(normal() * torch.where(outliers < 0.02, 20.0, 1.0)) <= with_outliers
