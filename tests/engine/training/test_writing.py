"""What the target writes: every prompt, greedy and drawn, gone on with after whatever ended it."""

from __future__ import annotations

import errno
import threading
from collections import Counter
from itertools import count, pairwise

import pytest

from engine.errors import EngineError
from engine.models.causal_lm import FINAL
from engine.templates import Message
from engine.training.features import FeatureStore
from engine.training.files import write_through
from engine.training.prompts import REPLY, TrainingPrompt
from engine.training.store import TextStore
from engine.training.writing import Writing, write_texts
from tests.engine.fakes import TableLM

END, SYSTEM, USER, ASSISTANT = 10, 11, 12, 13
ROLES = {"system": SYSTEM, "user": USER, "assistant": ASSISTANT}
ONCE = Writing()


class Digits:
    """A target whose texts are digits, an id each; a turn begins with an id for its role."""

    def __init__(self, context_length=512):
        self.lm = TableLM.random(
            4, vocabulary=14, context_length=context_length, end_ids=frozenset({END})
        )

    def prompt_ids(self, messages):
        ids = []
        for turn in messages:
            typed = [int(digit) for digit in turn.content]
            ids += [ROLES[turn.role], *(typed if turn.ids is None else turn.ids)]
        return [*ids, ASSISTANT]

    def text(self, ids):
        return "".join(str(token % 10) for token in ids)


def prompts(count):
    return [TrainingPrompt("count", (str(number),)) for number in range(count)]


def store_in(folder, **options):
    return TextStore(folder / "texts", "a target", **options)


def states_in(folder):
    return FeatureStore(folder / "states", "a target", (FINAL,), most_bytes=10**9)


def write(folder, asked, writing=ONCE, *, told=lambda progress: None, stop=None, speaker=None):
    store = store_in(folder)
    stop = stop or threading.Event()
    speaker, states = speaker or Digits(), states_in(folder)
    write_texts(speaker, asked, store, states, writing, told=told, stop=stop)
    return store.read()


def by_place(texts):
    return {(each.prompt, each.writing, each.turn): each for each in texts}


def test_every_prompt_is_answered_once(tmp_path):
    asked, speaker = prompts(300), Digits()

    texts = write(tmp_path, asked)

    assert len(texts) == 300
    for prompt in asked:
        each = by_place(texts)[prompt.key, 0, 0]
        own = speaker.prompt_ids([Message("user", prompt.turns[0])])
        assert list(each.text.ids[: each.text.first_reply]) == own
        assert each.reply
        assert each.reply[-1] == END or len(each.reply) >= 256


def test_half_is_greedy_and_the_rest_is_drawn(tmp_path):
    texts, speaker = write(tmp_path, prompts(400)), Digits()

    shares = Counter(each.text.temperature for each in texts)

    assert 160 < shares[0.0] < 240
    assert shares[0.8] > 100
    assert shares[1.0] > 10
    for each in texts:
        if each.text.temperature == 0.0:
            ids = each.text.ids
            likeliest = [int(speaker.lm.logits(ids[:at]).argmax()) for at in range(len(ids))]
            assert list(each.reply) == likeliest[each.text.first_reply :]


def test_the_second_writing_is_drawn_where_the_first_was_greedy_and_the_reverse(tmp_path):
    texts = write(tmp_path, prompts(40), Writing(tokens=4000))

    places = by_place(texts)
    again = [each for each in texts if each.writing == 1]
    assert len(again) == 40
    for each in again:
        first = places[each.prompt, 0, 0].text.temperature
        assert (first == 0.0) != (each.text.temperature == 0.0)
    assert all(each.text.temperature > 0 for each in texts if each.writing > 1)


def test_a_further_turn_follows_the_targets_own_reply(tmp_path):
    asked = [TrainingPrompt("two", ("12", "34"), (Message("system", "9"),))]

    first, second = write(tmp_path, asked)

    own = first.reply[:-1] if first.reply[-1] == END else first.reply
    assert (first.turn, second.turn) == (0, 1)
    assert second.text.ids[: second.text.first_reply] == (
        *(SYSTEM, 9, USER, 1, 2, ASSISTANT),
        *own,
        *(USER, 3, 4, ASSISTANT),
    )


def test_a_turn_about_the_reply_begins_a_new_conversation(tmp_path):
    asked = [TrainingPrompt("rework", ("12", f"7{REPLY}"), (Message("system", "9"),))]

    first, second = write(tmp_path, asked)

    own = first.reply[:-1] if first.reply[-1] == END else first.reply
    typed = [token % 10 for token in own]
    assert list(second.text.ids[: second.text.first_reply]) == [
        *(SYSTEM, 9, USER, 7),
        *typed,
        ASSISTANT,
    ]


@pytest.mark.parametrize("killed_at", [1, 100, 200, 383])
def test_after_a_kill_the_rest_is_written_and_comes_out_as_without_it(tmp_path, killed_at):
    asked = [*prompts(380), TrainingPrompt("two", ("12", "34")), TrainingPrompt("two", ("5", "6"))]

    def kill(progress):
        if progress.texts == killed_at:
            raise KeyboardInterrupt

    whole = write(tmp_path / "whole", asked)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "killed", asked, told=kill)
    seen = []
    after = write(tmp_path / "killed", asked, told=seen.append)

    assert by_place(after) == by_place(whole)
    assert len(after) == len(whole) == 384
    assert len(seen) >= 384 - killed_at


def test_a_kill_costs_no_more_than_a_minutes_texts(tmp_path):
    seconds = count(step=10)

    def kill(progress):
        if progress.texts == 100:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_texts(
            *(Digits(), prompts(100), store_in(tmp_path), states_in(tmp_path), ONCE),
            told=kill,
            stop=threading.Event(),
            clock=lambda: next(seconds),
        )

    assert len(store_in(tmp_path).read()) >= 100 - 60 // 10


def test_what_was_written_before_a_stop_is_kept(tmp_path):
    stop, asked = threading.Event(), prompts(200)

    def tell(progress):
        if progress.texts == 50:
            stop.set()

    some = write(tmp_path, asked, told=tell, stop=stop)
    rest = write(tmp_path, asked)

    assert len(some) == 50
    assert rest[:50] == some
    assert len(by_place(rest)) == len(rest) == 200


def test_writing_ends_when_there_are_enough_tokens(tmp_path):
    texts = write(tmp_path, prompts(300), Writing(tokens=1000))
    more = write(tmp_path, prompts(300), Writing(tokens=1500))

    longest = max(len(each.reply) for each in more)
    assert 1000 <= sum(len(each.reply) for each in texts) < 1000 + longest
    assert 1500 <= sum(len(each.reply) for each in more) < 1500 + longest
    assert more[: len(texts)] == texts


def test_progress_says_how_far_it_is(tmp_path):
    told = []

    write(tmp_path, prompts(60), Writing(tokens=400), told=told.append)

    assert [each.texts for each in told] == list(range(1, len(told) + 1))
    assert told[-1].share == 1.0
    assert told[-1].seconds_left == 0.0
    assert all(a.tokens < b.tokens and a.share <= b.share for a, b in pairwise(told))
    assert all(each.tokens_per_second > 0 for each in told)


@pytest.mark.parametrize("writing", [ONCE, Writing(tokens=10_000)])
def test_prompts_that_leave_no_room_are_left_out(tmp_path, writing):
    speaker = Digits(context_length=40)
    long = TrainingPrompt("long", ("1" * 60,))

    assert write(tmp_path, [long], writing, speaker=speaker) == []
    texts = write(tmp_path, [long, *prompts(3)], speaker=speaker)

    assert len(texts) == 3
    assert all(len(each.text.ids) <= 40 for each in texts)


def test_a_full_disk_is_said_and_what_was_kept_stays(tmp_path):
    asked = prompts(300)

    def write_one(path, content):
        if list(path.parent.glob("*.jsonl")):
            raise OSError(errno.ENOSPC, "No space left on device")
        write_through(path, content)

    full = store_in(tmp_path, write=write_one)
    with pytest.raises(EngineError, match="The disk is full"):
        write_texts(Digits(), asked, full, states_in(tmp_path), ONCE, stop=threading.Event())

    kept = store_in(tmp_path).read()
    assert 0 < len(kept) < 300
    assert len(write(tmp_path, asked)) == 300
