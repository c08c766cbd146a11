"""Which proposed tokens the target keeps, and the one it adds: pure functions."""

# transformers' and torch's own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from engine.draft import ROOT, Draft
from engine.events import Origin, Outcome
from engine.params import Rule, SamplingParams
from engine.sampling import Noise, coupled_scores, draw, probabilities

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class Verdict:
    """A judged draft.

    accepted: the kept nodes from depth 1 down; token: the target's own after them, with its origin;
    outcomes: one a node; margins: one a committed token, as in events.Token.
    """

    accepted: tuple[int, ...]
    token: int
    origin: Origin
    outcomes: tuple[Outcome, ...]
    margins: tuple[float | None, ...]


def verify(
    draft: Draft, log_p: Tensor, *, params: SamplingParams, noise: Noise, position: int
) -> Verdict:
    """Judge a draft by the rule in force.

    log_p: (1 + nodes, vocabulary) processed log-probabilities of the root's row and each node's
    row.
    position: absolute position of the first token to be committed.
    """
    if params.is_greedy or params.rule is Rule.COUPLED:
        return _walk(draft, log_p, params, noise, position)
    if len(draft) and draft.is_chain and all(row is not None for row in draft.q_rows):
        return _verify_block(draft, log_p, noise)
    return _verify_siblings(draft, log_p, noise)


def _walk(
    draft: Draft, log_p: Tensor, params: SamplingParams, noise: Noise, position: int
) -> Verdict:
    """Follow the target's own choices while a node holds them (arXiv 2408.07978; greedy)."""
    node, accepted, margins = ROOT, list[int](), list[float | None]()
    while True:
        scores = coupled_scores(log_p[1 + node], position + len(accepted), params, noise)
        token = int(scores.argmax())
        margins.append(_margin(scores, token))
        held = [child for child in draft.children.get(node, ()) if draft.ids[child] == token]
        if not held:
            return _verdict(draft, accepted, token, margins)
        node = held[0]
        accepted.append(node)


def _margin(scores: Tensor, token: int) -> float:
    """How far a score is above all others'; the two parts' maxima are had faster than topk's."""
    others = [part for part in (scores[:token], scores[token + 1 :]) if len(part)]
    return float(scores[token]) - max(float(part.max()) for part in others)


def _verify_block(draft: Draft, log_p: Tensor, noise: Noise) -> Verdict:
    """Block verification of a sampled chain (arXiv 2403.10444, algorithm 2).

    Every position is judged with its own uniform, and the last one that passes counts.
    """
    count = len(draft)
    p = probabilities(log_p)
    uniforms = [noise.uniform() for _ in range(count)]
    ratio, kept, residual = 1.0, 0, _residual(p[0], 1.0, draft.q_rows[0])
    for length in range(1, count + 1):
        q_row = draft.q_rows[length - 1]
        assert q_row is not None
        token = draft.ids[length - 1]
        ratio = min(1.0, ratio * float(p[length - 1, token]) / float(q_row[token]))
        if length == count:
            left, passing = p[count], ratio
        else:
            left = _residual(p[length], ratio, draft.q_rows[length])
            mass = float(left.sum())
            passing = mass / (mass + (1.0 - ratio)) if mass or ratio < 1.0 else 1.0
        if uniforms[length - 1] < passing:
            kept, residual = length, left
    # Without any mass left, q equals p there up to rounding, and p itself is the residual's limit.
    weights = residual if float(residual.sum()) > 0.0 else p[kept]
    token = draw(weights, noise)
    return _verdict(draft, list(range(kept)), token, [None] * (kept + 1))


def _verify_siblings(draft: Draft, log_p: Tensor, noise: Noise) -> Verdict:
    """The sequential rule on a tree: siblings in turn, each against what those before it left.

    A deterministic proposal counts as a one-hot q (Leviathan et al., 2211.17192; SpecInfer,
    2305.09781).
    """
    node, accepted = ROOT, list[int]()
    while True:
        p = probabilities(log_p[1 + node])
        kept = None
        for child in draft.children.get(node, ()):
            token, q_row = draft.ids[child], draft.q_rows[child]
            passing = float(p[token]) if q_row is None else float(p[token] / q_row[token])
            left = _without(p, token) if q_row is None else _residual(p, 1.0, q_row)
            mass = float(left.sum())
            if noise.uniform() < passing or mass <= 0.0:
                kept = child
                break
            p = left / mass
        if kept is None:
            token = draw(p, noise)
            return _verdict(draft, accepted, token, [None] * (len(accepted) + 1))
        node = kept
        accepted.append(node)


def _residual(p: Tensor, ratio: float, q_row: Tensor | None) -> Tensor:
    assert q_row is not None
    return (ratio * p - q_row.to(p.device, torch.float64)).clamp_min(0.0)


def _without(p: Tensor, token: int) -> Tensor:
    left = p.clone()
    left[token] = 0.0
    return left


def _verdict(draft: Draft, accepted: list[int], token: int, margins: list[float | None]) -> Verdict:
    """The verdict whose walk ended under the last accepted node."""
    outcomes = [Outcome.NOT_REACHED] * len(draft)
    for place in (ROOT, *accepted):
        for child in draft.children.get(place, ()):
            outcomes[child] = Outcome.TURNED_DOWN
    for node in accepted:
        outcomes[node] = Outcome.KEPT
    end = accepted[-1] if accepted else ROOT
    return Verdict(
        accepted=tuple(accepted),
        token=token,
        origin=Origin.RESAMPLED if end in draft.children else Origin.TARGET_ONLY,
        outcomes=tuple(outcomes),
        margins=tuple(margins),
    )
