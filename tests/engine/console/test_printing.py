"""What stands in a terminal, and that a model's text cannot steer it."""

from __future__ import annotations

import io

import pytest

from engine.console.printing import ReadingLine, ReplyPrinter, StatusLine, harmless, numbers
from engine.events import Drafted, Finished, FinishReason, Origin, Prefilled, Round, Token
from engine.params import ReplyParams
from engine.stats import ReplyStats
from tests.engine.console.terminal import Terminal


def a_round(*texts_and_origins):
    tokens = tuple(
        Token(1, text, origin, 0, 1, 1.0, None, None) for text, origin in texts_and_origins
    )
    return Round(0, tokens, (), "ngram", 1, 0.0, 0.0, 0.0)


def stats_of(tokens):
    return ReplyStats("m", (), ReplyParams(), tokens, 0, 0, 0, 0, (), 0, 0.0, 1.0, 0.0, None)


def test_origins_are_coloured_and_underlined_on_a_terminal(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    terminal = Terminal()

    ReplyPrinter(terminal).show(
        a_round(("ab\n", Origin.DRAFT_ACCEPTED), ("c", Origin.RESAMPLED), ("d", Origin.TARGET_ONLY))
    )

    assert terminal.getvalue() == (
        "\x1b[32;4:1mab\x1b[0m\n\x1b[33;4:5mc\x1b[0m\x1b[34;4:4md\x1b[0m"
    )


def test_a_file_or_no_color_gets_plain_text(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    terminal, file = Terminal(), io.StringIO()

    for stream in (terminal, file):
        ReplyPrinter(stream).show(a_round(("ab", Origin.DRAFT_ACCEPTED)))

    assert terminal.getvalue() == file.getvalue() == "ab"


def test_the_text_held_back_is_printed_at_the_end():
    file = io.StringIO()

    ReplyPrinter(file).show(Finished(FinishReason.STOPPED, stats_of(0), " <st"))

    assert file.getvalue() == " <st\n"


def test_control_characters_are_shown_and_not_sent():
    assert harmless("a\x1b[2J\x07b\r\n\tc\x9b\x7f") == "a␛[2J␇b␍\n\tc\ufffd\ufffd"
    assert harmless("👩‍👩‍👧 عربي") == "👩‍👩‍👧 عربي"


@pytest.mark.parametrize(("tokens", "words"), [(1, "1 token · "), (2, "2 tokens · ")])
def test_a_number_of_tokens_reads_as_english(tokens, words):
    finished = Finished(FinishReason.LENGTH, stats_of(tokens))

    assert numbers(finished).startswith(words)


# What is going on.


SHOWN = "\r\x1b[K"


def told_while(seconds, *events, stream=None):
    """What a terminal shows of a prompt's reading, an event each so many seconds."""
    stream = Terminal() if stream is None else stream
    now = iter(seconds * at for at in range(len(events) + 1))
    line = ReadingLine(stream, lambda: next(now))
    for event in events:
        line.show(event)
    return stream.getvalue()


def test_a_prompt_that_is_read_for_long_says_how_far_it_is_until_the_first_text():
    told = told_while(0.6, Prefilled(1, 8), Prefilled(4, 8), Prefilled(8, 8), Drafted("a", "b"))

    assert told == (f"{SHOWN}Reading the prompt, 50% …{SHOWN}Reading the prompt, 100% …{SHOWN}")


def test_a_prompt_that_is_read_quickly_and_a_file_get_no_such_line():
    events = Prefilled(4, 8), Prefilled(8, 8), Drafted("a", "b")

    assert told_while(0.3, *events) == ""
    assert told_while(5.0, *events, stream=io.StringIO()) == ""


def test_what_is_going_on_is_gone_from_the_line_when_it_fails():
    terminal = Terminal()

    def fail():
        with StatusLine(terminal) as line:
            line.say("Reading the weights …")
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fail()

    assert terminal.getvalue() == f"{SHOWN}Reading the weights …{SHOWN}"
