"""What needs a CUDA device; `make gpu-check` runs it."""

from __future__ import annotations

import threading

import pytest

from engine.engine import Engine
from engine.events import Round
from engine.params import ReplyParams, SamplingParams

pytestmark = pytest.mark.gpu

NEAR_TIE = 1e-4


@pytest.fixture(scope="module")
def engine():
    return Engine.load("default", device="cuda", dtype="float32")


def tokens_of(engine, drafter):
    session = engine.new_session(drafter=drafter)
    params = ReplyParams(SamplingParams(temperature=0.8, seed=2), max_new_tokens=64)
    events = session.reply("Tell me about bread.", params, threading.Event())
    return [token for event in events if isinstance(event, Round) for token in event.tokens]


@pytest.mark.parametrize("drafter", ["ngram", "layer-skip@20", "draft-model:default"])
def test_on_a_gpu_one_seed_gives_one_text_up_to_near_ties(engine, drafter):
    plain = tokens_of(engine, "off")

    drafted = tokens_of(engine, drafter)

    pairs = zip(plain, drafted, strict=False)
    difference = next((ours for ours, theirs in pairs if ours.id != theirs.id), None)
    assert difference is None or (difference.margin or 0.0) < NEAR_TIE


def test_the_gpu_is_listed_with_its_memory(engine):
    [gpu, *_] = engine.devices()

    assert gpu.id.startswith("cuda")
    assert gpu.memory_bytes > 0
