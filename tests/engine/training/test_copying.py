"""The attention that a new EAGLE-3 head begins with: it finds where a token came before."""

from __future__ import annotations

import pytest
import torch

from engine.training.copying import CopiedGuess, Marks, copying
from engine.training.starts import Draw
from engine.training.target_layers import LayerSizes
from engine.training.weights import normed

HIDDEN, VOCABULARY, WIDTH, LANES, GROUP = 384, 60, 64, 2, 3
SIZES = LayerSizes(HIDDEN, LANES * GROUP, LANES, WIDTH, 256, 100_000.0, 1e-5)


class Made:
    """A target whose low layer is its embedding turned, and the attention over it."""

    def __init__(self, seed: int, sizes: LayerSizes = SIZES) -> None:
        self.sizes = sizes
        draw = Draw(seed)
        self.embeddings = normed(draw(VOCABULARY, HIDDEN))
        self.turn = torch.linalg.qr(draw(HIDDEN, HIDDEN))[0]
        usual = torch.randint(VOCABULARY, (900,), generator=torch.Generator().manual_seed(seed))
        own, tokens = self.embeddings[usual[:-1]], self.embeddings[usual[1:]]
        before = draw(HIDDEN, 3 * HIDDEN, gain=0.7), torch.zeros(HIDDEN)
        self.others = draw(VOCABULARY, 2 * HIDDEN)
        marks = Marks.of(sizes, draw, own, draw(400, HIDDEN))
        self.weight, self.constant = marks.written(*before, own @ self.turn, own)
        self.marks = marks
        fused = self._fused(usual[:-1])
        self.size = float(fused.square().mean().sqrt())
        self.of_tokens = draw(HIDDEN, HIDDEN)
        guess = CopiedGuess.of(sizes, self.of_tokens, tokens, draw(len(own), HIDDEN))
        self.guess = guess
        self.matrices = copying(sizes, draw, marks, self.size, guess)

    def _fused(self, ids):
        entering = torch.cat([self.embeddings[ids] @ self.turn, self.others[ids]], dim=1)
        return entering @ self.weight.T + self.constant

    def inputs(self, ids):
        """Rows that have read ids[:-1], each beside what comes behind it."""
        return torch.cat([self.embeddings[ids[1:]], normed(self._fused(ids[:-1]))], dim=1)

    def weights(self, ids):
        """Attention of the last row, (heads, rows)."""
        rows = self.inputs(torch.tensor(ids))
        queries, keys = (
            turned((rows @ self.matrices[f"self_attn.{each}_proj.weight"].T), self.sizes)
            for each in "qk"
        )
        keys = keys.repeat_interleave(self.sizes.heads // self.sizes.kv_heads, 0)
        scores = (queries[:, -1:] * keys).sum(dim=-1) * WIDTH**-0.5
        return scores.softmax(dim=-1)

    def added(self, ids):
        """What the attention gives the last row."""
        rows = self.inputs(torch.tensor(ids))
        values = rows @ self.matrices["self_attn.v_proj.weight"].T
        lanes = values.view(len(rows), self.sizes.kv_heads, WIDTH)
        lanes = lanes.repeat_interleave(self.sizes.heads // self.sizes.kv_heads, 1)
        mixed = torch.einsum("hr,rhw->hw", self.weights(ids), lanes).flatten()
        return self.matrices["self_attn.o_proj.weight"] @ mixed


def turned(rows, sizes):
    """Rotated by their positions: (heads, rows, width)."""
    heads = rows.view(len(rows), -1, WIDTH).transpose(0, 1)
    speeds = sizes.base ** (-torch.arange(0, WIDTH, 2) / WIDTH)
    angles = torch.arange(len(rows))[:, None] * speeds
    first, second = heads.chunk(2, dim=-1)
    return torch.cat(
        [
            first * angles.cos() - second * angles.sin(),
            first * angles.sin() + second * angles.cos(),
        ],
        dim=-1,
    )


def test_nearly_all_look_where_the_last_token_was_read_before_and_others_at_themselves():
    ids = [*range(20, 40), 7, 8, 9, *range(40, 50), 7]  # row 20 has read the 7 and is beside the 8
    itself = len(ids) - 2
    copiers, selves = list[int](), list[int]()

    for seed in range(8):
        for head, place in enumerate(Made(seed).weights(ids).argmax(dim=-1).tolist()):
            (copiers if head % GROUP < GROUP - 1 else selves).append(place)

    assert copiers.count(20) > 0.8 * len(copiers)
    assert {*copiers} <= {20, itself}
    assert {*selves} == {itself}


@pytest.mark.parametrize("seed", range(4))
def test_behind_a_token_that_is_new_it_adds_what_a_guess_takes_from_that_token(seed):
    made = Made(seed)
    ids = [*range(20, 50), 7]

    added = made.added(ids)

    right = made.embeddings[7] @ made.guess.values.T @ made.guess.of_values.T
    assert made.weights(ids).argmax(dim=-1).tolist() == [len(ids) - 2] * SIZES.heads
    assert (added - right).norm() < 0.25 * right.norm()


def test_marks_are_written_where_the_output_hardly_looks_and_nothing_else_is_there():
    made = Made(0)
    ids = torch.arange(VOCABULARY)

    found = made._fused(ids) @ made.marks.places / 0.2

    expected = (made.embeddings - made.marks.mean) @ made.marks.of_tokens.T
    assert (found - expected).norm() < 0.2 * expected.norm()


def test_where_each_head_has_keys_of_its_own_all_look_at_themselves():
    sizes = LayerSizes(HIDDEN, LANES, LANES, WIDTH, 256, 100_000.0, 1e-5)
    ids = [*range(20, 40), 7, 8, 9, *range(40, 50), 7]

    assert Made(1, sizes).weights(ids).argmax(dim=-1).tolist() == [len(ids) - 2] * LANES
