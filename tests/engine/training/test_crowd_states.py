"""The states that a crowd keeps while it writes are those that reading its texts would give."""

from __future__ import annotations

import pytest
import torch

from engine.models.causal_lm import FINAL
from engine.training.crowd import Job, write
from engine.training.crowd_rows import CrowdRows
from engine.training.examples import Text
from engine.training.features import features
from tests.engine.fakes import TableLM
from tests.engine.models.gguf_models import FAMILIES, llama
from tests.engine.models.gguf_writer import contents
from tests.engine.models.native_pairs import error, ids_of, native

NEARLY = 0.05
"""Of a state's size: what bfloat16 makes of it. A state of something else is about 1 off."""


@pytest.fixture(scope="module")
def lm(tmp_path_factory):
    path = tmp_path_factory.mktemp("crowd_states") / "model.gguf"
    return native(contents(llama(), "Q8_0").write(path))


def taps_of(lm):
    return (*range(lm.num_layers), FINAL)


def jobs(count):
    """Prompts and replies of so different lengths that seats come free at different times."""
    return [
        Job(str(number), tuple(ids_of(2 + 23 * number % 80, seed=number)), 3 + 7 * number % 20, 0.8)
        for number in range(count)
    ]


def written(lm, wanted, taps, *, seats):
    waiting = list(wanted)

    def next_job():
        return waiting.pop(0) if waiting else None

    return list(write(lm, next_job, seed=0, seats=seats, taps=taps))


def assert_are_of(hidden, lm, ids):
    taps = taps_of(lm)
    read = features(lm, Text(tuple(ids), 1, 0.0), taps).hidden
    assert hidden.keys() == set(taps)
    for tap in taps:
        assert hidden[tap].shape == read[tap].shape
        assert hidden[tap].dtype == torch.bfloat16
        for ours, own in zip(hidden[tap].float(), read[tap].float(), strict=True):
            assert error(ours, own) < NEARLY


@pytest.mark.parametrize("family", FAMILIES)
def test_they_are_nearly_those_that_reading_gives(tmp_path, family):
    lm = native(contents(FAMILIES[family](), "F32").write(tmp_path / "model.gguf"))

    replies = written(lm, jobs(4), taps_of(lm), seats=4)

    assert len(replies) == 4
    for each in replies:
        assert_are_of(each.hidden, lm, [*each.job.ids, *each.reply])


def test_they_are_also_for_those_who_came_late_and_those_who_moved(lm):
    replies = written(lm, jobs(30), taps_of(lm), seats=12)

    # Whoever left before others that had come with them gave their seat to one of those.
    assert [each.job.key for each in replies[:2]] != ["0", "1"]
    assert len(replies) == 30
    for each in replies:
        assert_are_of(each.hidden, lm, [*each.job.ids, *each.reply])


def test_they_move_with_their_seat_and_stay_what_they_were_when_it_is_taken_again(lm):
    rows = CrowdRows(lm, 2, taps_of(lm))
    long, short, own = ids_of(140, seed=1), ids_of(9, seed=2), ids_of(30, seed=3)
    rows.run(0, torch.tensor([own, short + [0] * 21]), torch.zeros(2, dtype=torch.int64))
    rows.run(0, torch.tensor([[5], [6]]), torch.tensor([30, 9]))

    first = rows.states(0, 31)
    rows.move(1, 0)
    moved = rows.states(0, 10)
    rows.run(0, torch.tensor([long]), torch.zeros(1, dtype=torch.int64))

    assert_are_of(first, lm, [*own, 5, 0])
    assert_are_of(moved, lm, [*short, 6, 0])
    assert_are_of(rows.states(0, 140), lm, [*long, 0])


def test_what_is_written_does_not_depend_on_them(lm):
    assert written(lm, jobs(9), taps_of(lm), seats=4) == written(lm, jobs(9), (), seats=4)


def test_none_are_kept_where_none_are_wanted(lm):
    assert [each.hidden for each in written(lm, jobs(3), (), seats=4)] == [{}] * 3


def test_other_models_keep_none():
    ids = tuple(range(5))

    [reply] = written(TableLM.random(0), [Job("0", ids, 4, 0.0)], (FINAL,), seats=4)

    assert reply.hidden == {}
