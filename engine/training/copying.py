"""Attention that copies before it has learnt anything: what came behind this token comes again.

Such heads (induction heads, Olsson et al., arXiv 2209.11895) are worth much where text repeats
itself, and gradients take long to find them. A row of EAGLE-3 has all they need: a low layer's
state still tells which token the row was, and the embedding beside it is that of the token behind.
"""

# torch's own annotations leave these unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from engine.training.starts import Draw, linear_fit

if TYPE_CHECKING:
    from torch import Tensor

    from engine.training.target_layers import LayerSizes

_MATCH, _SELF = 9.0, 5.0
"""How sharply a row looks for its token, and for itself: where there is no match, it wins."""

_COPIED = 1.5
"""How much of what stands before a token is put there, for a token that is copied."""

_FAINT = 0.2
"""The size of a mark in a fused state, so that the output hardly notices."""

_STEADY = 0.01
_SHARE_OF_STATE = 6


@dataclass(frozen=True, eq=False)
class Marks:
    """What tells tokens apart, and where in a fused state it stands.

    of_tokens: (marks, hidden size) from a normed embedding, less `mean`. places: (hidden size,
    marks) directions that say little to the output.
    """

    of_tokens: Tensor
    mean: Tensor
    places: Tensor

    @classmethod
    def of(cls, sizes: LayerSizes, draw: Draw, embedded: Tensor, output: Tensor) -> Marks:
        """embedded: normed embeddings of usual text, (n, hidden size). output: (ids, hidden size).

        Marks are as large for every token, and none is more telling than others.
        """
        count = sizes.kv_heads * _marks_a_lane(sizes)
        mean = embedded.mean(dim=0)
        moved = embedded - mean
        spread, directions = torch.linalg.eigh(moved.T @ moved / len(moved))
        spread, directions = spread[-count:], directions[:, -count:]
        level = (spread + _STEADY * spread.mean()).sqrt()
        mixed = torch.linalg.qr(draw(count, count))[0].to(moved)
        quiet = torch.linalg.eigh(output.T @ output)[1][:, :count]
        return cls(mixed @ (directions / level).T, mean, quiet)

    def written(
        self, weight: Tensor, constant: Tensor, low: Tensor, own: Tensor
    ) -> tuple[Tensor, Tensor]:
        """A fusion that writes the marks of its rows' own tokens, in the place of all else there.

        weight, constant: of the fusion, the lowest tap first. low: that tap's states as they enter,
        (n, hidden size); own: normed embeddings of the rows' tokens.
        """
        rest = torch.eye(len(weight)).to(weight) - self.places @ self.places.T
        seen, usual = linear_fit(low, (own - self.mean) @ self.of_tokens.T)
        kept = rest @ weight
        kept[:, : low.shape[1]] += _FAINT * self.places @ seen
        return kept, rest @ constant + _FAINT * self.places @ usual


def copying(
    sizes: LayerSizes, draw: Draw, marks: Marks, fused_size: float, guess: CopiedGuess
) -> dict[str, Tensor]:
    """The attention's matrices, over embeddings and fused states side by side.

    Of the queries that share keys, the last looks at its own row: its keys and queries are alike,
    and there it takes from its token what the guess would. All others look for a row of the token
    that has come last, else at their own, where what they copy is taken back again.
    """
    hidden, lanes, width = sizes.hidden, sizes.kv_heads, sizes.head_width
    group, count = sizes.heads // lanes, _marks_a_lane(sizes)
    slow = _slow(width)
    found = slow[:count]
    itself = torch.ones(width, 1)
    itself[slow] = 0.0
    keys = itself * draw(lanes * width, 2 * hidden).view(lanes, width, -1)
    queries = _SELF * keys[:, None].repeat(1, group, 1, 1)
    queries[:, :-1, found, :hidden] = _MATCH * marks.of_tokens.cpu().view(lanes, 1, count, -1)
    read = fused_size / _FAINT * marks.places.cpu().T
    keys[:, found, hidden:] = read.view(lanes, count, -1)
    out = guess.of_values.view(hidden, lanes, 1, width).repeat(1, 1, group, 1)
    if group > 1:
        copied = _COPIED * guess.before_values.view(hidden, lanes, 1, width)
        out[:, :, :-1] = copied / (group - 1)
        out[:, :, -1:] -= copied
    values = torch.cat([guess.values, torch.zeros_like(guess.values)], dim=1)
    return {
        "self_attn.k_proj.weight": keys.flatten(0, 1),
        "self_attn.q_proj.weight": queries.flatten(0, 2),
        "self_attn.v_proj.weight": values,
        "self_attn.o_proj.weight": out.reshape(hidden, -1),
    }


@dataclass(frozen=True, eq=False)
class CopiedGuess:
    """What values hold of an embedding, and what is made of them.

    values: (kv heads * head width, hidden size) from a normed embedding. of_values: (hidden size,
    kv heads * head width) what the row's own token adds to the guess. before_values: of the same
    shape, what states are like before a token.
    """

    values: Tensor
    of_values: Tensor
    before_values: Tensor

    @classmethod
    def of(
        cls, sizes: LayerSizes, of_tokens: Tensor, tokens: Tensor, states: Tensor
    ) -> CopiedGuess:
        """of_tokens: (hidden size, hidden size) what a guess takes from an embedding.

        tokens, states: normed embeddings, and the states that came before them, of the size 1.
        """
        lanes = sizes.kv_heads * sizes.head_width
        left, strength, right = torch.linalg.svd(of_tokens)
        room = min(sizes.hidden, lanes)
        values = of_tokens.new_zeros(lanes, sizes.hidden)
        values[:room] = strength[:room, None].sqrt() * right[:room]
        of_values = of_tokens.new_zeros(sizes.hidden, lanes)
        of_values[:, :room] = left[:, :room] * strength[:room].sqrt()
        held = tokens @ values.T
        level = held.std(dim=0).clamp(min=1e-6)
        before, _ = linear_fit(held / level, states)
        return cls(values, of_values, before / level)


def _marks_a_lane(sizes: LayerSizes) -> int:
    most = sizes.hidden // (_SHARE_OF_STATE * sizes.kv_heads)
    return min(len(_slow(sizes.head_width)), most)


def _slow(width: int) -> Tensor:
    """The elements of a head that positions turn least: tokens are known there from afar."""
    half = width // 2
    pairs = torch.arange(half // 2, half)
    return torch.cat([pairs, half + pairs])
