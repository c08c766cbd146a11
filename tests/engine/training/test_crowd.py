"""Writing in crowds: what each conversation gets does not depend on who sits beside it."""

from __future__ import annotations

import random
from collections import Counter

import pytest
import torch

from engine.models.native.native_lm import NativeLM
from engine.training.crowd import Job, write
from engine.training.crowd_rows import CrowdRows
from engine.training.unpacking import unpacked_once
from tests.engine.fakes import TableLM
from tests.engine.models.gguf_models import FAMILIES, llama
from tests.engine.models.gguf_writer import contents
from tests.engine.models.native_pairs import error, ids_of, native

NEARLY = 0.06
"""Of the distance between the likeliest and the mean id: what bfloat16 makes of near ties."""


@pytest.fixture(scope="module")
def lm(tmp_path_factory):
    path = tmp_path_factory.mktemp("crowd") / "model.gguf"
    return native(contents(llama(), "Q8_0").write(path))


def with_end(lm, *ends):
    return NativeLM(lm.decoder, vocabulary=lm.vocabulary, end_ids=frozenset(ends))


def job(key, length, *, most_tokens=12, temperature=0.0):
    return Job(str(key), tuple(ids_of(length, seed=length)), most_tokens, temperature)


def crowd(count, **options):
    dice = random.Random(0)
    return [job(key, dice.randint(2, 90), **options) for key in range(count)]


def written(lm, jobs, *, seats=4, seed=0):
    waiting = list(jobs)

    def next_job():
        return waiting.pop(0) if waiting else None

    return {each.job.key: each for each in write(lm, next_job, seed=seed, seats=seats)}


def logits_of(lm, ids):
    return lm.score(lm.new_memo(), ids).logits[0]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_crowds_logits_are_nearly_those_of_one_conversation(tmp_path, family):
    lm = native(contents(FAMILIES[family](), "F32").write(tmp_path / "model.gguf"))
    rows, texts = CrowdRows(lm, 3), [ids_of(length, seed=length) for length in (70, 50, 20)]

    padded = torch.tensor([[*text, *[0] * (70 - len(text))] for text in texts])
    rows.run(0, padded, torch.zeros(3, dtype=torch.int64))
    more = [ids_of(3, seed=seed) for seed in range(3)]
    lengths = torch.tensor([len(text) for text in texts])
    for place in range(2):
        rows.run(0, torch.tensor([[new[place]] for new in more]), lengths + place)
    residual = rows.run(0, torch.tensor([[new[2]] for new in more]), lengths + 2)

    for text, new, ours in zip(texts, more, rows.logits(residual[:, 0]), strict=True):
        assert error(ours, logits_of(lm, [*text, *new])) < 0.03


def test_a_seat_given_to_another_conversation_holds_that_one_alone(lm):
    rows = CrowdRows(lm, 2)
    long, short, own = ids_of(60, seed=1), ids_of(9, seed=2), ids_of(30, seed=3)
    rows.run(0, torch.tensor([long]), torch.zeros(1, dtype=torch.int64))
    rows.run(1, torch.tensor([own]), torch.zeros(1, dtype=torch.int64))

    rows.move(1, 0)
    rows.run(1, torch.tensor([short]), torch.zeros(1, dtype=torch.int64))
    residual = rows.run(0, torch.tensor([[5], [6]]), torch.tensor([30, 9]))

    moved, new = rows.logits(residual[:, 0])
    assert error(moved, logits_of(lm, [*own, 5])) < 0.03
    assert error(new, logits_of(lm, [*short, 6])) < 0.03


def test_greedy_replies_take_the_likeliest_id_each_time(lm):
    replies = written(lm, crowd(9))

    assert sorted(replies, key=int) == [str(key) for key in range(9)]
    for each in replies.values():
        assert len(each.reply) == 12
        for place, token in enumerate(each.reply):
            logits = logits_of(lm, [*each.job.ids, *each.reply[:place]])
            below = (logits.max() - logits[token]) / (logits.max() - logits.mean())
            assert below < NEARLY


@pytest.mark.parametrize("seats", [1, 3, 50])
def test_everybody_is_answered_however_few_seats_there_are(lm, seats):
    jobs = crowd(20, most_tokens=5, temperature=0.9)

    replies = written(lm, jobs, seats=seats)

    assert {each.job for each in replies.values()} == set(jobs)
    assert {len(each.reply) for each in replies.values()} == {5}


def test_a_reply_ends_at_an_end_id_which_belongs_to_it(lm):
    free = written(lm, crowd(9))
    common = Counter(token for each in free.values() for token in each.reply[:8])
    [(end, _)] = common.most_common(1)

    replies = written(with_end(lm, end), crowd(9))

    assert any(len(each.reply) < 12 for each in replies.values())
    for each in replies.values():
        assert end not in each.reply[:-1]
        assert each.reply[-1] == end or len(each.reply) == 12


def test_the_same_seed_draws_the_same_and_another_one_does_not(lm):
    jobs = crowd(6, temperature=1.0)

    first, second, other = (written(lm, jobs, seed=seed) for seed in (1, 1, 2))

    assert first == second
    assert first != other


def test_two_conversations_with_the_same_prompt_draw_different_replies(lm):
    replies = written(lm, [job(key, 30, temperature=1.0) for key in range(2)])

    assert replies["0"].reply != replies["1"].reply


def test_jobs_that_come_up_while_others_are_written_are_taken(lm):
    waiting, later = [job("first", 20, most_tokens=3)], [job("second", 30, most_tokens=3)]
    replies = []

    def next_job():
        return waiting.pop() if waiting else None

    for each in write(lm, next_job, seed=0, seats=2):
        replies.append(each.job.key)
        waiting.extend(later)
        later.clear()

    assert replies == ["first", "second"]


def test_other_models_write_one_reply_after_another_by_the_same_law():
    lm, ids, temperature = TableLM.random(3), (1, 2), 0.7
    jobs = [Job(str(key), ids, 1, temperature) for key in range(4000)]

    counts = Counter(each.reply[0] for each in written(lm, jobs).values())

    law = (lm.logits(ids) / temperature).softmax(-1)
    for token, chance in enumerate(law.tolist()):
        assert abs(counts[token] / 4000 - chance) < 0.03


def test_other_models_greedy_replies_end_where_they_should():
    lm = TableLM.random(5, vocabulary=9, end_ids=frozenset({4}))
    jobs = [Job(str(key), (key, key), 30, 0.0) for key in range(9)]

    for each in written(lm, jobs).values():
        ids = list(each.job.ids)
        for token in each.reply:
            assert token == int(lm.logits(ids).argmax())
            ids.append(token)
        assert 4 not in each.reply[:-1]
        assert each.reply[-1] == 4 or len(each.reply) == 30


def test_unpacking_once_changes_no_bit_of_what_is_read(lm):
    ids, once = ids_of(150), unpacked_once(lm)

    assert isinstance(once, NativeLM)
    assert logits_of(once, ids).equal(logits_of(lm, ids))
    assert once.decoder.unpacked(0) is once.decoder.unpacked(0)


def test_unpacking_leaves_other_models_alone():
    lm = TableLM.random(0)

    assert unpacked_once(lm) is lm
