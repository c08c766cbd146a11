"""llama.cpp's server as a peer, against a program of a few lines that speaks as it does."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from engine.events import FinishReason
from engine.peers.llama_server import LlamaServerPeer
from engine.peers.peer import PeerError
from tests.engine.peers.programs import Program

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the fake program is a shell script")

TARGET, DRAFT = Path("target.gguf"), Path("draft.gguf")


def a_peer(program, *, draft=None, ready_seconds=30.0):
    return LlamaServerPeer(
        program.path,
        TARGET,
        draft,
        threads=2,
        context_tokens=640,
        on_cpu=True,
        ready_seconds=ready_seconds,
    )


def value_of(options, name):
    return options[options.index(name) + 1]


def test_its_modes_are_those_that_its_help_knows(tmp_path):
    program = Program(tmp_path)

    assert a_peer(program).modes == ("plain", "ngram-simple", "ngram-mod")
    assert a_peer(program, draft=DRAFT).modes[-1] == "draft model"
    assert a_peer(program).name == "llama.cpp 0.5 build 4711"


def test_a_reply_has_the_servers_own_ids_and_timings(tmp_path):
    program = Program(tmp_path)

    with a_peer(program).opened("ngram-simple") as answer:
        reply = answer([3, 4], 6)

    assert reply.ids == (7, 8, 9, 10, 11, 12)
    assert reply.text == "some text"
    assert reply.tokens_per_second == 5 / 0.025  # the first of six came with the prompt's pass
    assert reply.whole_tokens_per_second == 6 / 0.125
    assert (reply.drafted, reply.accepted) == (8, 3)
    assert reply.finish_reason is FinishReason.LENGTH


def test_it_is_asked_for_a_greedy_reply_to_the_same_ids(tmp_path):
    program = Program(tmp_path)

    with a_peer(program).opened("plain") as answer:
        answer([3, 4], 6)

    (request,) = program.noted("requests")
    assert request["path"] == "/completion"
    assert request["body"]["prompt"] == [3, 4]
    assert request["body"]["n_predict"] == 6
    assert request["body"]["temperature"] == 0
    assert request["body"]["samplers"] == ["top_k", "temperature"]
    assert request["body"]["return_tokens"] is True
    assert request["body"]["stream"] is request["body"]["cache_prompt"] is False


def test_it_is_started_on_this_machine_with_our_threads_and_known_options_alone(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("LLAMA_ARG_THREADS", "64")
    program = Program(tmp_path)

    with a_peer(program, draft=DRAFT).opened("draft model"):
        pass

    (options,) = program.noted("options")
    assert value_of(options, "--model") == str(TARGET)
    assert value_of(options, "--host") == "127.0.0.1"
    assert value_of(options, "--threads") == "2"
    assert value_of(options, "--ctx-size") == "640"
    assert value_of(options, "--device") == "none"
    assert value_of(options, "--spec-draft-model") == str(DRAFT)
    assert value_of(options, "--spec-type") == "draft-simple"
    assert "--cache-ram" not in options
    assert "LLAMA_ARG_THREADS" not in program.noted("environment")[0]


@pytest.mark.parametrize("behaviour", ["well", "ignores signals"])
def test_the_server_is_gone_after_its_mode(tmp_path, monkeypatch, behaviour):
    monkeypatch.setattr("engine.peers.server_process._GRACE_SECONDS", 0.2)
    program = Program(tmp_path, behaviour)

    with a_peer(program).opened("plain"):
        ran = program.is_running()

    assert ran
    assert not program.is_running()


def test_the_server_is_gone_after_an_error_of_ours(tmp_path):
    program = Program(tmp_path)

    with pytest.raises(ZeroDivisionError), a_peer(program).opened("plain"):
        _ = 1 / 0

    assert not program.is_running()


def test_the_server_is_gone_after_an_interrupt(tmp_path):
    program = Program(tmp_path)

    with pytest.raises(KeyboardInterrupt), a_peer(program).opened("plain"):
        raise KeyboardInterrupt

    assert not program.is_running()


@pytest.mark.parametrize(
    ("behaviour", "sentence"),
    [
        ("dies when asked", "the server went away \\(the model went away\\)"),
        ("refuses", "refused with status 400 .*no room"),
        ("speaks no JSON", "no JSON"),
        ("leaves out the tokens", "no tokens"),
        ("answers a list", "lacks the tokens or timings"),
    ],
)
def test_a_bad_answer_is_one_sentence_and_the_server_is_gone(tmp_path, behaviour, sentence):
    program = Program(tmp_path, behaviour)

    with pytest.raises(PeerError, match=sentence), a_peer(program).opened("plain") as answer:
        answer([1], 4)

    assert not program.is_running()


@pytest.mark.parametrize(
    ("behaviour", "ready_seconds", "sentence"),
    [
        ("dies at once", 30.0, "ended before it was ready \\(no such model\\)"),
        ("never ready", 0.5, "not ready within 0.5 seconds"),
    ],
)
def test_a_server_that_does_not_come_up_is_one_sentence(
    tmp_path, behaviour, ready_seconds, sentence
):
    program = Program(tmp_path, behaviour)
    peer = a_peer(program, ready_seconds=ready_seconds)

    with pytest.raises(PeerError, match=sentence), peer.opened("plain"):
        pass

    assert not program.is_running()


def test_another_program_is_not_taken_for_the_server(tmp_path):
    with pytest.raises(PeerError, match="does not look like llama"):
        a_peer(Program(tmp_path, "is something else"))


def test_a_file_that_cannot_run_is_one_sentence(tmp_path):
    program = Program(tmp_path)
    program.path.chmod(stat.S_IRUSR)

    with pytest.raises(PeerError, match="can't be started"):
        a_peer(program)


def test_a_proxy_in_the_environment_is_not_asked(tmp_path, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    program = Program(tmp_path)

    with a_peer(program).opened("plain") as answer:
        reply = answer([1], 4)

    assert len(reply.ids) == 4
