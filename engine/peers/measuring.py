"""Runs peers mode by mode and keeps every figure as a record; what fails becomes a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from engine.errors import EngineError
from engine.peers.peer import PLAIN

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engine.peers.peer import Peer, PeerReply

_WARM_UP_TOKENS = 16


@dataclass(frozen=True, slots=True)
class PeerPrompt:
    """A prompt in the target's own ids; room: the most new tokens that the context has room for."""

    id: str
    category: str
    ids: tuple[int, ...]
    room: int


@dataclass(frozen=True, slots=True)
class Work:
    """What every peer has to do: the same as ours did."""

    target: str
    prompts: Sequence[PeerPrompt]
    max_new_tokens: int
    repeats: int


class Findings:
    """What has been measured so far; complete at any moment, also after a failure.

    notes: what could not be measured, and why, a sentence each.
    """

    def __init__(self, work: Work, notes: Sequence[str] = ()) -> None:
        self.notes = list(notes)
        self._work = work
        self._replies: dict[tuple[str, str, str], list[PeerReply]] = {}
        self._dtypes: dict[str, str] = {}

    def add(self, peer: Peer, mode: str, prompt: PeerPrompt, reply: PeerReply) -> None:
        """Keep one reply."""
        self._dtypes[peer.name] = peer.dtype
        self._replies.setdefault((peer.name, mode, prompt.id), []).append(reply)

    def records(self) -> list[dict[str, Any]]:
        """One record for each engine, mode and prompt that was measured."""
        prompts = {prompt.id: prompt for prompt in self._work.prompts}
        return [
            {
                "engine": engine,
                "mode": mode,
                "target": self._work.target,
                "dtype": self._dtypes[engine],
                "prompt_id": prompt_id,
                "category": prompts[prompt_id].category,
                **_figures(replies, self._replies[engine, PLAIN, prompt_id]),
            }
            for (engine, mode, prompt_id), replies in self._replies.items()
        ]


def measure(
    peers: Sequence[Peer], work: Work, found: Findings, told: Callable[[str, int, int], None]
) -> None:
    """Every peer, one after the other, never two at once; one that fails leaves the rest running.

    told: (what runs next, replies done, replies in all).
    """
    count = [0, sum(len(peer.modes) for peer in peers) * work.repeats * len(work.prompts)]

    def one_more(what: str) -> None:
        told(what, *count)
        count[0] += 1

    for peer in peers:
        try:
            _measure_peer(peer, work, found, one_more)
        finally:
            peer.close()
    told("done", count[1], count[1])


def _measure_peer(peer: Peer, work: Work, found: Findings, told: Callable[[str], None]) -> None:
    modes = list(peer.modes)
    for _ in range(work.repeats):
        for mode in tuple(modes):
            try:
                _measure_mode(peer, mode, work, found, told)
            except EngineError as error:
                found.notes.append(f"{peer.name}, {mode}: {error}")
                if mode == PLAIN:  # nothing to compare the others with
                    return
                modes.remove(mode)


def _measure_mode(
    peer: Peer, mode: str, work: Work, found: Findings, told: Callable[[str], None]
) -> None:
    with peer.opened(mode) as answer:
        first = work.prompts[0]
        answer(first.ids, min(_WARM_UP_TOKENS, first.room))
        for prompt in work.prompts:
            told(f"{prompt.id}, {peer.name}, {mode}")
            reply = answer(prompt.ids, min(work.max_new_tokens, prompt.room))
            found.add(peer, mode, prompt, reply)


def _figures(replies: Sequence[PeerReply], plain: Sequence[PeerReply]) -> dict[str, Any]:
    """The last reply's text, and the medians of all replies' times."""
    last = replies[-1]
    speeds = [reply.tokens_per_second for reply in replies if reply.tokens_per_second is not None]
    plain_speeds = [
        reply.tokens_per_second for reply in plain if reply.tokens_per_second is not None
    ]
    speed = median(speeds) if speeds else None
    plain_speed = median(plain_speeds) if plain_speeds else None
    difference = _first_difference(replies, plain[0])
    return {
        "text": last.text,
        "ids": list(last.ids),
        "drafted": last.drafted,
        "accepted": last.accepted,
        "prefill_seconds": median(reply.prefill_seconds for reply in replies),
        "decode_seconds": median(reply.decode_seconds for reply in replies),
        "tokens_per_second": speed,
        "tokens_per_second_spread": [min(speeds), max(speeds)] if speeds else None,
        "whole_tokens_per_second": median(reply.whole_tokens_per_second for reply in replies),
        "baseline_tokens_per_second": plain_speed,
        "speedup": speed / plain_speed if speed and plain_speed else None,
        "identical_to_baseline": difference is None,
        "first_difference": difference,
        "finish_reason": str(last.finish_reason),
    }


def _first_difference(replies: Sequence[PeerReply], plain: PeerReply) -> dict[str, Any] | None:
    """Where any reply leaves the peer's own plain one."""
    for reply in replies:
        if reply.ids == plain.ids:
            continue
        ours, theirs = (*reply.ids, None), (*plain.ids, None)
        index = next(
            at for at, pair in enumerate(zip(ours, theirs, strict=False)) if pair[0] != pair[1]
        )
        return {"index": index, "id": ours[index], "baseline_id": theirs[index]}
    return None
