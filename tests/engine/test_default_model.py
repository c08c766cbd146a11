"""The real default model: it answers, drafts for itself, and says the same with every drafter."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
import torch

from engine.benchmark import Plan, read_prompts, run
from engine.engine import Engine
from engine.events import Drafted, Finished, Origin, Round
from engine.params import ReplyParams, SamplingParams
from engine.templates import Message

pytestmark = pytest.mark.slow

QUESTION = "What is the capital of France?"


@pytest.fixture(scope="module")
def engine():
    return Engine.load("default", device="cpu", dtype="float32")


def answer(engine, drafter, params):
    session = engine.new_session(drafter=drafter)
    return session, list(session.reply(QUESTION, params, threading.Event()))


def ids_of(events):
    return [token.id for event in events if isinstance(event, Round) for token in event.tokens]


@pytest.fixture(scope="module")
def native():
    """As a user gets it on a CPU: the native decoder over the file's own codes."""
    return Engine.load("default", device="cpu")


@pytest.mark.parametrize("runner", ["engine", "native"])
def test_it_answers(runner, request):
    engine = request.getfixturevalue(runner)

    session, events = answer(engine, "ngram", ReplyParams(max_new_tokens=40))

    assert engine.name == "SmolLM2 135M Instruct"
    assert engine.notes == ()
    assert "Paris" in session.messages[-1].content
    assert isinstance(events[-1], Finished)


def test_the_native_decoder_runs_it_and_finds_itself_exact(native):
    assert native.dtype == "packed"
    assert native.bit_exact


PROMPTS = [
    prompt
    for prompt in read_prompts(Path("resources/prompts/shipped.jsonl"))[0]
    if prompt.id in ("chat-2", "edit-1", "extract-4")  # two turns, a copy, another language
]


@pytest.mark.parametrize("temperature", [0.0, 0.7, 1.2])
def test_one_seed_gives_one_text_with_every_drafter_to_the_last_byte(native, temperature):
    drafters = ["ngram", "layer-skip@20", "draft-model:default"]
    params = ReplyParams(SamplingParams(temperature=temperature, seed=6), max_new_tokens=64)

    runs = run(native, Plan(PROMPTS, drafters, params, 4, 0), lambda what, done, total: None)

    assert len(runs) == 3 * 4
    assert [run for run in runs if not run["identical_to_baseline"]] == []


def test_it_says_what_transformers_generates(engine):
    _, events = answer(engine, "layer-skip@20", ReplyParams(max_new_tokens=24))

    prompt = engine._format.encode([Message("user", QUESTION)])
    expected = engine.lm._model.generate(
        torch.tensor([prompt]),
        attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
        max_new_tokens=24,
        do_sample=False,
    )
    assert ids_of(events) == expected[0, len(prompt) :].tolist()


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_it_drafts_for_itself_and_is_accepted_whole(engine, temperature):
    params = ReplyParams(SamplingParams(temperature=temperature, seed=1), max_new_tokens=25)
    _, plain = answer(engine, "off", params)

    _, events = answer(engine, "draft-model:default", params)

    tokens = [token for event in events if isinstance(event, Round) for token in event.tokens]
    stats = events[-1].stats
    assert ids_of(events) == ids_of(plain)
    assert stats.accepted == stats.drafted > 0
    assert {token.origin for token in tokens} <= {Origin.DRAFT_ACCEPTED, Origin.TARGET_ONLY}
    assert any(isinstance(event, Drafted) for event in events)
    assert stats.mean_accepted_length > 3
