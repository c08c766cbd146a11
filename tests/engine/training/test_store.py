"""Texts on disk: they come back as they were, and a file that is wrong is named."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import EngineError
from engine.training.examples import Text
from engine.training.store import StoredText, TextStore


def texts(*numbers):
    return [
        StoredText(f"prompt {number}", number % 2, 0, Text((1, 2, 3, number), 2, 0.8))
        for number in numbers
    ]


def store_in(folder, target="a target"):
    return TextStore(folder, target)


@pytest.fixture
def shards(tmp_path):
    """Three shards, in order."""
    for numbers in ((1, 2), (3,), (4, 5, 6)):
        store_in(tmp_path).add(texts(*numbers))
    return sorted(tmp_path.iterdir())


def test_texts_come_back_in_their_order(tmp_path, shards):
    assert store_in(tmp_path).read() == texts(1, 2, 3, 4, 5, 6)
    assert len(shards) == 3


def test_before_anything_was_written_there_is_nothing(tmp_path):
    assert store_in(tmp_path / "none").read() == []


def test_the_reply_is_what_follows_the_prompt():
    [text] = texts(7)

    assert text.reply == (3, 7)


@given(
    st.lists(
        st.builds(
            StoredText,
            st.text(),
            st.integers(0, 9),
            st.integers(0, 9),
            st.builds(
                Text,
                st.lists(st.integers(0, 200_000)).map(tuple),
                st.integers(0, 99),
                st.floats(0, 2),
            ),
        ),
        max_size=5,
    )
)
def test_whatever_was_written_comes_back(tmp_path_factory, written):
    folder = tmp_path_factory.mktemp("store")

    store_in(folder).add(written)

    assert store_in(folder).read() == written


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[: len(content) // 2],
        lambda content: content[:-1],
        lambda content: content.replace(b"3, 3", b"3, 4"),
        lambda content: content.replace(b'"form": 1', b'"form": 9'),
        lambda content: b"\x00\xff" + content,
        lambda content: b"[]\n",
    ],
)
def test_a_damaged_shard_is_named_and_left(tmp_path, shards, damage):
    damaged = damage(shards[1].read_bytes())
    shards[1].write_bytes(damaged)

    with pytest.raises(EngineError, match=r"texts-00001\.jsonl is damaged\. Delete it"):
        store_in(tmp_path).read()

    assert shards[1].read_bytes() == damaged


def test_without_the_damaged_shard_the_others_are_read_and_more_are_added(tmp_path, shards):
    shards[1].unlink()

    store_in(tmp_path).add(texts(9))

    assert store_in(tmp_path).read() == texts(1, 2, 4, 5, 6, 9)


def test_another_targets_texts_are_refused(tmp_path, shards):
    before = [path.read_bytes() for path in shards]

    with pytest.raises(EngineError, match="written by another model"):
        store_in(tmp_path, target="another").read()

    assert [path.read_bytes() for path in shards] == before


def test_what_a_kill_left_half_written_is_no_shard(tmp_path, shards):
    (tmp_path / "texts-00003.jsonl.part").write_bytes(shards[0].read_bytes()[:20])

    store_in(tmp_path).add(texts(7))

    assert store_in(tmp_path).read() == texts(1, 2, 3, 4, 5, 6, 7)
