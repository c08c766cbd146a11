"""Every family that the native decoder knows, from files as llama.cpp's converter writes them.

Logits against transformers' model of the same values, and against transformers' own reading of the
file; a row's bits against itself.
"""

from __future__ import annotations

import random

import pytest
import torch

from engine.draft import ROOT, Draft
from engine.models.catalog import find_model
from engine.models.transformers_loading import load_model
from tests.engine.models.gguf_models import FAMILIES, gemma3, llama, phi3, qwen3
from tests.engine.models.gguf_writer import contents
from tests.engine.models.native_pairs import (
    ROWS_OF_A_CHAIN,
    chain_logits,
    distance,
    error,
    ids_of,
    native,
    pair,
    reference,
)

families = pytest.mark.parametrize("family", FAMILIES)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Per family and block type, made once."""
    found = {}

    def make(family, kind="F32"):
        if (family, kind) not in found:
            path = tmp_path_factory.mktemp("family") / "model.gguf"
            found[family, kind] = pair(path, FAMILIES[family](), kind)
        return found[family, kind]

    return make


def deterministic(ids, parents):
    """A tree whose proposals were not drawn."""
    nothing = (None,) * len(ids)
    return Draft(tuple(ids), tuple(parents), ("x",) * len(ids), nothing, nothing)


def random_tree(nodes, seed=0):
    """Any tree, deep or bushy, siblings in any order."""
    dice = random.Random(seed)
    parents = [dice.randint(max(ROOT, node - 4), node - 1) for node in range(nodes)]
    return deterministic(ids_of(nodes, seed), parents)


@torch.inference_mode()
def states_of(model, ids):
    return model(torch.tensor([ids]), output_hidden_states=True).hidden_states


# What the conventions say.


@families
@pytest.mark.parametrize("length", [1, 40, 150, 200])
def test_logits_are_what_transformers_computes_from_the_files_values(made, family, length):
    model, lm = made(family)

    assert distance(model, lm, length) < 0.03


@families
@pytest.mark.parametrize("length", [45, 130])
def test_a_trees_nodes_see_their_own_path(made, family, length):
    model, lm = made(family)
    ids, tree = ids_of(length), random_tree(12, seed=length)

    ours = lm.score(lm.new_memo(), ids, tree).logits

    paths = [[*ids, *tree.path_ids(node)] for node in range(ROOT, len(tree))]
    theirs = torch.stack([reference(model, path)[-1] for path in paths])
    assert error(ours, theirs) < 0.03


@families
def test_a_long_prompt_is_read_as_transformers_reads_it(made, family):
    model, lm = made(family)
    ids, more, memo = ids_of(300), ids_of(20, seed=1), lm.new_memo()

    chunks = [chunk for chunk in lm.read(memo, ids, taps=(1, -1)) if chunk.rows]
    ours = lm.score(memo, ids, Draft.chain(more, "x")).logits

    states = states_of(model, [*ids, *more])
    assert all(memo.by_prompt)
    assert error(ours, reference(model, [*ids, *more])[-len(ours) :]) < 0.03
    for tap in (1, -1):
        read = torch.cat([chunk.hidden[tap] for chunk in chunks])
        assert error(read, states[tap][0, :299]) < 0.03


@families
def test_taps_are_what_enters_each_layer(made, family):
    model, lm = made(family)
    ids, taps = ids_of(60), (*range(lm.num_layers), -1)

    scores = lm.score(lm.new_memo(), ids[:30], Draft.chain(ids[30:], "x"), taps=taps)

    states = states_of(model, ids)
    for tap in taps:
        assert error(scores.hidden[tap], states[tap][0, 29:]) < 0.03


@families
def test_the_first_layers_alone_are_the_models_own(made, family):
    model, lm = made(family)
    ids, count = ids_of(60), lm.num_layers - 1

    ours = chain_logits(lm.first_layers(count), ids)

    states = states_of(model, ids)[count][0, -ROWS_OF_A_CHAIN:]
    with torch.inference_mode():
        theirs = model.lm_head(model.model.norm(states))
    assert error(ours, theirs) < 0.03


# A second reader of the same files.

READABLE = {
    "llama": llama,
    "qwen2": FAMILIES["qwen2"],
    # It takes heads to be 128 wide.
    "qwen3": lambda: qwen3(head_dim=128),
    # Heads again, and it does not read how far positions are stretched.
    "gemma3": lambda: gemma3(stretch=1.0, head_dim=256, query_pre_attn_scalar=256),
    # Nor this one's window.
    "phi3": lambda: phi3(window=None),
}


@pytest.mark.parametrize("family", READABLE)
@pytest.mark.parametrize("kind", ["F32", "Q4_0"])
@pytest.mark.filterwarnings("ignore")
def test_transformers_reading_of_the_same_file_agrees(tmp_path, family, kind):
    path = contents(READABLE[family](), kind).write(tmp_path / "model.gguf")

    theirs = load_model(find_model(path), device="cpu", dtype=torch.float32)

    assert distance(theirs, native(path)) < 0.03


# The same bits.


@families
@pytest.mark.parametrize("kind", ["Q4_0", "Q8_0"])
def test_a_row_has_the_same_bits_alone_and_in_any_tree(made, family, kind):
    lm = made(family, kind).lm

    for length in (1, 2, 23, 31, 32, 33, 41, 63, 64, 65, 95, 97, 160, 200):
        ids, tree = ids_of(length), random_tree(1 + length % 16, seed=length)
        scores, memo = lm.score(lm.new_memo(), ids, tree), lm.new_memo()
        for node in range(ROOT, len(tree)):
            alone = lm.score(memo, [*ids, *tree.path_ids(node)])
            assert torch.equal(alone.logits[0], scores.logits[1 + node])


@families
def test_kept_paths_of_trees_leave_the_cache_of_plain_decoding(made, family):
    lm, ids = made(family, "Q4_0").lm, ids_of(150)
    memo, at = lm.new_memo(), 20

    while at < 140:
        right, wrong = ids[at : at + 3], ids_of(3, seed=at)
        tokens = (wrong[0], right[0], wrong[1], right[1], right[2], wrong[2])
        tree = deterministic(tokens, (-1, -1, 1, 1, 3, 3))
        lm.score(memo, ids[:at], tree).keep((1, 3, 4))
        at += 4

    plain, rows = lm.new_memo(), len(memo.ids)
    for length in range(1, rows + 1):
        lm.score(plain, ids[:length]).keep()
    assert memo.ids == plain.ids == ids[:rows]
    for ours, theirs in zip(memo.rows.layers, plain.rows.layers, strict=True):
        assert torch.equal(ours.keys[..., :rows], theirs.keys[..., :rows])
        assert torch.equal(ours.values[:, :rows], theirs.values[:, :rows])
