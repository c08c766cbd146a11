"""Writing leaves the states of its texts behind, and reading does what writing could not."""

from __future__ import annotations

import errno
import threading

import pytest
from safetensors.torch import load_file

from engine.engine import Engine
from engine.errors import EngineError
from engine.models.causal_lm import FINAL
from engine.models.native.native_lm import NativeLM
from engine.training.features import FeatureStore, features
from engine.training.files import write_through
from engine.training.job import Job, Training
from engine.training.prompts import TrainingPrompt
from engine.training.recipe import RECIPES, DrafterKind
from engine.training.store import TextStore
from engine.training.writing import Writing, write_texts
from tests.engine.fakes import TableLM
from tests.engine.models.gguf_models import llama
from tests.engine.models.gguf_writer import contents
from tests.engine.models.native_pairs import error, native

TAPS = (1, FINAL)
PLENTY = 10**9
NEARLY = 0.05
ONCE = Writing(seats=12)


@pytest.fixture(scope="module")
def lm(tmp_path_factory):
    path = tmp_path_factory.mktemp("written_states") / "model.gguf"
    decoder = native(contents(llama(), "Q8_0").write(path)).decoder
    return NativeLM(decoder, vocabulary=100, end_ids=frozenset(range(90, 100)))


class Speaker:
    """Texts are digits, an id each, and a turn ends with an id of its own."""

    def __init__(self, lm):
        self.lm = lm

    def prompt_ids(self, messages):
        return [token for turn in messages for token in (*map(int, turn.content), 10)]

    def text(self, ids):
        return "".join(str(token % 10) for token in ids)


def prompts(count):
    return [TrainingPrompt("count", (str(7**number),)) for number in range(count)]


def texts_in(folder):
    return TextStore(folder / "texts", "a target")


def states_in(folder, *, most_bytes=PLENTY, **options):
    return FeatureStore(folder / "states", "a target", TAPS, most_bytes=most_bytes, **options)


def write(folder, lm, count, states, *, told=lambda progress: None):
    write_texts(
        *(Speaker(lm), prompts(count), texts_in(folder), states, ONCE),
        told=told,
        stop=threading.Event(),
    )
    return texts_in(folder).read()


def read(states, lm, texts):
    """How many texts had to be read."""
    told = []
    states.fill(lm, texts, told=told.append, stop=threading.Event())
    return len(told)


def assert_are_of(examples, lm, texts):
    by_ids = {tuple(example.ids.tolist()): example for example in examples}
    assert by_ids.keys() == {each.text.ids for each in texts}
    for each in texts:
        example, own = by_ids[each.text.ids], features(lm, each.text, TAPS)
        assert example.first_reply == each.text.first_reply
        for tap in TAPS:
            assert error(example.hidden[tap], own.hidden[tap].float()) < NEARLY


def used(folder):
    return sum(path.stat().st_size for path in folder.glob("states/*"))


def test_writing_on_a_native_model_leaves_nothing_to_read(tmp_path, lm):
    texts = write(tmp_path, lm, 80, states_in(tmp_path))

    assert len(texts) == 80
    assert read(states_in(tmp_path), lm, texts) == 0
    assert_are_of(states_in(tmp_path).examples(), lm, texts)


def test_more_writing_adds_to_what_there_is(tmp_path, lm):
    write(tmp_path, lm, 10, states_in(tmp_path))

    texts = write(tmp_path, lm, 20, states_in(tmp_path))

    assert len(texts) == 20
    assert_are_of(states_in(tmp_path).examples(), lm, texts)


@pytest.mark.parametrize("room", [0, 200_000])
def test_texts_whose_states_do_not_fit_are_kept_without_them(tmp_path, lm, room):
    texts = write(tmp_path, lm, 80, states_in(tmp_path, most_bytes=room))

    kept = states_in(tmp_path).examples()
    assert len(texts) == 80
    assert len(kept) < 80
    assert used(tmp_path) <= room
    assert bool(kept) == bool(room)
    assert read(states_in(tmp_path), lm, texts) == 80 - len(kept)
    assert_are_of(states_in(tmp_path).examples(), lm, texts)


def test_after_a_kill_between_texts_and_states_the_missing_ones_are_read(tmp_path, lm):
    def kill(path, content):
        if list(path.parent.glob("*.safetensors")):
            raise KeyboardInterrupt
        write_through(path, content)

    with pytest.raises(KeyboardInterrupt):
        write(tmp_path, lm, 80, states_in(tmp_path, write=kill))
    texts = write(tmp_path, lm, 80, states_in(tmp_path))

    assert len(texts) == 80
    assert 0 < read(states_in(tmp_path), lm, texts) <= 64
    assert_are_of(states_in(tmp_path).examples(), lm, texts)


def test_a_disk_that_is_full_of_states_is_said_and_the_texts_stay(tmp_path, lm):
    def full(path, content):
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(EngineError, match="The disk is full"):
        write(tmp_path, lm, 20, states_in(tmp_path, write=full))

    texts = texts_in(tmp_path).read()
    assert len(texts) == 20
    assert read(states_in(tmp_path), lm, texts) == 20


def test_texts_written_anew_do_not_double_their_states(tmp_path, lm):
    write(tmp_path, lm, 20, states_in(tmp_path))
    for shard in tmp_path.glob("texts/*"):
        shard.unlink()

    write(tmp_path, lm, 20, states_in(tmp_path))

    assert len(states_in(tmp_path).examples()) == 20


def test_a_model_that_is_not_native_is_read_afterwards(tmp_path):
    lm = TableLM.random(4, vocabulary=14, end_ids=frozenset({11}))

    texts = write(tmp_path, lm, 5, states_in(tmp_path))

    assert len(texts) == 5
    assert not tmp_path.joinpath("states").exists()
    assert read(states_in(tmp_path), lm, texts) == 5


def test_a_training_on_a_native_model_has_nothing_to_read(llama_folder, tmp_path):
    engine = Engine.load(llama_folder, device="cpu", dtype="int8")
    assert isinstance(engine.lm, NativeLM)
    recipe = RECIPES[DrafterKind.EAGLE3]
    training = Training(engine, Job(tmp_path / "out", tmp_path / "work", recipe, 300))
    told = []

    training.write(lambda progress: None, threading.Event())
    training.read(told.append, threading.Event())

    assert not told
    shards = [load_file(path) for path in tmp_path.glob("work/states/*")]
    assert shards
    for shard in shards:
        assert shard.keys() == {"ids", "tap.0", "tap.1", "tap.2", "tap.-1"}
