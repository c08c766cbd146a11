"""Loading targets and drafters: what fits, what does not, and why, in words."""

from __future__ import annotations

import json
import shutil
import threading

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    BloomConfig,
    BloomForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    Lfm2Config,
    Lfm2ForCausalLM,
)

from engine.costs import LENGTHS, MOST_ROWS
from engine.drafters import FAMILIES
from engine.drafters.family import Setting
from engine.drafters.shared_words import SharedWordsDrafter
from engine.drafters.through_text import TextDrafter
from engine.engine import Engine
from engine.errors import DrafterMismatch, EngineError, LoadCancelled, ModelError, OutOfMemory
from engine.kept_costs import CostFile, Kept, Trial
from engine.models import transformers_loading
from engine.models.catalog import find_model
from engine.models.folders import cache_folder
from engine.models.transformers_lm import TransformersLM
from engine.params import ReplyParams
from tests.engine import models_for_tests as tiny
from tests.engine.fakes import Bench


@pytest.fixture(scope="module")
def engine(llama_folder):
    return Engine.load(llama_folder, device="cpu", dtype="float64")


def load(path, **options):
    return Engine.load(path, device="cpu", dtype="float64", **options)


def reply_text(engine, drafter, prompt="the cat"):
    session = engine.new_session(drafter=drafter)
    for _ in session.reply(prompt, ReplyParams(max_new_tokens=8), threading.Event()):
        pass
    return session.messages[-1].content


def test_a_loaded_engine_knows_itself_and_has_a_measured_baseline(engine, llama_folder):
    assert engine.name == llama_folder.name
    assert (engine.device, engine.dtype) == ("cpu", "float64")
    assert engine.context_length == 512
    assert not engine.bit_exact
    assert engine.baseline.reading(0).source == "calibration"


def test_loading_measures_what_rows_cost_and_keeps_it_for_the_next_time(engine, llama_folder):
    file = CostFile(cache_folder() / "costs", llama_folder, device="cpu", dtype="float64")

    kept = file.read()

    assert {1, 4, 5, 8, 9} <= kept.readings[LENGTHS[0]].keys()
    assert kept.trials == {"layer-skip": engine.trial("layer-skip")}
    assert kept.readings.keys() == engine.costs.readings().keys()
    assert len(engine.costs.ratios(100)) == MOST_ROWS


@pytest.fixture
def tried(llama_folder):
    """Load the target as if layer skip's trial had ended like this."""
    file = CostFile(cache_folder() / "costs", llama_folder, device="cpu", dtype="float64")
    before = file.read()

    def loaded(trial):
        file.write(Kept(before.readings, {"layer-skip": trial}))
        return load(llama_folder)

    yield loaded
    file.write(before)


def row_of(engine, spec):
    [row] = [row for row in engine.drafter_choices() if row.spec == spec]
    return row


@pytest.mark.parametrize("choice", ["1", None])
def test_a_kept_trial_is_not_run_again(tried, choice):
    engine = tried(Trial(choice))

    assert engine.trial("layer-skip") == Trial(choice)
    assert engine.pays("layer-skip") is (choice is not None)
    assert ("layer-skip" in engine.drafter("auto").proposers) is (choice is not None)


def test_the_exit_that_gained_most_is_taken_where_nobody_chose_one(tried):
    engine = tried(Trial("1"))

    assert engine.drafter("layer-skip")._lm.num_layers == 1
    assert engine.drafter("layer-skip@2")._lm.num_layers == 2
    assert row_of(engine, "layer-skip").settings == (Setting("Layers", 1, 2, default=1),)
    assert row_of(engine, "layer-skip").note is None


def test_where_no_exit_pays_the_list_says_so_and_layer_skip_can_still_be_chosen(tried):
    engine = tried(Trial(None))

    row = row_of(engine, "layer-skip")

    assert row.reason is None
    assert row.note is not None
    assert row.note.startswith("no exit of this model pays; ")
    assert row.settings == (Setting("Layers", 1, 2, default=2),)
    assert engine.drafter("layer-skip")._lm.num_layers == 2
    assert engine.drafter("layer-skip@1")._lm.num_layers == 1


def test_a_model_that_cannot_be_cut_loads_and_says_so_when_layer_skip_is_chosen(tmp_path):
    config = GPT2Config(
        vocab_size=tiny.VOCABULARY, n_embd=32, n_layer=3, n_head=2, bos_token_id=0, eos_token_id=0
    )
    engine = load(tiny.write(tmp_path / "gpt2", GPT2LMHeadModel(config), tiny.tokenizer()))

    assert not engine.pays("layer-skip")
    with pytest.raises(ModelError, match="decoder layers stand in one list"):
        engine.drafter("layer-skip")


def test_the_list_says_what_can_be_set_and_what_grows_trees(engine):
    rows = {choice.spec: choice for choice in engine.drafter_choices()}

    assert [setting.default for setting in rows["lookahead"].settings] == [7, 5, 7]
    assert {name for name, row in rows.items() if row.settings} == {"layer-skip", "lookahead"}
    assert {name for name, row in rows.items() if row.grows_trees} >= {"suffix", "eagle3"}
    assert not rows["ngram"].grows_trees


def test_a_draft_model_joins_auto_where_it_is_named_and_nowhere_else(llama_folder, draft_folder):
    engine = load(llama_folder)
    engine.drafter(f"draft-model:{draft_folder}")

    assert "draft-model" not in engine.drafter("auto").proposers
    assert "draft-model" in engine.drafter(f"auto:{draft_folder}").proposers


def test_progress_is_told_and_loading_can_be_cancelled_between_steps(llama_folder):
    told, stop = [], threading.Event()

    def progress(text, share):
        told.append(text)
        if text == "Reading the weights":
            stop.set()

    with pytest.raises(LoadCancelled):
        load(llama_folder, progress=progress, stop=stop)

    assert told == ["Finding the model", "Reading the tokenizer", "Reading the weights"]


def test_a_path_with_spaces_and_letters_of_all_kinds_loads(llama_folder, tmp_path):
    folder = tmp_path / "Modèle Größe 模型 \u3000 \u0430"
    shutil.copytree(llama_folder, folder)

    assert load(folder).name == folder.name


def test_damaged_weights_are_a_sentence(llama_folder, tmp_path):
    folder = tmp_path / "damaged"
    shutil.copytree(llama_folder, folder)
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])

    with pytest.raises(ModelError, match="could not be read as a model; it may be damaged"):
        load(folder)


def test_a_context_that_no_chat_fits_into_is_a_sentence(llama_folder, tmp_path):
    folder = tmp_path / "short"
    shutil.copytree(llama_folder, folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"max_position_embeddings": 8}))

    with pytest.raises(ModelError, match="reads at most 8 tokens, which is too few for a chat"):
        load(folder)


def test_a_truncated_gguf_is_a_sentence(tmp_path):
    path = tmp_path / "short.gguf"
    path.write_bytes(b"GGUF" + (3).to_bytes(4, "little") + (5).to_bytes(8, "little") + b"\0" * 9)

    with pytest.raises(ModelError, match=r"short\.gguf is damaged or incomplete"):
        load(path)


def test_an_unknown_device_or_dtype_names_the_known_ones(llama_folder):
    with pytest.raises(EngineError, match=r'no device "tpu".*cpu'):
        Engine.load(llama_folder, device="tpu")
    with pytest.raises(EngineError, match=r'no dtype "int3".*bfloat16'):
        Engine.load(llama_folder, dtype="int3")


def test_a_model_without_a_template_says_so_and_completes(plain_folder):
    engine = load(plain_folder)

    assert "no chat template" in engine.notes[0]
    assert reply_text(engine, "ngram") == reply_text(engine, "off")


def test_every_family_is_listed_and_says_what_must_be_chosen_first(engine):
    choices = {choice.spec: choice for choice in engine.drafter_choices()}

    assert list(choices) == [family.name for family in FAMILIES]
    assert all(choice.reason is None for choice in choices.values())
    needy = {spec for spec, choice in choices.items() if choice.needs}
    assert {"draft-model", "suffix+draft-model"} <= needy
    assert needy.isdisjoint({"off", "auto", "ngram", "layer-skip", "suffix", "lookahead"})


def test_a_draft_model_with_padded_vocabulary_fits_and_changes_nothing(
    engine, draft_folder, padded_draft_folder
):
    plain = reply_text(engine, "off")

    assert reply_text(engine, f"draft-model:{draft_folder}") == plain
    assert reply_text(engine, f"draft-model:{padded_draft_folder}") == plain


def test_a_draft_model_is_loaded_once(engine, draft_folder):
    assert engine.draft_lm(str(draft_folder)) is engine.draft_lm(str(draft_folder))


def test_a_draft_model_with_another_tokenizer_drafts_through_text(engine, other_folder):
    plain = reply_text(engine, "off")

    for family in ("draft-model", "suffix+draft-model", "shared-draft-model"):
        assert reply_text(engine, f"{family}:{other_folder}") == plain
    assert isinstance(engine.drafter(f"draft-model:{other_folder}"), TextDrafter)
    assert isinstance(engine.drafter(f"shared-draft-model:{other_folder}"), SharedWordsDrafter)


def swapped(folder, *pairs):
    """A model in a folder, with the names of some of its tokens exchanged."""
    tiny.write(folder, tiny.llama(5), tiny.tokenizer())
    file = folder / "tokenizer.json"
    spelled = file.read_text(encoding="utf-8")
    for one, other in pairs:
        spelled = spelled.replace(f'"{one}":', '"§":').replace(f'"{other}":', f'"{one}":')
        spelled = spelled.replace('"§":', f'"{other}":')
    file.write_text(spelled, encoding="utf-8")
    return str(folder)


def test_ids_are_shared_where_all_mean_the_same(engine, draft_folder, other_folder, tmp_path):
    assert engine.shares_ids(str(draft_folder))
    assert engine.shares_ids(engine.source)
    assert not engine.shares_ids(str(other_folder))
    assert not engine.shares_ids(swapped(tmp_path / "swapped", ("a", "b")))


def with_more(words, *names):
    """The tokenizer with more controls."""
    words.add_special_tokens({"additional_special_tokens": [*tiny.ROLES, *names]})
    return words


def test_a_control_that_one_of_them_lacks_does_not_part_them(draft_folder, tmp_path):
    """The conversation holds it, and the draft model has no row for it."""
    words = with_more(tiny.tokenizer(), "<|tool|>")
    words.chat_template = "<|tool|>" + tiny.CHAT_TEMPLATE
    folder = tiny.write(tmp_path / "more", tiny.llama(2, vocabulary=tiny.VOCABULARY + 1), words)
    engine = load(folder)

    assert engine.shares_ids(str(draft_folder))
    drafter = f"draft-model:{draft_folder}"
    assert reply_text(engine, drafter) == reply_text(engine, "off")


def test_a_tokenizer_that_nobody_can_follow_is_a_sentence_before_any_weight_is_read(
    engine, tmp_path
):
    folder = tiny.write(tmp_path / "odd", tiny.llama(5), tiny.tokenizer())
    (folder / "model.safetensors").write_bytes(b"")
    words = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    words["model"]["vocab"] = {f"{piece}#": at for piece, at in words["model"]["vocab"].items()}
    words["model"]["merges"] = []
    (folder / "tokenizer.json").write_text(json.dumps(words), encoding="utf-8")

    for family in ("draft-model", "shared-draft-model", "auto"):
        with pytest.raises(EngineError, match=r"The tokenizer of odd spells text in a way"):
            engine.drafter(f"{family}:{folder}")


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("nonsense", 'no drafter "nonsense"'),
        ("ngram:5", "takes no choice"),
        ("off@3", "takes no choice"),
        ("layer-skip@many", "takes the number of layers"),
        ("layer-skip@3", "between 1 and 2"),
        ("layer-skip@0", "between 1 and 2"),
        ("draft-model", "Choose a draft model"),
        ("draft-model:", "Choose a draft model"),
        ("draft-model:/no/such", "no file or folder"),
        ("shared-draft-model", "Choose a draft model"),
        ("shared-draft-model:/no/such", "no file or folder"),
        ("medusa", "Choose a folder with Medusa heads"),
        ("eagle", "Choose a folder with an EAGLE head"),
        ("eagle:", "Choose a folder with an EAGLE head"),
        ("eagle3:/no/such", "no folder at"),
    ],
)
def test_a_drafter_that_makes_no_sense_is_a_sentence(engine, spec, sentence):
    with pytest.raises(EngineError, match=sentence):
        engine.drafter(spec)


def test_a_single_layer_cannot_skip_any(draft_folder):
    engine = load(draft_folder)

    assert row_of(engine, "layer-skip").reason == "this model has a single layer"
    with pytest.raises(DrafterMismatch, match="single layer"):
        engine.drafter("layer-skip")


def test_no_memory_left_is_a_sentence_and_the_engine_lives(engine, monkeypatch):
    session = engine.new_session()
    forward = engine.lm._model.forward

    def no_memory(*args, **kwargs):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 9 GiB")

    monkeypatch.setattr(engine.lm._model, "forward", no_memory)
    with pytest.raises(OutOfMemory, match=r"No memory is left on cpu\. Choose a smaller model"):
        list(session.reply("the cat", ReplyParams(max_new_tokens=8), threading.Event()))
    monkeypatch.setattr(engine.lm._model, "forward", forward)

    assert session.messages == []
    assert reply_text(engine, "off")


def test_no_memory_left_while_loading_is_a_sentence(llama_folder, monkeypatch):
    def no_memory(*args, **kwargs):
        raise RuntimeError("[enforce fail] DefaultCPUAllocator: not enough memory: you tried to")

    monkeypatch.setattr(
        transformers_loading.AutoModelForCausalLM, "from_pretrained", no_memory, raising=True
    )

    with pytest.raises(OutOfMemory):
        transformers_loading.load_model(find_model(llama_folder), device="cpu", dtype=torch.float32)


def test_layer_skip_runs_the_targets_own_weights(engine):
    cut = engine.lm.first_layers(2)

    ids = list(range(20))
    whole = engine.lm._model.base_model
    states = whole(torch.tensor([ids]), output_hidden_states=True).hidden_states[2][0, -1:]
    expected = engine.lm.head(whole.norm(states))
    torch.testing.assert_close(cut.score(cut.new_memo(), ids).logits, expected)
    assert engine.lm.score(engine.lm.new_memo(), ids).logits.shape == (1, engine.lm.vocabulary)


def test_taps_are_the_states_that_enter_layers_and_the_normed_last_one(engine):
    ids = list(range(20))

    scores = engine.lm.score(engine.lm.new_memo(), ids, taps=(0, 2, -1))

    everything = engine.lm._model(torch.tensor([ids]), output_hidden_states=True).hidden_states
    for tap in (0, 2, -1):
        torch.testing.assert_close(scores.hidden[tap], everything[tap][0, -1:])
    torch.testing.assert_close(engine.lm.embed(torch.tensor(ids[-1:])), scores.hidden[0])
    torch.testing.assert_close(engine.lm.head(scores.hidden[-1]), scores.logits)


def test_eager_attention_gets_a_mask_that_it_can_add():
    model = tiny.llama(1)
    ids = list(range(20))
    expected = TransformersLM(model).score(TransformersLM(model).new_memo(), ids).logits
    model.set_attn_implementation("eager")
    lm = TransformersLM(model)

    # Eager attention takes its softmax in float32.
    logits = lm.score(lm.new_memo(), ids).logits
    torch.testing.assert_close(logits, expected, rtol=1e-4, atol=1e-5)


def recurrent_lm():
    config = Lfm2Config(
        vocab_size=60,
        hidden_size=32,
        intermediate_size=48,
        num_attention_heads=4,
        num_key_value_heads=2,
        num_hidden_layers=2,
        layer_types=["conv", "full_attention"],
    )
    return TransformersLM(Lfm2ForCausalLM(config).double().eval())


def test_a_model_that_cannot_go_back_reads_again_what_it_must():
    lm = recurrent_lm()
    ids = [token % 60 for token in range(7, 7 + 150)]
    memo = lm.new_memo()

    for length in (140, 141, 145, 20, 150):
        scores = lm.score(memo, ids[:length])
        scores.keep()

        fresh = lm.score(lm.new_memo(), ids[:length])
        torch.testing.assert_close(scores.logits, fresh.logits)
        assert memo.ids == ids[:length]


def test_a_model_that_cannot_go_back_offers_plain_decoding_and_says_why():
    bench = Bench(recurrent_lm(), recurrent_lm())

    reasons = {family.name: family.reason(bench) for family in FAMILIES}

    assert reasons.pop("off") is None
    assert set(reasons.values()) == {"this model's memory can't go back"}


def test_a_model_that_loads_but_does_not_run_is_a_sentence(tmp_path):
    config = BloomConfig(vocab_size=tiny.VOCABULARY, hidden_size=32, n_layer=2, n_head=4)
    folder = tiny.write(tmp_path / "bloom", BloomForCausalLM(config), tiny.tokenizer())

    with pytest.raises(ModelError, match="bloom loads, but it can't be run"):
        load(folder)


def test_weights_that_give_no_numbers_are_refused(tmp_path):
    model = tiny.llama(3)
    with torch.no_grad():
        model.model.norm.weight[0] = torch.nan
    folder = tiny.write(tmp_path / "nan", model, tiny.tokenizer())

    with pytest.raises(ModelError, match="nan computes numbers that are none"):
        Engine.load(folder, device="cpu", dtype="float32")


def test_a_model_that_lacks_a_tensor_is_refused_and_nothing_is_made_up(tmp_path):
    folder = tiny.write(tmp_path / "lacking", tiny.llama(3), tiny.tokenizer())
    held = load_file(folder / "model.safetensors")
    del held["model.layers.1.mlp.up_proj.weight"]
    save_file(held, folder / "model.safetensors", metadata={"format": "pt"})

    with pytest.raises(ModelError, match=r"it lacks model\.layers\.1\.mlp\.up_proj\.weight"):
        Engine.load(folder, device="cpu")
