"""The real default model: it answers, drafts for itself, and says the same with every drafter."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch

from engine.benchmark import Findings, Plan, read_prompts, run
from engine.engine import Engine
from engine.events import Drafted, Finished, Origin, Round
from engine.params import ReplyParams, SamplingParams
from engine.templates import Message

# Some take minutes on processors without AVX-512.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

QUESTION = "What is the capital of France?"


@pytest.fixture(scope="module")
def engine():
    return Engine.load("default", device="cpu", dtype="float32")


def answer(engine, drafter, params, draft_length=None):
    session = engine.new_session(drafter=drafter)
    session.drafting.draft_length = draft_length
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


PROMPTS = read_prompts(Path("resources/prompts/shipped.jsonl"))[0]
"""Two-turn conversations, long prompts and other languages among them."""

FEW = [prompt for prompt in PROMPTS if prompt.id.endswith("-2")]
"""One of each category, for drafters that take several times as long."""

SHIPPED = sorted(path.parent.name for path in Path("resources/drafters").glob("*/config.json"))


@pytest.fixture
def all_cores():
    """These runs are long, and the native decoder's bits don't depend on the number of threads."""
    threads = torch.get_num_threads()
    torch.set_num_threads(os.cpu_count() or 1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("temperature", [0.0, 0.7, 1.2])
@pytest.mark.parametrize(
    ("drafters", "prompts"),
    [
        pytest.param(["ngram"], PROMPTS, id="every prompt"),
        pytest.param(["suffix", "layer-skip@20", "draft-model:default", *SHIPPED], FEW, id="some"),
    ],
)
@pytest.mark.usefixtures("all_cores")
def test_one_seed_gives_one_text_with_every_drafter_to_the_last_byte(
    native, drafters, prompts, temperature
):
    params = ReplyParams(SamplingParams(temperature=temperature, seed=6), max_new_tokens=64)
    plan = Plan(prompts, drafters, params, 3, 0)

    run(native, plan, found := Findings(native, plan), lambda what, done, total: None)

    runs = found.records()
    assert len(runs) == len(prompts) * (1 + len(drafters))
    assert [run for run in runs if not run["identical_to_baseline"]] == []


@pytest.mark.parametrize(
    ("drafter", "temperature", "tokens_a_pass"),
    [
        ("eagle3", 0.0, 1.6),
        ("eagle3", 0.8, 1.25),
        ("eagle", 0.0, 1.3),
        ("draft-model", 0.0, 1.3),
        ("medusa", 0.0, 1.15),
    ],
)
@pytest.mark.usefixtures("all_cores")
def test_what_ships_saves_passes(native, drafter, temperature, tokens_a_pass):
    params = ReplyParams(SamplingParams(temperature=temperature, seed=6), max_new_tokens=64)
    plan = Plan(FEW, [drafter], params, 3, 0)

    run(native, plan, found := Findings(native, plan), lambda what, done, total: None)

    drafted = [run for run in found.records() if run["drafter"] == drafter]
    assert len(drafted) == len(FEW)
    tokens = sum(len(run["ids"]) for run in drafted)
    assert tokens > tokens_a_pass * sum(run["rounds"] for run in drafted)


@pytest.mark.usefixtures("all_cores")
def test_auto_drafts_with_the_head_that_ships(native):
    session, _ = answer(native, "auto", ReplyParams(max_new_tokens=8))

    assert "eagle3" in session.drafting.drafter.proposers
    assert set(SHIPPED) <= {choice.spec for choice in native.drafter_choices() if choice.ships}


@pytest.mark.parametrize("temperature", [0.0, 1.2])
@pytest.mark.usefixtures("all_cores")
def test_a_second_turn_is_the_same_whatever_drafted_the_first(native, temperature):
    first = next(prompt for prompt in PROMPTS if prompt.id == "summarise-1").messages[-1].content
    params = ReplyParams(SamplingParams(temperature=temperature, seed=3), max_new_tokens=150)
    texts = set()

    for drafter in ("off", "ngram", "layer-skip@20"):
        session = native.new_session(drafter=drafter)
        for question in (first, "And now in one sentence, please."):
            list(session.reply(question, params, threading.Event()))
        texts.add(tuple(message.content for message in session.messages))

    assert len(texts) == 1


RESIDENT = """
import ctypes, sys
from engine import Engine
from engine.models.catalog import find_model
from engine.models.loading import load_lm
from engine.models.tokenizer import load_tokenizer

def resident_bytes():
    ctypes.CDLL(None).malloc_trim(0)
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))

source = find_model("default")
tokenizer = load_tokenizer(source)
before = resident_bytes()
loaded = load_lm(source, device="cpu", dtype="auto", vocabulary=9, end_ids=frozenset())
print((resident_bytes() - before) / source.path.stat().st_size)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_loaded_model_takes_little_more_memory_than_its_file():
    done = subprocess.run(
        [sys.executable, "-c", RESIDENT], capture_output=True, text=True, check=True, timeout=300
    )

    assert 0.9 < float(done.stdout) < 1.25


def test_it_says_what_transformers_generates(engine):
    _, events = answer(engine, "layer-skip@20", ReplyParams(max_new_tokens=24))

    prompt = engine._format.encode([Message("user", QUESTION)]).ids
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

    _, events = answer(engine, "draft-model:default", params, draft_length=3)

    tokens = [token for event in events if isinstance(event, Round) for token in event.tokens]
    stats = events[-1].stats
    assert ids_of(events) == ids_of(plain)
    assert stats.accepted == stats.drafted > 0
    assert {token.origin for token in tokens} <= {Origin.DRAFT_ACCEPTED, Origin.TARGET_ONLY}
    assert any(isinstance(event, Drafted) for event in events)
    assert stats.mean_accepted_length > 3
