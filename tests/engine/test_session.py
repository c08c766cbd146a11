"""Conversations: events, turns, the memo from turn to turn, and errors that lose nothing."""

from __future__ import annotations

import threading

import pytest

from engine.engine import Engine
from engine.errors import EngineError, PromptTooLong
from engine.events import Drafted, Finished, FinishReason, Origin, Prefilled, Round
from engine.params import ReplyParams, SamplingParams
from engine.templates import Message
from tests.engine import models_for_tests as tiny

PARAMS = ReplyParams(SamplingParams(temperature=0.8, seed=7), max_new_tokens=12)


@pytest.fixture(scope="module")
def engine(llama_folder):
    return Engine.load(llama_folder, device="cpu", dtype="float64")


def answer(session, text, params=PARAMS, stop=None):
    return list(session.reply(text, params, stop or threading.Event()))


def text_of(events):
    rounds = [event for event in events if isinstance(event, Round)]
    return "".join(token.text for done in rounds for token in done.tokens) + events[-1].text


def test_the_events_come_in_order_and_their_texts_are_the_reply(engine):
    session = engine.new_session(drafter="layer-skip@1")

    events = answer(session, "the cat and the hat")

    kinds = [type(event) for event in events]
    assert kinds[0] is Prefilled
    assert kinds[-1] is Finished
    assert all(kinds[at + 1] is Round for at, kind in enumerate(kinds) if kind is Drafted)
    assert session.messages == [
        Message("user", "the cat and the hat"),
        Message("assistant", text_of(events), session.messages[1].ids),
    ]


def test_the_numbers_add_up(engine):
    session = engine.new_session(drafter="layer-skip@2")

    *events, finished = answer(session, "the cat and the hat")

    rounds = [event for event in events if isinstance(event, Round)]
    tokens = [token for done in rounds for token in done.tokens]
    stats = finished.stats
    assert [token.position for token in tokens] == list(
        range(stats.prompt_tokens, stats.prompt_tokens + len(tokens))
    )
    assert stats.tokens == len(tokens) == 12
    assert stats.rounds == len(rounds)
    assert stats.drafted == sum(len(done.nodes) for done in rounds)
    assert stats.accepted == sum(token.origin is Origin.DRAFT_ACCEPTED for token in tokens)
    assert stats.decode_seconds == pytest.approx(sum(done.seconds for done in rounds))
    assert stats.drafters == ("layer-skip",)
    assert stats.params == PARAMS
    assert all(0 < token.p <= 1 for token in tokens)
    assert all((token.q is None) == (token.origin is not Origin.DRAFT_ACCEPTED) for token in tokens)


def test_nodes_say_what_they_spell(engine):
    session = engine.new_session(drafter="layer-skip@2")
    session.drafting.draft_length = 3

    events = answer(session, "the cat and the hat")

    nodes = [node for done in events if isinstance(done, Round) for node in done.nodes]
    words = tiny.tokenizer()
    assert nodes
    assert [node.text for node in nodes] == [words.decode([node.id]) for node in nodes]


def test_a_later_turn_reads_only_what_is_new(engine):
    session = engine.new_session()
    answer(session, "the cat and the hat")
    before = session.context_tokens()

    events = answer(session, "and then")

    first = next(event for event in events if isinstance(event, Prefilled))
    fresh = engine.new_session()
    fresh.messages = session.messages[:-2]
    again = answer(fresh, "and then")
    assert first.done == first.total  # one short chunk, not the whole conversation
    assert next(e for e in again if isinstance(e, Prefilled)).done >= before - 1
    assert text_of(events) == text_of(again)


def test_an_edited_turn_is_answered_as_if_it_had_always_been_there(engine):
    session = engine.new_session(drafter="ngram")
    answer(session, "the cat and the hat")
    answer(session, "and then the end")
    session.messages = [Message("user", "the dog"), *session.messages[1:2]]

    events = answer(session, "go on")

    fresh = engine.new_session()
    fresh.messages = session.messages[:2]
    assert text_of(events) == text_of(answer(fresh, "go on"))


def test_answering_again_replaces_the_reply(engine):
    session = engine.new_session()
    first = text_of(answer(session, "the cat and the hat"))

    same = text_of(answer(session, None))
    other = text_of(answer(session, None, ReplyParams(PARAMS.sampling.with_seed(8), 12)))

    assert same == first != other
    assert [turn.content for turn in session.messages] == ["the cat and the hat", other]


def test_stop_ends_within_a_round_and_keeps_what_is_there(engine):
    session, stop = engine.new_session(), threading.Event()
    events = []

    for event in session.reply("the cat and the hat", PARAMS, stop):
        events.append(event)
        if isinstance(event, Round):
            stop.set()

    assert sum(isinstance(event, Round) for event in events) == 1
    assert events[-1].reason is FinishReason.STOPPED
    assert session.messages[1].content == text_of(events)


def test_stop_before_the_first_token_leaves_the_conversation_as_it_was(engine):
    session, stop = engine.new_session(), threading.Event()
    answer(session, "the cat")
    before = list(session.messages)
    stop.set()

    events = answer(session, "and the hat", stop=stop)
    again = answer(session, None, stop=stop)

    for stopped in (events, again):
        assert stopped[-1].reason is FinishReason.STOPPED
        assert stopped[-1].stats.tokens == 0
    assert session.messages == before
    assert text_of(answer(session, "and the hat"))


def test_an_error_before_the_first_token_leaves_the_reply_that_was_to_be_replaced(engine):
    session = engine.new_session()
    answer(session, "the cat")
    before = list(session.messages)
    session.drafting.drafter = Failing(engine.drafter("ngram"))

    with pytest.raises(EngineError, match="No memory"):
        answer(session, None)

    assert session.messages == before


class Failing:
    """A drafter with nothing but bad luck."""

    def __init__(self, drafter):
        self._drafter = drafter

    def __getattr__(self, name):
        return getattr(self._drafter, name)

    def propose(self, *_):
        raise EngineError("No memory left.")


@pytest.mark.parametrize("after", [Prefilled, Round])
def test_a_reader_who_goes_away_leaves_what_was_read_and_no_turn_without_a_reply(engine, after):
    session = engine.new_session()
    events = session.reply("the cat and the hat", PARAMS, threading.Event())

    for event in events:
        if isinstance(event, after):
            break
    events.close()

    assert [turn.role for turn in session.messages] == ["user", "assistant"] * (after is Round)


def test_the_drafter_may_change_while_a_reply_runs_and_the_text_does_not(engine):
    plain = text_of(answer(engine.new_session(), "the cat and the hat"))
    session = engine.new_session(drafter="ngram")
    events, specs = [], iter(["layer-skip@1", "off", "ngram", "layer-skip@2"] * 10)

    for event in session.reply("the cat and the hat", PARAMS, threading.Event()):
        events.append(event)
        if isinstance(event, Round):
            session.drafting.drafter = engine.drafter(next(specs))

    assert text_of(events) == plain
    assert set(events[-1].stats.drafters) == {"ngram", "layer-skip", "off"}


def test_an_empty_message_is_refused_and_nothing_changes(engine):
    session = engine.new_session()

    with pytest.raises(EngineError, match="The message is empty"):
        answer(session, " \n")

    assert session.messages == []


def test_a_prompt_longer_than_the_context_names_both_numbers(engine):
    session = engine.new_session()

    with pytest.raises(PromptTooLong) as caught:
        answer(session, "x" * 600)

    assert caught.value.needed == session.context_tokens("x" * 600) > 512
    assert str(caught.value.needed) in str(caught.value)
    assert "512" in str(caught.value)
    assert session.messages == []


def test_a_prompt_that_leaves_room_for_one_token_gets_one(engine):
    session = engine.new_session(drafter="ngram")
    filler = "x" * (511 - session.context_tokens("x") + 1)

    events = answer(session, filler)

    assert events[-1].reason is FinishReason.CONTEXT
    assert events[-1].stats.tokens == 1


def test_a_stop_text_is_no_part_of_the_turn(engine):
    session = engine.new_session()
    whole = text_of(answer(session, "the cat and the hat"))
    stop_text = whole[4:7]

    events = answer(session, None, ReplyParams(PARAMS.sampling, 12, (stop_text,)))

    assert events[-1].reason is FinishReason.STOP_TEXT
    assert text_of(events) == whole[: whole.index(stop_text)]
    assert session.messages[1].content == text_of(events)
    assert text_of(answer(session, "more"))


def test_the_system_prompt_reaches_the_model(engine):
    plain, told = engine.new_session(), engine.new_session("Be brief.")

    assert told.context_tokens("Hi") > plain.context_tokens("Hi")


def test_the_plan_is_told_in_words(engine):
    session = engine.new_session(drafter="ngram")

    assert session.plan_sentence().startswith("Drafting as far as it pays")
    session.drafting.draft_length = 3
    assert session.plan_sentence().startswith("Drafting up to 3 ahead in every round, as you chose")
    session.drafting.drafter = engine.drafter("off")
    assert session.plan_sentence() == "Decoding plainly: one token a pass."
