"""The command `chat`, from the options to what is printed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from engine.__main__ import main
from engine.console import chat as command
from engine.console.printing import ReadingLine, ReplyPrinter
from engine.kept_costs import CostFile, Kept, Trial
from engine.models.folders import cache_folder
from tests.engine.console.terminal import Terminal


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


def test_a_long_prompt_says_on_the_terminal_how_far_it_is_read(llama_folder, capsys, monkeypatch):
    seconds = iter(range(1000))
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    monkeypatch.setattr(
        command, "ReadingLine", lambda stream: ReadingLine(stream, lambda: next(seconds))
    )

    status = chat("--target", llama_folder, "--max-new-tokens", 3, "the cat " * 50)

    assert status == 0
    assert "Reading the prompt, 100% …\r\x1b[K" in terminal.getvalue()
    assert "Reading" not in capsys.readouterr().out
