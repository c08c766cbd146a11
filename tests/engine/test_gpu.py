"""What needs a CUDA device; `make gpu-check` runs it."""

from __future__ import annotations

import threading

import pytest
import torch

from engine.engine import Engine
from engine.events import Round
from engine.params import ReplyParams, SamplingParams
from engine.templates import Message

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


@pytest.fixture(scope="module")
def packed():
    return Engine.load("default", device="cuda", dtype="packed")


def test_on_a_gpu_the_files_codes_say_what_transformers_says(engine, packed):
    ids = engine.prompt_ids([Message("user", "What is the capital of France?")])
    ours = packed.lm.score(packed.lm.new_memo(), ids).logits[0]

    theirs = engine.lm.score(engine.lm.new_memo(), ids).logits[0]

    assert packed.dtype == "packed"
    assert (ours - theirs).norm() / theirs.norm() < 0.03


@pytest.mark.parametrize("drafter", ["ngram", "layer-skip@20", "draft-model:default"])
def test_on_a_gpu_the_native_decoder_gives_one_text(packed, drafter):
    plain = tokens_of(packed, "off")

    drafted = tokens_of(packed, drafter)

    pairs = zip(plain, drafted, strict=False)
    difference = next((ours for ours, theirs in pairs if ours.id != theirs.id), None)
    assert difference is None or not packed.bit_exact


@pytest.mark.parametrize("rows", [1, 3, 40])
def test_captured_layers_do_what_the_layers_do(packed, rows):
    layer = packed.lm._decoder.layers[0]
    residual = torch.randn(rows, packed.lm._decoder.config.hidden, device="cuda")
    mixed = torch.randn_like(residual)

    with torch.inference_mode():
        for _ in range(2):  # captured, then replayed
            replayed = layer.finish(residual, mixed)
            assert torch.allclose(replayed, layer._layer.finish(residual, mixed), atol=1e-3)
