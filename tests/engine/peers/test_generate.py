"""transformers' generate as a peer, on tiny models."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from engine.devices import fast_dtype
from engine.errors import EngineError
from engine.events import FinishReason
from engine.models.catalog import find_model
from engine.models.transformers_loading import load_model
from engine.peers.generate import TransformersPeer
from tests.engine import models_for_tests as tiny

PROMPT = [tiny.BEGIN_ID, 40, 41, 42, 40, 41, 42, tiny.CUE_ID]
NOTHING_ENDS = frozenset[int]()


def a_peer(target, assistant=None, *, end_ids=NOTHING_ENDS):
    return TransformersPeer(
        find_model(target),
        assistant and find_model(assistant),
        device="cpu",
        end_ids=end_ids,
        decode=lambda ids: " ".join(map(str, ids)),
    )


def replies_of(peer, *, count=12):
    replies = {}
    for mode in peer.modes:
        with peer.opened(mode) as answer:
            replies[mode] = answer(PROMPT, count)
    peer.close()
    return replies


def test_it_has_an_assistant_mode_where_there_is_one(llama_folder, draft_folder):
    assert a_peer(llama_folder).modes == ("plain", "prompt lookup (8)")
    assert a_peer(llama_folder, draft_folder).modes[-1] == "assistant model (5)"


def test_plain_is_what_generate_writes_in_the_dtype_that_is_fast_here(llama_folder):
    model: Any = load_model(find_model(llama_folder), device="cpu", dtype=fast_dtype("cpu"))
    model.generation_config.eos_token_id = None
    expected = model.generate(torch.tensor([PROMPT]), max_new_tokens=12, do_sample=False)

    reply = replies_of(a_peer(llama_folder))["plain"]

    assert [*PROMPT, *reply.ids] == expected[0].tolist()


def test_every_mode_writes_a_whole_reply_with_its_times(llama_folder, draft_folder):
    replies = replies_of(a_peer(llama_folder, draft_folder))

    for reply in replies.values():
        assert len(reply.ids) == 12
        assert reply.text == " ".join(map(str, reply.ids))
        assert 1 <= reply.first_tokens < 12
        assert reply.prefill_seconds > 0
        assert reply.tokens_per_second == (12 - reply.first_tokens) / reply.decode_seconds
        assert reply.finish_reason is FinishReason.LENGTH
    assert replies["plain"].first_tokens == 1


def test_a_reply_ends_where_ours_would(llama_folder):
    third = replies_of(a_peer(llama_folder))["plain"].ids[2]

    reply = replies_of(a_peer(llama_folder, end_ids=frozenset([third])))["plain"]

    assert reply.ids[-1] == third
    assert len(reply.ids) <= 3
    assert str(third) not in reply.text.split()
    assert reply.finish_reason is FinishReason.END_OF_TURN


def test_a_reply_of_one_token_has_no_speed_of_decoding(llama_folder):
    reply = replies_of(a_peer(llama_folder), count=1)["plain"]

    assert reply.tokens_per_second is None
    assert reply.whole_tokens_per_second > 0


def test_a_pair_that_generate_refuses_is_one_sentence(llama_folder, padded_draft_folder):
    peer = a_peer(llama_folder, padded_draft_folder)

    with (
        pytest.raises(EngineError, match="generate failed"),
        peer.opened("assistant model (5)") as answer,
    ):
        answer(PROMPT, 4)
