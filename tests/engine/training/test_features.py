"""The target's states on disk: as they were computed, no more than fit, of this target alone."""

from __future__ import annotations

import errno
import json
import threading

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from engine.errors import EngineError
from engine.models.causal_lm import FINAL
from engine.training.examples import Text
from engine.training.features import FeatureStore, features
from engine.training.files import write_through
from engine.training.store import StoredText
from tests.engine.models.gguf_models import llama
from tests.engine.models.gguf_writer import contents
from tests.engine.models.native_pairs import ids_of, native

TAPS = (0, 2, FINAL)
PLENTY = 10**9


@pytest.fixture(scope="module")
def lm(tmp_path_factory):
    path = tmp_path_factory.mktemp("features") / "model.gguf"
    return native(contents(llama(), "Q8_0").write(path))


def texts(count, *, seed=0):
    lengths = [3 + 17 * (number + seed) % 130 for number in range(count)]
    return [
        StoredText(f"prompt {number}", 0, seed, Text(tuple(ids_of(length, seed=number)), 2, 0.8))
        for number, length in enumerate(lengths)
    ]


def store_in(folder, *, target="a target", taps=TAPS, most_bytes=PLENTY, **options):
    return FeatureStore(folder, target, taps, most_bytes=most_bytes, **options)


def fill(store, lm, wanted, *, told=lambda reading: None, stop=None):
    store.fill(lm, wanted, told=told, stop=stop or threading.Event())
    return store.examples()


def used(folder):
    return sum(path.stat().st_size for path in folder.iterdir())


def assert_are_of(examples, wanted, lm, taps=TAPS):
    assert len(examples) == len(wanted)
    for example, stored in zip(examples, wanted, strict=True):
        own = features(lm, stored.text, taps)
        assert example.ids.tolist() == list(stored.text.ids)
        assert example.first_reply == stored.text.first_reply
        assert example.hidden.keys() == set(taps)
        for tap in taps:
            assert example.hidden[tap].equal(own.hidden[tap])


@pytest.mark.parametrize("length", [2, 60, 200])
def test_a_row_is_the_state_after_the_target_has_read_so_far(lm, length):
    ids = ids_of(length)

    example = features(lm, Text(tuple(ids), 1, 0.0), (*TAPS, 1))

    assert all(states.shape == (length - 1, 64) for states in example.hidden.values())
    assert all(states.dtype == torch.bfloat16 for states in example.hidden.values())
    for at in {0, length // 2 - 1, length - 2}:
        scores = lm.score(lm.new_memo(), ids[: at + 1], taps=(FINAL, 1))
        for tap, states in scores.hidden.items():
            own = example.hidden[tap][at].float()
            assert torch.dist(own, states[0].float()) < 0.05 * states.float().norm()


def test_a_model_of_transformers_can_be_read_as_well(lms):
    lm = lms["llama"]

    example = features(lm, Text(tuple(ids_of(20)), 5, 0.0), (0, FINAL))

    logits = lm.head(example.hidden[FINAL].double())
    own = lm.score(lm.new_memo(), ids_of(20)[:-1]).logits[0]
    assert torch.dist(logits[-1], own) < 0.02 * own.norm()
    assert example.hidden[0].shape == (19, 32)


def test_examples_come_back_as_they_were_read(tmp_path, lm):
    wanted = texts(70)

    examples = fill(store_in(tmp_path), lm, wanted)

    assert_are_of(examples, wanted, lm)
    assert examples.lengths == [len(each.text.ids) for each in wanted]
    assert [fact.prompt for fact in examples.facts] == [each.prompt for each in wanted]
    assert {fact.temperature for fact in examples.facts} == {0.8}
    assert len(list(tmp_path.iterdir())) == 2


def test_examples_can_be_taken_from_the_end_and_by_slices(tmp_path, lm):
    wanted = texts(5)

    examples = fill(store_in(tmp_path), lm, wanted)

    assert examples[-1].ids.tolist() == list(wanted[4].text.ids)
    assert_are_of(examples[1:3], wanted[1:3], lm)
    with pytest.raises(IndexError):
        examples[5]


def test_only_what_is_missing_is_read(tmp_path, lm):
    told = []
    fill(store_in(tmp_path), lm, texts(5))

    examples = fill(store_in(tmp_path), lm, texts(8), told=told.append)

    assert_are_of(examples, texts(8), lm)
    assert [reading.texts for reading in told] == [1, 2, 3]
    assert told[-1].share == 1.0


@pytest.mark.parametrize("killed_at", [1, 64, 65, 129])
def test_after_a_kill_the_rest_is_read(tmp_path, lm, killed_at):
    wanted = texts(130)

    def kill(reading):
        if reading.texts == killed_at:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fill(store_in(tmp_path), lm, wanted, told=kill)
    examples = fill(store_in(tmp_path), lm, wanted)

    assert_are_of(examples, wanted, lm)


def test_what_was_read_before_a_stop_is_kept(tmp_path, lm):
    stop, told = threading.Event(), []

    def tell(reading):
        told.append(reading)
        if len(told) == 10:
            stop.set()

    examples = fill(store_in(tmp_path), lm, texts(30), told=tell, stop=stop)

    assert_are_of(examples, texts(10), lm)


@pytest.mark.parametrize("room", [0, 50_000, 400_000])
def test_no_more_is_kept_than_fits(tmp_path, lm, room):
    wanted = texts(100)
    whole = fill(store_in(tmp_path / "whole"), lm, wanted)

    tmp_path.joinpath("part").mkdir()
    part = fill(store_in(tmp_path / "part", most_bytes=room), lm, wanted)
    again = fill(store_in(tmp_path / "part", most_bytes=room), lm, wanted)

    assert used(tmp_path / "whole") > 2 * room
    assert used(tmp_path / "part") <= room
    assert len(part) == len(again) < len(whole)
    assert_are_of(part, wanted[: len(part)], lm)
    if room:
        assert used(tmp_path / "part") > 0.6 * room


def test_fewer_taps_than_were_kept_are_enough(tmp_path, lm):
    fill(store_in(tmp_path), lm, texts(3))

    examples = store_in(tmp_path, taps=(FINAL,)).examples()

    assert_are_of(examples, texts(3), lm, taps=(FINAL,))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"target": "another"}, "of another model"),
        ({"taps": (1, FINAL)}, "of other layers"),
    ],
)
def test_features_of_something_else_are_refused(tmp_path, lm, options, sentence):
    fill(store_in(tmp_path), lm, texts(3))
    before = used(tmp_path)

    with pytest.raises(EngineError, match=sentence):
        fill(store_in(tmp_path, **options), lm, texts(3))

    assert used(tmp_path) == before


def test_features_of_an_earlier_version_are_refused(tmp_path, lm):
    fill(store_in(tmp_path), lm, texts(3))
    shard = tmp_path / "features-00000.safetensors"
    with safe_open(shard, framework="pt") as file:
        note = json.loads(file.metadata()["features"])
    earlier = {"features": json.dumps(note | {"form": 1})}
    save_file(load_file(shard), shard, metadata=earlier)

    with pytest.raises(EngineError, match="of another version of this program"):
        store_in(tmp_path).examples()


@pytest.mark.parametrize(
    "damage", [lambda content: b"", lambda content: content[:100], lambda content: content[:-1]]
)
def test_a_damaged_shard_is_named_and_can_be_computed_anew(tmp_path, lm, damage):
    fill(store_in(tmp_path), lm, texts(70))
    shard = tmp_path / "features-00000.safetensors"
    shard.write_bytes(damage(shard.read_bytes()))

    with pytest.raises(EngineError, match=r"features-00000\.safetensors is damaged\. Delete it"):
        store_in(tmp_path).examples()

    shard.unlink()
    assert len(fill(store_in(tmp_path), lm, texts(70))) == 70


def test_a_full_disk_is_said_and_what_was_kept_stays(tmp_path, lm):
    def write_one(path, content):
        if list(path.parent.glob("*.safetensors")):
            raise OSError(errno.ENOSPC, "No space left on device")
        write_through(path, content)

    with pytest.raises(EngineError, match="The disk is full"):
        fill(store_in(tmp_path, write=write_one), lm, texts(100))

    assert_are_of(store_in(tmp_path).examples(), texts(64), lm)
