"""`python -m engine train`, from a folder with a model to a drafter that drafts for it."""

from __future__ import annotations

import json
import shutil
import threading

import pytest
import torch
from safetensors.torch import load_file

from engine.__main__ import main
from engine.engine import Engine
from engine.errors import DrafterMismatch
from engine.events import Round
from engine.params import ReplyParams, SamplingParams
from engine.training.checkpoint import Checkpoint
from engine.training.recipe import DrafterKind

kinds = pytest.mark.parametrize("kind", DrafterKind, ids=str)
PROMPTS = "\n".join(f"Tell me about the {word}." for word in ("sea", "sky", "moon", "rain"))


@pytest.fixture(scope="module")
def work(llama_folder, tmp_path_factory):
    """Texts and states that serve all kinds."""
    folder = tmp_path_factory.mktemp("shared")
    train(llama_folder, folder / "out", "eagle3", "--work", folder / "work", tokens=200)
    return folder / "work"


def train(target, out, kind, *more, tokens=3000):
    options = ["--target", target, "--kind", kind, "--out", out, "--device", "cpu"]
    length = ["--text", 800, "--tokens", tokens]
    return main(["train", *map(str, [*options, *length, *more])])


@kinds
def test_a_drafter_is_trained_and_drafts_and_changes_nothing(
    kind, llama_folder, work, tmp_path, capsys
):
    before = {path: path.stat().st_mtime_ns for path in work.rglob("*") if path.is_file()}

    assert train(llama_folder, tmp_path, kind, "--work", work) == 0

    assert {path: path.stat().st_mtime_ns for path in before} == before

    assert str(tmp_path) in capsys.readouterr().out
    engine = Engine.load(llama_folder, device="cpu")
    params = ReplyParams(SamplingParams(), max_new_tokens=24)
    plain, drafted = (
        rounds(engine.new_session(drafter=spec), params) for spec in ("off", f"{kind}:{tmp_path}")
    )
    assert ids(drafted) == ids(plain)
    assert sum(len(each.nodes) for each in drafted) > 0
    assert {node.drafter for each in drafted for node in each.nodes} == {str(kind)}


def rounds(session, params):
    session.drafting.draft_length = 3
    events = session.reply("Tell me about the sea.", params, threading.Event())
    return [event for event in events if isinstance(event, Round)]


def ids(found):
    return [token.id for each in found for token in each.tokens]


def test_the_card_tells_data_recipe_figures_and_licence(llama_folder, tmp_path):
    prompts = tmp_path / "mine.txt"
    prompts.write_text(PROMPTS, encoding="utf-8")
    train(llama_folder, tmp_path / "out", "medusa", "--prompts", prompts, "--seed", 3)

    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    config = json.loads((tmp_path / "out" / "config.json").read_text(encoding="utf-8"))

    for said in (
        "mine.txt",
        "| seed | 3 |",
        "## Licence",
        "Medusa heads for",
        "survival",
        "tokens)",
    ):
        assert said in card
    assert config["base_model_fingerprint"] in card
    assert f"| residual blocks a head | {config['medusa_num_layers']} |" in card
    assert len(config["rank_accuracies"]) == config["medusa_num_heads"]


def test_the_same_command_goes_on_and_does_nothing_twice(llama_folder, tmp_path, capsys):
    train(llama_folder, tmp_path, "eagle", tokens=2000)
    names = ["README.md", "config.json", "learning.safetensors", "model.safetensors", "work"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    made = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("work/**/*") if path.is_file()}
    first = (tmp_path / "model.safetensors").read_bytes()
    capsys.readouterr()

    assert train(llama_folder, tmp_path, "eagle", tokens=2000) == 0

    assert (tmp_path / "model.safetensors").read_bytes() == first
    assert "Learning" not in capsys.readouterr().err
    assert {path: path.stat().st_mtime_ns for path in made} == made

    assert train(llama_folder, tmp_path, "eagle", tokens=4000) == 0
    assert (tmp_path / "model.safetensors").read_bytes() != first


def kept(folder):
    standing = Checkpoint(folder / "learning.safetensors", {}).read()
    assert standing is not None
    return standing


def test_with_more_text_a_drafter_goes_on_with_the_ids_that_it_drafts(llama_folder, tmp_path):
    train(llama_folder, tmp_path, "eagle", "--text", 300, tokens=2000)
    before = kept(tmp_path)

    assert train(llama_folder, tmp_path, "eagle", "--text", 1500, tokens=4000) == 0

    after = kept(tmp_path)
    assert after.step > before.step
    assert after.ids.tolist() == before.ids.tolist()
    written = load_file(tmp_path / "model.safetensors")
    assert (written["d2t"] + torch.arange(len(after.ids))).tolist() == after.ids.tolist()


@kinds
def test_any_target_of_transformers_will_do(kind, gemma_folder, tmp_path):
    """Other norms, windows, and a GELU: nothing of its layers can be copied."""
    assert train(gemma_folder, tmp_path, kind, "--dtype", "float32") == 0

    engine = Engine.load(gemma_folder, device="cpu", dtype="float32")
    params = ReplyParams(SamplingParams(), max_new_tokens=12)
    found = rounds(engine.new_session(drafter=f"{kind}:{tmp_path}"), params)
    assert sum(len(each.nodes) for each in found) > 0


def test_a_draft_model_serves_its_target_alone(llama_folder, work, tmp_path, capsys):
    train(llama_folder, tmp_path / "mine", "draft-model", "--work", work)
    config = json.loads((tmp_path / "mine" / "config.json").read_text(encoding="utf-8"))
    shutil.copytree(tmp_path / "mine", tmp_path / "other")
    config["vocab_size"] += 5
    (tmp_path / "other" / "config.json").write_text(json.dumps(config), encoding="utf-8")
    engine = Engine.load(llama_folder, device="cpu")

    with pytest.raises(DrafterMismatch, match="is for another model"):
        engine.drafter(f"draft-model:{tmp_path / 'other'}")
    assert main(["chat", "--target", str(tmp_path / "mine"), "Hello"]) == 1
    assert "borrows parts of its target" in capsys.readouterr().err
