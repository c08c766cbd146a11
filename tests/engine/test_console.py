"""The console: what it prints, and that a model's text cannot steer a terminal."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys

import pytest

from engine.__main__ import main
from engine.console import ReplyPrinter, harmless
from engine.events import Finished, FinishReason, Origin, Round, Token
from engine.kept_costs import CostFile, Kept, Trial
from engine.models.folders import cache_folder
from engine.params import ReplyParams
from engine.stats import ReplyStats


class Terminal(io.StringIO):
    def isatty(self):
        return True


def a_round(*texts_and_origins):
    tokens = tuple(
        Token(1, text, origin, 0, 1, 1.0, None, None) for text, origin in texts_and_origins
    )
    return Round(0, tokens, (), "ngram", 1, 0.0, 0.0, 0.0)


def chat(*arguments):
    return main(["chat", "--device", "cpu", "--dtype", "float64", *map(str, arguments)])


def test_one_message_prints_the_reply_and_a_line_of_numbers(llama_folder, capsys):
    status = chat("--target", llama_folder, "--max-new-tokens", 5, "--seed", 3, "the cat")

    *_, last = capsys.readouterr().out.strip().split("\n")
    assert status == 0
    assert last.startswith("5 tokens · ")
    assert last.endswith("token limit · seed 3")
    assert "× plain" in last


def test_the_reply_is_the_same_with_every_drafter(llama_folder, draft_folder, capsys):
    texts = set()
    for drafter in ("off", "ngram", "layer-skip", f"draft-model:{draft_folder}"):
        chat("--target", llama_folder, "--max-new-tokens", 9, "--drafter", drafter, "the cat")
        texts.add(capsys.readouterr().out.rpartition("tokens ·")[0])

    assert len(texts) == 1


def test_what_to_know_of_a_drafter_is_told_where_its_choice_is_left_open(llama_folder, capsys):
    file = CostFile(cache_folder() / "costs", llama_folder, device="cpu", dtype="float64")
    before, told = file.read(), []
    file.write(Kept(before.readings, {"layer-skip": Trial(None)}))

    for drafter in ("layer-skip", "layer-skip@1", "ngram"):
        chat("--target", llama_folder, "--max-new-tokens", 3, "--drafter", drafter, "the cat")
        told.append(capsys.readouterr().err)

    file.write(before)
    assert "Layer skip: no exit of this model pays; " in told[0]
    assert not any("pays" in words for words in told[1:])


def test_several_messages_are_one_conversation(llama_folder, capsys, monkeypatch):
    typed = iter(["the cat", "and then", ""])
    monkeypatch.setattr("builtins.input", lambda prompt: next(typed))
    monkeypatch.setattr("sys.stdin", Terminal())

    status = chat("--target", llama_folder, "--max-new-tokens", 3)

    assert status == 0
    assert capsys.readouterr().out.count("3 tokens ·") == 2


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--target", "/no/such/model", "hi"], "There is no file or folder"),
        (["--temperature", "-1", "hi"], "temperature is -1.0; it must lie between 0 and 100"),
        (["--stop", "", "hi"], "A stop text must not be empty"),
        (["--max-new-tokens", "0", "hi"], "max-new-tokens is 0"),
    ],
)
def test_bad_input_is_one_sentence_and_no_traceback(arguments, sentence, capsys):
    status = chat(*arguments)

    complaint = capsys.readouterr().err
    assert status == 1
    assert sentence in complaint
    assert complaint.count("\n") == 1


def test_bytes_that_are_no_text_are_read_all_the_same(llama_folder, capsys):
    status = chat(
        "--target", llama_folder, "--max-new-tokens", 3, "caf\udce9", "--system", "\udcff"
    )

    assert status == 0
    assert "3 tokens ·" in capsys.readouterr().out


def test_a_reader_who_goes_away_ends_it_silently(llama_folder):
    command = [sys.executable, "-m", "engine", "chat", "--device", "cpu", "--dtype", "float64"]
    run = subprocess.run(
        [*command, "--target", str(llama_folder), "--max-new-tokens", "40", "the cat"],
        stdout=open_for_nobody(),
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )

    assert run.stderr == ""


def open_for_nobody():
    """The writing end of a pipe that nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    return writer


def test_an_interrupt_ends_the_reply_with_its_numbers_and_the_chat_goes_on(
    llama_folder, capsys, monkeypatch
):
    typed = iter(["the cat", "and then", ""])
    monkeypatch.setattr("builtins.input", lambda prompt: next(typed))
    monkeypatch.setattr("sys.stdin", Terminal())
    show, shown = ReplyPrinter.show, []

    def show_and_interrupt(self, event):
        show(self, event)
        shown.append(event)
        if len(shown) == 3:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(ReplyPrinter, "show", show_and_interrupt)

    status = chat("--target", llama_folder, "--max-new-tokens", 30)

    printed = capsys.readouterr().out
    assert status == 0
    assert "· stopped ·" in printed
    assert "30 tokens ·" in printed


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
    stats = ReplyStats("m", (), ReplyParams(), 0, 0, 0, 0, 0, (), 0, 0.0, 0.0, 0.0, None)
    file = io.StringIO()

    ReplyPrinter(file).show(Finished(FinishReason.STOPPED, stats, " <st"))

    assert file.getvalue() == " <st\n"


def test_control_characters_are_shown_and_not_sent():
    assert harmless("a\x1b[2J\x07b\r\n\tc\x9b\x7f") == "a␛[2J␇b␍\n\tc\ufffd\ufffd"
    assert harmless("👩‍👩‍👧 عربي") == "👩‍👩‍👧 عربي"


@pytest.mark.parametrize(
    "arguments", [("chat", "--drafter", "nosuch", "Hi"), ("bench", "--drafters", "ngram,nosuch")]
)
def test_a_drafter_that_nobody_knows_is_refused_before_a_model_is_loaded(arguments, capsys):
    assert main([*arguments, "--target", "/no/such/model"]) == 1
    assert 'There is no drafter "nosuch"' in capsys.readouterr().err
