"""A pass over any tree scores a row as reading its path alone would, and keeps what it is told."""

from __future__ import annotations

import random

import pytest
import torch

from engine.draft import ROOT, Draft, Passengers
from engine.models.transformers_lm import TransformersLM
from tests.engine import models_for_tests as tiny

PREFIX = [*range(50, 73)]  # longer than the sliding windows

targets = pytest.mark.parametrize("target", ["llama", "mistral", "gemma"])
shapes = pytest.mark.parametrize("shape", range(6))


def random_tree(seed, *, nodes=9):
    """Any tree, deep or bushy, siblings in any order."""
    dice = random.Random(seed)
    parents = tuple(dice.randint(ROOT, node - 1) for node in range(nodes))
    ids = tuple(dice.randrange(tiny.VOCABULARY) for _ in range(nodes))
    return Draft(ids, parents, ("toy",) * nodes, (None,) * nodes, (None,) * nodes)


@torch.inference_mode()
def alone(model, ids):
    """The last row's logits and final normed state, by transformers without any cache or mask."""
    output = model(torch.tensor([ids]), output_hidden_states=True)
    return output.logits[0, -1], output.hidden_states[-1][0, -1]


def assert_close(left, right):
    torch.testing.assert_close(left, right, rtol=1e-9, atol=1e-9)


@targets
@shapes
@pytest.mark.parametrize("held", [0, 5, len(PREFIX) - 1], ids=lambda held: f"{held} rows held")
def test_a_node_scores_as_its_path_alone(target, shape, held, models, lms):
    lm, draft = lms[target], random_tree(shape)
    memo = lm.new_memo()
    for _ in lm.read(memo, PREFIX[: held + 1]):
        pass

    scores = lm.score(memo, PREFIX, draft, taps=(-1,))

    for row, path in enumerate([(), *(draft.path_ids(node) for node in range(len(draft)))]):
        logits, state = alone(models[target], [*PREFIX, *path])
        assert_close(scores.logits[row], logits)
        assert_close(scores.hidden[-1][row], state)


@targets
@shapes
def test_passengers_see_the_prefix_and_each_other_and_disturb_nobody(target, shape, models, lms):
    lm, draft = lms[target], random_tree(shape, nodes=4)
    sees = torch.tensor([[1, 0, 0], [1, 1, 0], [0, 0, 1]], dtype=torch.bool)
    riders = Passengers((3, 4, 5), (1, 2, 1), sees)

    scores = lm.score(lm.new_memo(), PREFIX, draft, riders)

    paths = [(), *(draft.path_ids(node) for node in range(len(draft))), (3,), (3, 4), (5,)]
    assert len(scores.logits) == len(paths)
    for row, path in enumerate(paths):
        assert_close(scores.logits[row], alone(models[target], [*PREFIX, *path])[0])


@targets
@shapes
def test_keeping_any_path_leaves_a_memo_to_go_on_from(target, shape, models, lms):
    lm, draft = lms[target], random_tree(shape)
    for node in (ROOT, *range(len(draft))):
        memo = lm.new_memo()
        scores = lm.score(memo, PREFIX, draft)

        scores.keep(draft.path(node))

        ids = [*PREFIX, *draft.path_ids(node)]
        assert memo.ids == ids
        assert_close(lm.score(memo, [*ids, 9]).logits[0], alone(models[target], [*ids, 9])[0])


@targets
@pytest.mark.parametrize("seed", range(4))
def test_any_history_of_passes_leaves_no_trace(target, seed, models, lms):
    dice, lm = random.Random(seed), lms[target]
    memo, ids = lm.new_memo(), list(PREFIX)
    for step in range(12):
        draft = random_tree(dice.random(), nodes=dice.randint(0, 6))
        scores = lm.score(memo, ids, draft)
        assert_close(scores.logits[0], alone(models[target], ids)[0])
        kept = dice.randint(ROOT, len(draft) - 1)
        match step % 4:
            case 0 | 1:  # a round
                scores.keep(draft.path(kept))
                ids += [*draft.path_ids(kept), dice.randrange(100)]
            case 2:  # a pass that nobody kept, then another turn
                ids += [dice.randrange(100) for _ in range(dice.randint(1, 20))]
            case _:  # an edit further up
                scores.keep(draft.path(kept))
                ids = [*ids[: dice.randint(2, len(ids))], dice.randrange(100)]


@targets
def test_a_prompt_read_in_chunks_is_read_as_one(target, models, lms):
    lm, ids = lms[target], [token % 200 for token in range(300)]
    memo = lm.new_memo()

    chunks = list(lm.read(memo, ids, taps=(-1,)))

    assert [chunk.first for chunk in chunks] == [0, 128, 256]
    assert sum(chunk.rows for chunk in chunks) == len(ids) - 1 == len(memo.ids)
    assert_close(chunks[1].hidden[-1][-1], alone(models[target], ids[:256])[1])
    assert_close(lm.score(memo, ids).logits[0], alone(models[target], ids)[0])


@targets
def test_a_reading_that_stops_early_goes_on_where_it_stopped(target, models, lms):
    lm, ids = lms[target], [token % 200 for token in range(300)]
    memo = lm.new_memo()
    next(lm.read(memo, ids))

    rest = list(lm.read(memo, ids))

    assert [chunk.first for chunk in rest] == [128, 256]
    assert_close(lm.score(memo, ids).logits[0], alone(models[target], ids)[0])


@shapes
@pytest.mark.parametrize("kind", [tiny.llama, tiny.gemma], ids=["llama", "gemma"])
def test_eager_attention_sees_no_more_than_sdpa(kind, shape):
    model, draft = kind(5), random_tree(shape)
    plain = TransformersLM(model)
    expected = plain.score(plain.new_memo(), PREFIX, draft).logits
    model.set_attn_implementation("eager")
    lm = TransformersLM(model)

    scores = lm.score(lm.new_memo(), PREFIX, draft)

    # Eager attention takes its softmax in single precision.
    torch.testing.assert_close(scores.logits, expected, rtol=1e-4, atol=1e-4)


@targets
def test_the_first_layers_share_the_weights_and_leave_the_model_alone(target, models, lms):
    lm = lms[target]
    before = alone(models[target], PREFIX)[0]

    cut = lm.first_layers(2)

    assert (cut.num_layers, lm.num_layers) == (2, models[target].config.num_hidden_layers)
    entered_third = lm.score(lm.new_memo(), PREFIX, taps=(2,)).hidden[2]
    normed = models[target].base_model.norm(entered_third)
    assert_close(cut.score(cut.new_memo(), PREFIX).logits, cut.head(normed.detach()))
    assert_close(alone(models[target], PREFIX)[0], before)


@targets
def test_embed_and_head_are_the_models_own(target, models, lms):
    lm, model = lms[target], models[target]
    logits, state = alone(model, PREFIX)

    assert_close(lm.head(state[None])[0], logits)
    assert_close(
        lm.embed(torch.tensor([3, 4])), model.get_input_embeddings()(torch.tensor([3, 4])).detach()
    )


def test_padded_ids_are_never_scored():
    lm = TransformersLM(tiny.llama(1, vocabulary=300), vocabulary=271)

    scores = lm.score(lm.new_memo(), PREFIX)

    assert scores.logits.shape == (1, 271)
    assert lm.head(torch.zeros(1, 32, dtype=torch.float64)).shape == (1, 271)


@targets
def test_a_memo_that_holds_more_scores_its_own_beginning(target, models, lms):
    lm, memo = lms[target], lms[target].new_memo()
    for _ in lm.read(memo, [*PREFIX, 1, 2]):
        pass

    for length in (len(PREFIX), len(PREFIX) - 1, 5, 1):
        ids = PREFIX[:length]
        assert_close(lm.score(memo, ids).logits[0], alone(models[target], ids)[0])
