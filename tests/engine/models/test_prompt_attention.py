"""Attention over stretches of prompts: what the formula says, and the same bits in any parts."""

import pytest
import torch

from engine.models.native.prompt_attention import BLOCK, attend_in_blocks, blocks, whole_blocks

LANES, QUERIES, WIDTH, ROWS = 2, 3, 16, 300


@pytest.fixture
def made():
    generator = torch.Generator().manual_seed(0)
    slots = whole_blocks(ROWS)
    queries = torch.randn(LANES, ROWS, QUERIES, WIDTH, generator=generator)
    keys = torch.zeros(LANES, WIDTH, slots)
    values = torch.zeros(LANES, slots, WIDTH)
    keys[..., :ROWS] = torch.randn(LANES, WIDTH, ROWS, generator=generator)
    values[:, :ROWS] = torch.randn(LANES, ROWS, WIDTH, generator=generator)
    return queries, keys, values


def attended(made, start, end, sliding):
    queries, keys, values = made
    where = blocks(start, end - start, queries=QUERIES, sliding=sliding)
    return attend_in_blocks(queries[:, start:end], keys, values, where)


@pytest.mark.parametrize("sliding", [None, 1, 40, 129, 1000])
def test_a_row_takes_from_what_it_sees_by_the_softmax_of_its_scores(made, sliding):
    queries, keys, values = (tensor.double() for tensor in made)
    scores = torch.einsum("lrqw,lws->lrqs", queries, keys)
    rows, slots = torch.arange(ROWS)[:, None, None], torch.arange(keys.shape[2])
    unseen = slots > rows if sliding is None else (slots > rows) | (slots <= rows - sliding)
    weights = scores.masked_fill(unseen, -torch.inf).softmax(-1)
    expected = torch.einsum("lrqs,lsw->rlqw", weights, values).reshape(ROWS, -1)

    found = attended(made, 0, ROWS, sliding)

    torch.testing.assert_close(found.double(), expected, rtol=0.01, atol=0.005)


@pytest.mark.parametrize("sliding", [None, 40])
@pytest.mark.parametrize("cut", [1, 100, BLOCK, BLOCK + 1, 299])
def test_a_stretch_read_in_two_parts_has_the_bits_of_one(made, cut, sliding):
    whole = attended(made, 0, ROWS, sliding)

    parts = [attended(made, 0, cut, sliding), attended(made, cut, ROWS, sliding)]

    assert torch.equal(torch.cat(parts), whole)
