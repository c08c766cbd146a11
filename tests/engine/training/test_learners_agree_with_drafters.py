"""A learner computes what its exported drafter computes, at every place and depth of a text."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest
import torch
from safetensors.torch import load_file
from transformers import LlamaConfig, LlamaForCausalLM

from engine.drafters.drafter import Context, Observation
from engine.drafters.eagle import EagleDrafter
from engine.drafters.eagle_loading import load_eagle, load_eagle3
from engine.drafters.eagle_memory import EagleMemory
from engine.drafters.eagle_tree import ConfidentPlan
from engine.drafters.medusa import MedusaDrafter
from engine.drafters.medusa_heads import load_medusa
from engine.models.causal_lm import FINAL
from engine.models.kv_memo import common_prefix
from engine.models.native.borrowing import load_borrowing
from engine.models.transformers_lm import TransformersLM
from engine.params import SamplingParams
from engine.planning import Budget
from engine.sampling import Noise
from engine.training.batches import packed
from engine.training.export import write_folder
from engine.training.recipe import DrafterKind
from engine.training.sharpness import CHOICES
from engine.training.unrolling import unroll
from tests.engine import models_for_tests as tiny
from tests.engine.training.made import CPU, example, examples, learner_of, shaken

VOCABULARY, DEPTHS = 40, 3
LOAD = {"eagle": load_eagle, "eagle3": load_eagle3}

kinds = pytest.mark.parametrize("kind", ["eagle", "eagle3"])
vocabularies = pytest.mark.parametrize(
    "known", [range(VOCABULARY), range(1, VOCABULARY, 3)], ids=["whole", "reduced"]
)


@pytest.fixture(scope="module")
def lm():
    return TransformersLM(tiny.llama(5, vocabulary=VOCABULARY, layers=4))


@pytest.fixture(scope="module")
def made(lm):
    return examples(lm)


def learnt(kind, lm, made, known):
    return shaken(learner_of(DrafterKind(kind), lm, made, ids=known, depths=DEPTHS))


def exported(folder, learner, made):
    measured_on = [packed(made, learner.taps, CPU)]
    write_folder(folder, learner.export(measured_on, measured_on), "")
    return str(folder)


@pytest.mark.parametrize("kind", ["medusa", "eagle", "eagle3"])
def test_heads_say_how_much_their_log_q_counts(kind, lm, made, tmp_path):
    learner = learnt(kind, lm, made, range(VOCABULARY))

    config = json.loads((Path(exported(tmp_path, learner, made)) / "config.json").read_text())

    assert config["sharpness"] in CHOICES


def close(ours, theirs, most=1e-4):
    assert (ours.softmax(-1) - theirs.softmax(-1)).abs().max() < most


@kinds
@vocabularies
def test_an_eagle_head_gives_the_distributions_of_its_learner(kind, known, lm, made, tmp_path):
    learner = learnt(kind, lm, made, known)
    batch = packed(made, learner.taps, CPU)
    head = learner.head()
    tokens = lm.embed(batch.next_ids).float().clone()
    with torch.no_grad():
        guesses = list(unroll(head, batch, head.fused(batch.hidden), tokens, DEPTHS))
        theirs = [head.logits(guess) for guess in guesses]
    loaded = LOAD[kind](exported(tmp_path, learner, made), lm, kind)
    assert loaded.vocabulary.tokens(torch.arange(len(known))) == list(known)

    first = [0] * DEPTHS
    for each in made:
        ids = each.ids.tolist()
        memory = EagleMemory(loaded, lm)
        memory.observe(ids, 0, {tap: each.hidden[tap][: len(ids)] for tap in loaded.taps})
        for root in range(each.first_reply - 1, len(ids) - 1):
            guess = memory.catch_up(ids[: root + 1])
            for depth in range(min(DEPTHS, len(ids) - 1 - root)):
                if depth:
                    row = root + depth - 1
                    guess = loaded.step(guess, [ids[row + 1]], [row], memory.cache, row)
                close(loaded.logits(guess)[0], theirs[depth][first[depth]])
                first[depth] += 1
    assert first == [len(part) for part in theirs]


@vocabularies
def test_medusa_heads_give_the_distributions_of_their_learner(known, lm, made, tmp_path):
    learner = learnt("medusa", lm, made, known)
    loaded = load_medusa(exported(tmp_path, learner, made), lm, "medusa")
    heads = learner.heads()

    assert len(loaded) == DEPTHS
    for each in made:
        for state in each.hidden[FINAL]:
            for head in range(DEPTHS):
                close(loaded.logits(state, head)[0], heads.logits(state.float(), head)[0])


@pytest.mark.parametrize("kind", ["eagle", "eagle3", "medusa"])
@vocabularies
def test_what_a_drafter_gets_right_is_what_its_learner_says(kind, known, lm, made, tmp_path):
    learner = learnt(kind, lm, made, known)
    folder = exported(tmp_path, learner, made)
    if kind == "medusa":
        heads = load_medusa(folder, lm, kind)
        drafter = MedusaDrafter(heads, end_ids=frozenset(), name=kind)
    else:
        drafter = EagleDrafter(LOAD[kind](folder, lm, kind), lm, ConfidentPlan, name=kind)
    agreed = example(lm, half_said(drafter, lm), 4)

    [hits] = learner.hits(packed([agreed], learner.taps, CPU))

    ids = agreed.ids.tolist()
    expected = [
        common_prefix(drafted(drafter, lm, ids[: root + 1]), ids[root + 1 :])
        for root in range(3, len(ids) - 1)
    ]
    assert hits.long().cumprod(1).sum(1).tolist() == expected
    assert {0, DEPTHS} < {*expected}


def half_said(drafter, lm):
    """Ids that the drafter now and then foresees."""
    draw = Random(1)
    ids = [draw.randrange(VOCABULARY) for _ in range(5)]
    while len(ids) < 60:
        ids += drafted(drafter, lm, ids)[: draw.randrange(DEPTHS + 1)]
        ids.append(draw.randrange(VOCABULARY))
    return ids


def drafted(drafter, lm, ids):
    """A chain behind these ids, drafted as in a round."""
    for chunk in lm.read(lm.new_memo(), ids, drafter.taps):
        drafter.observe(Observation(ids[: chunk.done], chunk.first, chunk.hidden))
    budget = Budget(DEPTHS, DEPTHS)
    return list(drafter.propose(Context(ids, 4), budget, SamplingParams(), Noise(0)).ids)


def test_a_draft_model_computes_what_its_learner_does(lm, made, tmp_path):
    known = range(1, VOCABULARY, 3)
    learner = learnt("draft-model", lm, made, known)
    batch = packed(made, learner.taps, CPU)
    folder = exported(tmp_path / "mine", learner, made)
    with torch.no_grad():
        states = learner.states(batch)
        ours = states @ lm.head_rows(torch.tensor(known)).float().T
    whole = TransformersLM(completed(folder, lm))
    native = load_borrowing(Path(folder), lm, device="cpu", bits=None)

    first = 0
    for each in made:
        rows = range(each.first_reply - 1, len(each.ids) - 1)
        for row, row_logits in zip(rows, ours[first:], strict=False):
            ids = each.ids[: row + 1].tolist()
            close(row_logits, whole.score(whole.new_memo(), ids).logits[0, list(known)])
            rounded = native.score(native.new_memo(), ids).logits[0]
            close(row_logits, rounded[list(known)], most=0.1)
            assert int(rounded.isfinite().sum()) == len(known)
        first += len(rows)


def completed(folder, lm):
    """The draft model as an ordinary Llama, with the target's embedding and head."""
    every = torch.arange(VOCABULARY)
    config = LlamaConfig.from_pretrained(folder)
    model = LlamaForCausalLM(config).double().eval()
    tensors = load_file(f"{folder}/model.safetensors")
    tensors |= {
        "model.embed_tokens.weight": lm.embed(every).clone(),
        "lm_head.weight": lm.head_rows(every) @ tensors.pop("output_map.weight").double(),
    }
    del tensors["d2t"]
    model.load_state_dict(tensors)
    return model
