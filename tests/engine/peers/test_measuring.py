"""Peers run mode by mode: what is kept, and what happens when one fails."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from engine.events import FinishReason
from engine.peers.measuring import Findings, PeerPrompt, Work, measure
from engine.peers.peer import PeerError, PeerReply

PROMPTS = [PeerPrompt("one", "chat", (1, 2), room=9), PeerPrompt("two", "edit", (3,), room=3)]
FIELDS = {
    "engine", "mode", "target", "dtype", "prompt_id", "category", "text", "ids", "drafted",
    "accepted", "prefill_seconds", "decode_seconds", "tokens_per_second",
    "tokens_per_second_spread", "whole_tokens_per_second", "baseline_tokens_per_second", "speedup",
    "identical_to_baseline", "first_difference", "finish_reason",
}  # fmt: skip


TIRED = PeerError("it is tired.")


class FakePeer:
    """Writes 1, 2, 3, ...; in "other" a 9 in the second place.

    seconds: a token takes, one value each time a mode opens. failing: the mode with the error.
    """

    name, dtype, modes = "fake 1", "float3", ("plain", "same", "other")

    def __init__(self, *, seconds=(0.1,), failing=None, error: BaseException = TIRED):
        self.log = []
        self._seconds = iter(seconds)
        self._failing = failing
        self._error = error

    @contextmanager
    def opened(self, mode):
        self.log.append(f"open {mode}")
        seconds = next(self._seconds, 0.1)

        def answer(ids, max_new_tokens):
            if mode == self._failing and ids == PROMPTS[1].ids:
                raise self._error
            written = list(range(1, max_new_tokens + 1))
            if mode == "other":
                written[1] = 9
            time = seconds * (max_new_tokens - 1)
            return PeerReply(tuple(written), "text", 1, 0.5, time, FinishReason.LENGTH)

        yield answer
        self.log.append(f"shut {mode}")

    def close(self):
        self.log.append("close")


def measured(peer, *, repeats=1, told=lambda what, done, total: None):
    work = Work("the target", PROMPTS, max_new_tokens=5, repeats=repeats)
    found = Findings(work)
    measure([peer], work, found, told)
    return found


def record_of(found, mode, prompt="one"):
    (record,) = [
        each for each in found.records() if (each["mode"], each["prompt_id"]) == (mode, prompt)
    ]
    return record


def test_every_mode_has_a_record_for_every_prompt():
    records = measured(FakePeer()).records()

    assert [(each["mode"], each["prompt_id"]) for each in records] == [
        (mode, prompt) for mode in FakePeer.modes for prompt in ("one", "two")
    ]
    assert all(each.keys() == FIELDS for each in records)
    assert records[0]["engine"] == "fake 1"
    assert records[0]["target"] == "the target"


def test_one_mode_is_shut_before_the_next_opens():
    peer = FakePeer()

    measured(peer)

    assert peer.log == [
        *(f"{verb} {mode}" for mode in peer.modes for verb in ("open", "shut")),
        "close",
    ]


def test_a_reply_stops_where_the_context_ends():
    found = measured(FakePeer())

    assert len(record_of(found, "plain", "one")["ids"]) == 5
    assert len(record_of(found, "plain", "two")["ids"]) == 3


def test_speeds_are_the_medians_of_the_repeats():
    peer = FakePeer(seconds=(0.1, 0.1, 0.1, 0.2, 0.1, 0.1, 0.5))

    found = measured(peer, repeats=3)

    plain, same = record_of(found, "plain"), record_of(found, "same")
    assert plain["tokens_per_second"] == pytest.approx(5)
    assert plain["tokens_per_second_spread"] == pytest.approx([2, 10])
    assert plain["whole_tokens_per_second"] == pytest.approx(5 / 1.3)
    assert same["speedup"] == pytest.approx(2)


def test_texts_are_compared_with_the_peers_own_plain_ones():
    found = measured(FakePeer())

    assert record_of(found, "same")["identical_to_baseline"] is True
    assert record_of(found, "other")["identical_to_baseline"] is False
    assert record_of(found, "other")["first_difference"] == {
        "index": 1,
        "id": 9,
        "baseline_id": 2,
    }


def test_a_mode_that_fails_keeps_its_figures_and_the_rest_goes_on():
    found = measured(FakePeer(failing="same"), repeats=2)

    measured_modes = [(each["mode"], each["prompt_id"]) for each in found.records()]
    assert ("same", "one") in measured_modes
    assert ("same", "two") not in measured_modes
    assert ("other", "two") in measured_modes
    assert found.notes == ["fake 1, same: it is tired."]


def test_a_peer_whose_plain_mode_fails_is_left_at_that():
    peer = FakePeer(failing="plain")

    found = measured(peer)

    assert peer.log == ["open plain", "close"]
    assert found.notes == ["fake 1, plain: it is tired."]
    assert len(found.records()) == 1


def test_an_interrupt_leaves_what_was_measured():
    peer = FakePeer(failing="other", error=KeyboardInterrupt())
    work = Work("the target", PROMPTS, max_new_tokens=5, repeats=1)
    found = Findings(work)

    with pytest.raises(KeyboardInterrupt):
        measure([peer], work, found, lambda what, done, total: None)

    assert len(found.records()) == 5
    assert peer.log[-1] == "close"


def test_progress_counts_every_reply():
    told = []

    measured(FakePeer(), repeats=2, told=lambda *what: told.append(what))

    assert told[0] == ("one, fake 1, plain", 0, 12)
    assert [done for _, done, _ in told] == list(range(13))
