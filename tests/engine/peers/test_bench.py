"""`bench --peers`, from the command to the file and the table."""

from __future__ import annotations

import json
import os

import pytest

from engine.__main__ import main
from engine.engine import Engine
from engine.models.catalog import ModelSource
from engine.peers import choosing
from engine.peers.generate import TransformersPeer
from engine.peers.measuring import PeerPrompt, Work
from tests.engine.peers.programs import Program

PROMPTS = [
    {"id": "one", "category": "chat", "messages": [{"role": "user", "content": "the cat"}]},
    {"id": "two", "category": "edit", "messages": [{"role": "user", "content": "and the hat"}]},
]


@pytest.fixture
def command(llama_folder, draft_folder, tmp_path):
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text("\n".join(json.dumps(line) for line in PROMPTS), encoding="utf-8")
    options = "bench --device cpu --dtype float64 --max-new-tokens 6 --peers"
    return [
        *options.split(),
        *("--target", str(llama_folder), "--prompts", str(prompts)),
        *("--drafters", f"ngram,draft-model:{draft_folder}"),
        *("--json", str(tmp_path / "out.json"), "--table", str(tmp_path / "out.md")),
    ]


def written(tmp_path):
    return json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))


def test_peers_stand_beside_our_runs_in_the_file_and_in_the_table(command, tmp_path, capsys):
    status = main(command)

    report, table = written(tmp_path), (tmp_path / "out.md").read_text(encoding="utf-8")
    assert status == 0
    assert len(report["runs"]) == 6
    assert {each["mode"] for each in report["peers"]["runs"]} == {
        "plain",
        "prompt lookup (8)",
        "assistant model (5)",
    }
    assert len(report["peers"]["runs"]) == 6
    assert report["peers"]["notes"] == [
        "llama.cpp was left out: it reads GGUF files, and this target is none."
    ]
    assert {each["drafter"] for each in report["peers"]["ratios"]} > {"off", "ngram"}
    assert " cores" in report["peers"]["machine"]
    assert capsys.readouterr().out.endswith(table)


def test_what_was_measured_is_kept_when_a_peer_is_interrupted(
    command, tmp_path, monkeypatch, capsys
):
    def interrupted(peer, mode):
        raise KeyboardInterrupt

    monkeypatch.setattr(TransformersPeer, "opened", interrupted)

    status = main(command)

    assert status == 130
    assert len(written(tmp_path)["runs"]) == 6
    assert written(tmp_path)["peers"]["runs"] == []
    assert "Draftlight" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--temperature", "0.8"], "Peers are measured at temperature 0"),
        (["--repetition-penalty", "1.1"], "without a repetition penalty"),
        (["--stop", "end"], "or stop texts"),
        (["--llama-server", "no-such-program"], "There is no program no-such-program"),
        (["--table", "/no/such/folder/out.md"], "can't be written to"),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_is_measured(
    command, tmp_path, more, sentence, capsys
):
    status = main([*command, *more])

    assert status == 1
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "out.json").exists()


def test_options_of_the_peers_alone_are_refused(command, capsys):
    status = main([option for option in command if option != "--peers"])

    assert status == 1
    assert "belong to --peers" in capsys.readouterr().err


@pytest.fixture(scope="module")
def engine(llama_folder):
    return Engine.load(llama_folder, device="cpu", dtype="float64")


@pytest.fixture
def gguf_targets(tmp_path, monkeypatch):
    """Every model is found as a GGUF file."""
    file = tmp_path / "m.gguf"
    file.write_bytes(b"GGUF")
    monkeypatch.setattr(choosing, "find_model", lambda target: ModelSource("m", "m", file))


def chosen(engine, program, drafters=()):
    work = Work("m", [PeerPrompt("one", "chat", (1, 2, 3), room=100)], 50, 1)
    notes = []
    return choosing.peers_here(engine, work, drafters, program, notes), notes


@pytest.mark.usefixtures("gguf_targets")
def test_without_a_server_on_the_path_a_sentence_says_so(engine, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))

    peers, notes = chosen(engine, None)

    assert [type(peer) for peer in peers] == [TransformersPeer]
    assert notes == ["llama.cpp was left out: there is no llama-server on the path."]


@pytest.mark.skipif(os.name == "nt", reason="the fake program is a shell script")
@pytest.mark.usefixtures("gguf_targets")
def test_the_server_on_the_path_is_measured_too(engine, tmp_path, monkeypatch):
    Program(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)

    peers, notes = chosen(engine, None, ["ngram", "draft-model:m"])

    assert [peer.modes[-1] for peer in peers] == ["assistant model (5)", "draft model"]
    assert notes == []


@pytest.mark.skipif(os.name == "nt", reason="the fake program is a shell script")
@pytest.mark.usefixtures("gguf_targets")
def test_a_program_that_is_something_else_leaves_the_other_peers(engine, tmp_path):
    program = Program(tmp_path, "is something else")

    peers, notes = chosen(engine, program.path)

    assert [type(peer) for peer in peers] == [TransformersPeer]
    assert notes == ["llama.cpp was left out: llama-server does not look like llama.cpp's server."]
