"""The command `bench`, from the options to the file and the summary."""

from __future__ import annotations

import json

import pytest

from engine.__main__ import main
from engine.errors import OutOfMemory
from engine.session import Session
from tests.engine.benchmark.conversations import PROMPTS, asking, write_prompts

KEYS = {"versions", "device", "threads", "prompts_sha256", "runs", "notes"}


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out.json"


@pytest.fixture
def command(llama_folder, out):
    options = "bench --device cpu --dtype float64 --max-new-tokens 6 --drafters ngram"
    prompts = write_prompts(out.parent / "prompts é.jsonl")
    return [
        *options.split(),
        *("--target", str(llama_folder), "--prompts", str(prompts), "--json", str(out)),
    ]


def test_the_command_writes_the_whole_file_and_a_summary(command, out, capsys):
    status = main(command)

    written = json.loads(out.read_text(encoding="utf-8"))
    assert status == 0
    assert written.keys() == KEYS
    assert len(written["runs"]) == 4
    assert written["notes"] == []
    assert "2 of 2" in capsys.readouterr().out


def test_figures_that_cannot_be_kept_are_said_before_anything_is_measured(tmp_path, capsys):
    status = main(
        ["bench", "--target", "/no/such/model", "--json", str(tmp_path / "no" / "x.json")]
    )

    assert status == 1
    assert "The figures can't be written to" in capsys.readouterr().err


def raising(monkeypatch, error):
    """Let every reply to the second prompt end in an error."""
    reply, second = Session.reply, PROMPTS[1]["messages"][-1]["content"]

    def reply_or_fail(self, text, params, stop):
        if text == second:
            raise error
        return reply(self, text, params, stop)

    monkeypatch.setattr(Session, "reply", reply_or_fail)


@pytest.mark.parametrize(
    ("error", "status", "notes"),
    [(OutOfMemory("No memory is left."), 1, 1), (KeyboardInterrupt(), 130, 0)],
)
def test_what_was_measured_is_kept_whatever_ends_it(
    command, out, capsys, monkeypatch, error, status, notes
):
    raising(monkeypatch, error)

    assert main(command) == status

    written, printed = json.loads(out.read_text(encoding="utf-8")), capsys.readouterr()
    assert [run["prompt_id"] for run in written["runs"]] == ["one", "one"]
    assert len(written["notes"]) == notes
    assert "1 of 1" in printed.out
    assert printed.err.count('line 2, "two", with off: No memory is left.') == notes


def test_figures_of_an_earlier_time_stay_where_nothing_is_measured(command, out, capsys):
    out.write_text("earlier", encoding="utf-8")
    write_prompts(out.parent / "prompts é.jsonl", asking("novel", "the cat " * 300))

    assert main(command) == 1

    assert out.read_text(encoding="utf-8") == "earlier"
    assert 'line 1, "novel"' in capsys.readouterr().err
