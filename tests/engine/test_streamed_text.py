"""Text while it streams, several tokens a round: whole characters, and nothing of a stop text."""

from __future__ import annotations

import threading

import pytest

from engine.events import Drafted, Finished, FinishReason, Round
from engine.params import ReplyParams
from engine.session import Session
from engine.speculation import Drafting
from engine.stats import Baseline
from engine.templates import ChatFormat
from tests.engine import models_for_tests as tiny
from tests.engine.fakes import ReciterLM, ScriptedDrafter

UNFINISHED = "\ufffd"
TEXTS = ["😀漢字", "the 👩‍👩‍👧 and the 漢", "naïve – “quoted” 한국어", "plain and the end"]

draft_lengths = pytest.mark.parametrize("draft_length", [0, 1, 2, 3, 8])
texts = pytest.mark.parametrize("text", TEXTS)


def recited(text, draft_length, **options):
    """The events of a reply that says `text`, drafted by one who knows it; and the session."""
    words = tiny.tokenizer()
    ids = [*words.encode(text, add_special_tokens=False), tiny.END_ID]
    lm = ReciterLM(ids, cue=tiny.CUE_ID, vocabulary=len(words), end_id=tiny.END_ID)
    drafting = Drafting(ScriptedDrafter(lm.rest), draft_length)
    session = Session(lm, ChatFormat(words), drafting, name="Reciter", baseline=Baseline())
    events = list(session.reply("Say it.", ReplyParams(**options), threading.Event()))
    return events, session


def end_of(events) -> Finished:
    assert isinstance(events[-1], Finished)
    return events[-1]


def tokens_of(events):
    return [token for event in events if isinstance(event, Round) for token in event.tokens]


def shown(events):
    return [
        *(event.text for event in events if isinstance(event, Drafted | Finished)),
        *(token.text for token in tokens_of(events)),
    ]


@texts
@draft_lengths
def test_characters_of_several_tokens_appear_whole_or_not_at_all(text, draft_length):
    events, session = recited(text, draft_length)

    tokens = tokens_of(events)
    assert not any(UNFINISHED in piece for piece in shown(events))
    assert "".join(token.text for token in tokens) + end_of(events).text == text
    assert session.messages[-1].content == text
    assert tokens[-1].id == tiny.END_ID
    assert end_of(events).reason is FinishReason.END_OF_TURN


@draft_lengths
def test_the_token_that_completes_a_character_carries_it(draft_length):
    events, _ = recited("😀漢", draft_length)

    assert [token.text for token in tokens_of(events)] == ["", "", "", "😀", "", "", "漢", ""]


@texts
@draft_lengths
def test_a_limit_inside_a_character_leaves_the_character_out(text, draft_length):
    whole, _ = recited(text, 0)

    for most in range(1, len(tokens_of(whole))):
        events, session = recited(text, draft_length, max_new_tokens=most)

        said = "".join(token.text for token in tokens_of(events)) + end_of(events).text
        assert not any(UNFINISHED in piece for piece in shown(events))
        assert text.startswith(said)
        assert len(tokens_of(events)) == most
        assert [message.content for message in session.messages[1:]] == ([said] if said else [])


@draft_lengths
@pytest.mark.parametrize(
    ("text", "stop", "before"),
    [
        ("one and the end is near", "the end", "one and "),
        ("one and the end is near", " and", "one"),
        ("the then the end", "the end", "the then "),
        ("a漢b字c", "字", "a漢b"),
        ("a😀b", "😀", "a"),
        ("stop", "stop", ""),
    ],
    ids=str,
)
def test_nothing_of_a_stop_text_is_shown_or_counted(text, stop, before, draft_length):
    events, session = recited(text, draft_length, stop_texts=(stop, "never said"))

    tokens = tokens_of(events)
    assert "".join(token.text for token in tokens) + end_of(events).text == before
    assert end_of(events).reason is FinishReason.STOP_TEXT
    assert end_of(events).stats.tokens == len(tokens)
    spelled = [str(tiny.tokenizer().decode([t.id for t in tokens[:end]])) for end in (None, -1)]
    assert [words.startswith(before + stop) for words in spelled] == [True, False]
    assert [message.content for message in session.messages[1:]] == ([before] if before else [])


@draft_lengths
def test_what_looked_like_a_stop_text_is_shown_after_all(draft_length):
    events, _ = recited("and the en", draft_length, stop_texts=("the end",))

    tokens = tokens_of(events)
    assert "".join(token.text for token in tokens) + end_of(events).text == "and the en"
    assert end_of(events).reason is FinishReason.END_OF_TURN


@draft_lengths
def test_a_reply_cut_by_a_stop_text_is_continued_from_its_shown_text(draft_length):
    events, session = recited("one and the end", draft_length, stop_texts=("the end",))

    again = list(
        session.reply("Once more.", ReplyParams(stop_texts=("the end",)), threading.Event())
    )

    assert [message.content for message in session.messages] == [
        "Say it.",
        "one and ",
        "Once more.",
        "one and ",
    ]
    assert [token.id for token in tokens_of(again)] == [token.id for token in tokens_of(events)]
